"""REMEMBERS. The only room that knows SQLAlchemy.

An operation is a function of a transaction; the engine runs it, commits durably, rings the topics it touched
and only then answers. Records go in and come out as the frozen values that core decides on.
"""
