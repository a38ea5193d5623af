"""Versions as entity tags: `ETag: "3"` going out, `If-None-Match: "3"` coming in."""

import re

from app.wire.codes import Code
from app.wire.reply import Refused, refusal

_entity_tag = re.compile(r'\s*(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)').match
_version = re.compile(r"[1-9][0-9]{0,5}", re.ASCII).fullmatch


def header(version: int) -> dict[str, str]:
    """The ETag of this version."""
    return {"ETag": f'"{version}"'}


def known_versions(header: str | None) -> frozenset[int] | None:
    """The versions that a wait's If-None-Match names; None where it has none, or `*`.

    A tag that is no version of ours is known to be none and left out, so that its caller is told the truth at
    once. Raises Refused with 400 for what is no list of tags, for ignoring it would lose the caller a change.
    """
    if header is None or header.strip() == "*":
        return None
    tags = _tags(header)
    if tags is None:
        raise Refused(
            refusal(
                Code.INVALID_REQUEST,
                error="The header If-None-Match must be a version in quotes",
                fix='Send the ETag of the read, such as `If-None-Match: "3"`.',
                field="If-None-Match",
            )
        )
    return frozenset(int(tag) for tag in tags if _version(tag))


def matches(header: str | None, version: int) -> bool:
    """Whether a read's If-None-Match names this version."""
    return header is not None and (header.strip() == "*" or str(version) in (_tags(header) or ()))


def _tags(header: str) -> list[str] | None:
    """The opaque parts of a list of entity tags; None where it is no such list."""
    tags: list[str] = []
    at = 0
    while at < len(header):
        found = _entity_tag(header, at)
        if found is None:
            return None
        tags.append(found.group(1))
        at = found.end()
    return tags or None
