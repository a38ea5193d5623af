"""The client, async. Written here once; `_sync` is made from it."""
