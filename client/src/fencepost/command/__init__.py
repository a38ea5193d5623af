"""The command `fencepost`: the client for shells, cron jobs and people.

main.py reads the words, one module per noun does what they say, secret.py is the only reader of secrets, show.py the
only writer for people and programs. run.py holds a lease while a command runs; attend.py looks after that command,
and guardian.py does when we cannot any more.
"""
