"""`fencepost-server`: the verbs of whoever runs the server.

Imports are made inside the verbs, so that `serve` starts in about a second and `--help` at once.
"""
