"""Partial blocks of a host: whether anything blocks a part of it, for decisions on connections before any URL is known.

The result is derived from the markers of the snapshot (state/host_marks.py) and from the entries learned since. It may
include too many hosts (an entry of `example.com` keeps `www.example.com` from being spliced, too), never too few.
"""

from dataclasses import replace

from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.host_marks import HostMarks, find_marks
from gatewayfilter.engine.state.list_lookup import Listing, in_force, learned_listing
from gatewayfilter.engine.state.manual_rules import hosts_of_prefixes
from gatewayfilter.engine.tables.host_markers import parts_counted
from gatewayfilter.model import ListAction, Verdict
from gatewayfilter.urls import Url

_BLOCK = ListAction.BLOCK
_NONE: frozenset[bytes] = frozenset()
_MOST_COMPARED = 256
"""Above this number of changes to one host since the snapshot, the changes are not compared with it one by one: the snapshot's
count stays in use until the next snapshot."""


def blocked_page(state: EngineState, url: Url, now: float) -> Listing | None:
    """Returns an entry that blocks a URL or a prefix of the URL's host, on any port, `None` when none does."""
    marks = _marks(state, url)
    if marks.page is not None:
        return Listing(marks.page)
    overlay = state.overlay
    for host in hosts_of_prefixes(url):
        for digest in overlay.parts.get(host, _NONE):
            entry = overlay.learned.get(digest)
            if entry is not None and in_force(state.lists, entry, _BLOCK, now):
                return learned_listing(entry)
    for host, record in marks.learned:
        changed = overlay.parts.get(host, _NONE)
        if in_force(state.lists, record, _BLOCK, now) and parts_counted(record) > _taken_back(state, changed, record.category):
            return learned_listing(replace(record, key=f"{host}/…", detail=""))
    return None


def blocked_by_rule(state: EngineState, url: Url) -> Verdict | None:
    """Returns the list with an Adblock rule for a part of the URL's host, or with digests, `None` without one."""
    return _marks(state, url).rule


def _marks(state: EngineState, url: Url) -> HostMarks:
    marks = state.host_marks.get(url.host)
    if marks is None:
        marks = find_marks(state.lists, url)
        state.host_marks.put(url.host, marks)
    return marks


def _taken_back(state: EngineState, changed: frozenset[bytes], category: str) -> int:
    """Returns the number of the snapshot's blocks of this category among the keys that changed since."""
    if len(changed) > _MOST_COMPARED:
        return 0
    before = (state.lists.records.find(digest) for digest in changed)
    return sum(entry is not None and entry.action is _BLOCK and entry.category == category for entry in before)
