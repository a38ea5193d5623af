"""What every test shares: nothing but the promise that a test leaves no thread, socket or warning behind.

Fixtures live beside the tests that use them; there is no shared cupboard of them here.
"""
