"""The server process: gunicorn's arbiter and its gevent worker, fitted to waits and sockets that stay open.

The arbiter listens, starts the worker and starts it again when it dies; it never opens the database. The worker
serves. What the stock worker lacks is here: a stop in under two seconds with hundreds of parked calls, deadlines
on slow heads and slow readers, a turn for everybody, JSON answers to broken HTTP, and logs without paths.
"""
