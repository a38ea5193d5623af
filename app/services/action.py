"""What the names and secrets of a once-key become before anything else sees them.

Names are digested to find their rows and kept as they are for those who look at a claim; of secrets and payload
digests only a digest is kept, each under a purpose of its own.
"""

from app import tokens
from app.storage.claim import Action


def action_of(namespace: str, action_key: str) -> Action:
    """The digests and names of an action."""
    return Action(
        claim_hash=tokens.digest("once-claim", namespace, action_key),
        namespace_hash=tokens.digest("once-namespace", namespace),
        namespace=namespace.encode("utf-8"),
        action_key=action_key.encode("utf-8"),
    )


def topic(claim_hash: bytes) -> str:
    """The signal of one action."""
    return "claim:" + claim_hash.hex()


def claimant_hash(token: str) -> bytes:
    """What is kept of a claim token."""
    return tokens.digest("once-claimant", token)


def owner_hash(token: str) -> bytes:
    """What is kept of a namespace token."""
    return tokens.digest("once-namespace-token", token)


def shown_hash(token: str | None) -> bytes | None:
    """The digest of a namespace token that was shown, right or wrong; None where none was."""
    return None if token is None else owner_hash(token)


def payload_hash(payload_sha256: str) -> bytes:
    """What is kept of a payload's digest, whose case does not count."""
    return tokens.digest("once-payload", payload_sha256.casefold())


def stronger(name: str) -> str:
    """A name like the one asked for that nobody guesses."""
    return f"{name[:95]}-{tokens.mint_identifier()}"
