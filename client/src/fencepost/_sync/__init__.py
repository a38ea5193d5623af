# Made by scripts/unasync.py from _async. Do not edit.
"""The client, async. Written here once; `_sync` is made from it."""
