"""The chain of deltas of a publisher: the newest ones, each from one exported snapshot to the next.

A manifest names them with their digests and is signed, so that a follower verifies a delta before it reads anything of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_LINKS: Final = 8
"""Deltas of a manifest: a week of daily updates."""
SHARE: Final = 2
"""Deltas together are at most the snapshot divided by this: more than that, and blocks would be fetched as well."""


@dataclass(frozen=True, slots=True)
class DeltaLink:
    """A delta as a manifest names it.

    Attributes:
        older: name of the snapshot that it is applied to.
        name: SHA-256 of the delta in hexadecimal digits, under which it is fetched.
        size: its length in bytes.
    """

    older: str
    name: str
    size: int


def extended(links: Sequence[DeltaLink], link: DeltaLink | None, size: int) -> tuple[DeltaLink, ...]:
    """Returns the chain of a new snapshot.

    Args:
        links: of the snapshot before.
        link: from that to the new one; `None` where there is none: the chain begins anew.
        size: of the new snapshot.
    """
    if link is None:
        return ()
    kept = [link]
    for earlier in reversed(links[-(MOST_LINKS - 1) :]):
        if sum(known.size for known in kept) + earlier.size > size // SHARE:
            break
        kept.append(earlier)
    return tuple(reversed(kept))


def links_from(links: Sequence[DeltaLink], name: str) -> tuple[DeltaLink, ...]:
    """Returns the deltas that lead from a snapshot to the newest one, none where there is no way."""
    for number, link in enumerate(links):
        if link.older == name:
            return tuple(links[number:])
    return ()
