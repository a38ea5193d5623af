"""The same use cases as tools of the Model Context Protocol: POST /mcp, stateless, JSON replies only.

The protocol is pure: messages.py reads JSON-RPC, revisions.py knows the five revisions and what the newest asks of each
request, server.py answers methods. tool.py makes a tool of a wire model, a use case and its answers; lease.py,
handoff.py and claim.py are the rows. route.py joins them to HTTP.
"""
