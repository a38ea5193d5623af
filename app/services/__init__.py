"""CONDUCTS. One public method is one use case and one transaction.

Lock the row, read the clock, let core decide, write, ring, commit. Nothing is acknowledged before its commit is
durable, and no transaction is open while somebody waits.
"""
