# Made by scripts/unasync.py from _async. Do not edit.
"""The client, sync: made from `_async`."""
