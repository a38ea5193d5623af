"""Answers without what differs between two runs: tokens, ids, instants, fences and ports are named alike.

Tokens and ids are named by the order in which they appear, so that a second token must be second in both runs; fences
likewise, for PostgreSQL's may have gaps. Instants, and the seconds that are counted from them, are all the same.
"""

import re

_NAMED = re.compile(
    r"(?:ns|own|howner|hrecv|nst|clm|cred|cred_trial|whsec)_[A-Za-z0-9_+/=-]{40,}|\b[0-9a-f]{32}\b"
    r'|(?<="fencing_token":)\d+|(?<="held_by":)\d+|(?<="fencing_token": )\d+'
)
_INSTANT = re.compile(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"|(?<=_timestamp":)\d+|(?<=_timestamp": )\d+')
_SECONDS = re.compile(r'"(retry_after|retry_after_seconds|seconds_left|waited_ms|waited_seconds)": ?[\d.]+')
_SIGNATURE = re.compile(r"ed25519:[A-Za-z0-9_:-]+")
_PORT = re.compile(r"127\.0\.0\.1:\d+")


class Plain:
    """Texts of one run, in their order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, text: str) -> str:
        """The text with its names."""
        text = _INSTANT.sub('"instant"', _PORT.sub("server", text))
        text = _SIGNATURE.sub("signature", _SECONDS.sub(r'"\1":0', text))
        return _NAMED.sub(lambda match: self._names.setdefault(match.group(), f"name-{len(self._names)}"), text)
