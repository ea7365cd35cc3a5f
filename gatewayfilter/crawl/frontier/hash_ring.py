"""The consistent-hash ring that assigns sites to crawlers.

Source: [cloud-crawler] dispatch by consistent hashing on the MD5; when a fetcher fails, its arc goes to the next clockwise.
Deviation: the site (registrable domain) is hashed and not the URL, so that one crawler alone keeps a site's delays,
robots.txt and connections (docs/decisions/0004-sites-on-the-ring.md); and each crawler stands at many points, so that the
arc of one that fails is shared by all others.
"""

from bisect import bisect
from collections.abc import Iterable

from gatewayfilter.urls import digest_of, registrable_domain

POINTS = 128
"""Points of a crawler on the ring: shares differ by some 9 % among crawlers (1/sqrt(POINTS))."""


class HashRing:
    """Members on a ring of 64-bit points. Immutable: a change makes another ring.

    Args:
        members: names of the crawlers that are alive.
        points: of each member on the ring.
    """

    def __init__(self, members: Iterable[str] = (), points: int = POINTS) -> None:
        self.members = frozenset(members)
        self._points = points
        ring = sorted((_point(f"{member}#{number}"), member) for member in self.members for number in range(points))
        self._places = [place for place, _ in ring]
        self._owners = [member for _, member in ring]

    def with_member(self, member: str) -> "HashRing":
        """Returns the ring with one more member: it takes its arcs from the others, nothing else moves."""
        return HashRing(self.members | {member}, self._points)

    def without_member(self, member: str) -> "HashRing":
        """Returns the ring without a member: each of its arcs goes to the next member clockwise, nothing else moves."""
        return HashRing(self.members - {member}, self._points)

    def owner(self, key: str) -> str | None:
        """Returns the member that owns a key, `None` when there is no member. About 2 µs."""
        if not self._owners:
            return None
        return self._owners[bisect(self._places, _point(key)) % len(self._owners)]

    def owner_of_host(self, host: str) -> str | None:
        """Returns the member that crawls a host: one for all hosts of a site."""
        return self.owner(registrable_domain(host) or host)


def _point(key: str) -> int:
    return int.from_bytes(digest_of(key)[:8])
