"""REST and the WebSocket. Thin Flask blueprints: read the body, call the service, send the reply.

What all routes share (body caps, bearer tokens, limits, errors, request ids) is in edge.py.
"""
