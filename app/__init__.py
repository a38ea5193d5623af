"""Fencepost, the server: leases, handoffs and once-keys for fleets of agents.

Each folder is a room, a kind of work; each file in it is a concept. The same concept has the same
file name in every room, so `ls app/*/lease.py` lists a whole feature. ARCHITECTURE.md draws the house.
"""

__version__ = "0.1.0"
