"""Whether anything blocks a part of a host: asked where a connection could pass unread, before any URL is known.

An answer rests on the markers of the snapshot (host_markers.py) and on what was learned since. It may name too many hosts (an
entry of `example.com` keeps `www.example.com` from passing, too), never too few.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from gatewayfilter.engine.adblock.compiled_rule import host_names
from gatewayfilter.engine.host_markers import ANY_HOST, part_marker, parts_counted, site_marker
from gatewayfilter.engine.list_lookup import Listing, find_listing, in_force, learned_listing, may_be_listed
from gatewayfilter.engine.person_rules import hosts_of_prefixes
from gatewayfilter.model import LearnedEntry, ListAction
from gatewayfilter.urls import Url, digest_of

if TYPE_CHECKING:
    from gatewayfilter.engine.engine_state import EngineState

_BLOCK = ListAction.BLOCK
_MOST_COMPARED = 256
"""More changes of one host than this since the snapshot are not compared with it one by one: its count stands until the next."""


def blocked_page(state: "EngineState", url: Url, now: float) -> Listing | None:
    """Returns an entry that blocks a URL or a prefix of the URL's host, on any port, `None` when none does."""
    hosts = hosts_of_prefixes(url)
    found = (
        answer for host in hosts for answer in (_of_lists(state, part_marker(host), f"{host}/…", now), _learned(state, host, now))
    )
    return next(filter(None, found), None)


def blocked_by_adblock(state: "EngineState", url: Url, now: float) -> Listing | None:
    """Returns the list with an Adblock rule that speaks of a part of the URL's host, `None` without one."""
    found = (_of_lists(state, site_marker(name), f"||{name}…", now) for name in host_names(url.host))
    return next(filter(None, found), None)


def blocked_anywhere(state: "EngineState", now: float) -> Listing | None:
    """Returns a list of digests that blocks, of which any host may have a page."""
    return _of_lists(state, ANY_HOST, "a digest", now)


def _of_lists(state: "EngineState", marker: str, shown: str, now: float) -> Listing | None:
    digest = digest_of(marker)
    found = find_listing(state, marker, digest, _BLOCK, now) if may_be_listed(state, digest) else None
    return _shown(found, shown) if found is not None else None


def _shown(listing: Listing, rule: str) -> Listing:
    """Returns what a marker stands for, in a form that people know."""
    return replace(listing, verdict=replace(listing.verdict, rule=rule))


def _learned(state: "EngineState", host: str, now: float) -> Listing | None:
    changed = state.overlay.parts.get(host, frozenset())
    for digest in changed:
        entry = state.overlay.learned.get(digest)
        if entry is not None and in_force(state, entry, _BLOCK, now):
            return learned_listing(entry)
    for category in state.learned_blocks:
        record = _record(state, part_marker(host, category), now)
        if record is not None and parts_counted(record) > _taken_back(state, changed, category):
            return _shown(learned_listing(replace(record, detail="")), f"{host}/…")
    return None


def _record(state: "EngineState", marker: str, now: float) -> LearnedEntry | None:
    """Returns the record of a marker while one of the entries that it counts may be in force."""
    digest = digest_of(marker)
    record = state.snapshot.learned(digest) if may_be_listed(state, digest) else None
    return record if record is not None and in_force(state, record, _BLOCK, now) else None


def _taken_back(state: "EngineState", changed: frozenset[bytes], category: str) -> int:
    """Returns how many of the snapshot's blocks of this category are among the keys that changed since."""
    if len(changed) > _MOST_COMPARED:
        return 0
    before = (state.snapshot.learned(digest) for digest in changed)
    return sum(entry is not None and entry.action is _BLOCK and entry.category == category for entry in before)
