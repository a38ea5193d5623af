"""ADMINISTERS. What the command line asks of a server that runs: on SQLite a second process may not open the file.

A Unix socket in the data folder, mode 0600, takes one JSON object a line and gives one back. `verbs.py` is the same
whether a running server serves it or the command line, alone, does it itself.
"""
