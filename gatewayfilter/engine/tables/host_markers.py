"""Markers: table keys about a host rather than a URL. No URL has such a key, because no host contains ``*``.

================  ===================  =======================================================================
marker            in                   meaning
================  ===================  =======================================================================
``host:port**``   any table of lists   this host and port have prefix entries: prefixes are tried for no others
``host*``         the blacklist        a list blocks a URL or a prefix of this host, on any port
``host*gaming``   blacklist, learned   the same for learned entries of this category; its record counts them
``.name*``        the blacklist        an Adblock rule covers a part of this host or of a subdomain
``*``             the blacklist        a list of digests blocks unknown keys
================  ===================  =======================================================================

All but the first are read for decisions on connections, before any URL is known (host_decision.py).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from gatewayfilter.model import LearnedEntry, ListAction

ANY_HOST: Final = "*"


def host_of_key(key: str) -> str:
    """Returns the host of a url or prefix key, without its port."""
    netloc = key.partition("/")[0]
    return netloc.partition("]")[0] + "]" if netloc.startswith("[") else netloc.partition(":")[0]


def prefix_marker(key: str) -> str | None:
    """Returns the marker "this host and port have prefix entries" of a prefix key, `None` for any other key."""
    return f"{key.partition('/')[0]}**" if key.endswith("/*") else None


def part_marker(host: str, category: str = "") -> str:
    """Returns the marker "parts of this host are blocked": by lists, or by learned entries of a category."""
    return f"{host}*{category}"


def site_marker(name: str) -> str:
    """Returns the marker "an Adblock rule covers a part of this host"; `name` may be an entity (``google.*``)."""
    return f".{name}*"


def blocked_part_of(entry: LearnedEntry) -> str:
    """Returns the marker under which a learned entry is counted, `""` when it does not block a part of a host."""
    if entry.action is not ListAction.BLOCK or "/" not in entry.key:
        return ""
    return part_marker(host_of_key(entry.key), entry.category)


def count_parts(entries: Iterable[LearnedEntry]) -> dict[str, LearnedEntry]:
    """Returns marker → the record that counts these entries: their number in `detail`, and the latest of their expiries."""
    found: dict[str, LearnedEntry] = {}
    for entry in entries:
        if marker := blocked_part_of(entry):
            found[marker] = recount(found.get(marker), marker, entry, 1)
    return found


def recount(record: LearnedEntry | None, marker: str, entry: LearnedEntry, change: int) -> LearnedEntry:
    """Returns the record of a marker after an entry was added (1) or removed (-1); its expiry never decreases."""
    if record is None:
        record = LearnedEntry(marker, ListAction.BLOCK, entry.category, "", "0", 0.0, 0.0)
    expires_at = max(record.expires_at, entry.expires_at) if change > 0 else record.expires_at
    return replace(record, detail=str(parts_counted(record) + change), expires_at=expires_at)


def parts_counted(record: LearnedEntry) -> int:
    """Returns the number of learned entries that the record of a marker counts."""
    return int(record.detail)
