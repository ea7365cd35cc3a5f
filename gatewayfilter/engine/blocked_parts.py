"""Whether anything blocks a part of a host: asked where a connection could pass unread, before any URL is known.

An answer rests on the markers of the snapshot (host_markers.py) and on what was learned since. It may name too many hosts (an
entry of `example.com` keeps `www.example.com` from passing, too), never too few.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gatewayfilter.engine.adblock.index.compiled_rule import host_names
from gatewayfilter.engine.state.list_lookup import Listing, in_force, learned_listing, list_verdict, may_be_listed
from gatewayfilter.engine.state.manual_rules import hosts_of_prefixes
from gatewayfilter.engine.tables.host_markers import ANY_HOST, part_marker, parts_counted, site_marker
from gatewayfilter.model import LearnedEntry, ListAction, Verdict
from gatewayfilter.urls import Url, digest_of

if TYPE_CHECKING:
    from gatewayfilter.engine.state.engine_state import EngineState

_BLOCK = ListAction.BLOCK
_NONE: frozenset[bytes] = frozenset()
_MOST_COMPARED = 256
"""More changes of one host than this since the snapshot are not compared with it one by one: its count stands until the next."""


@dataclass(frozen=True, slots=True)
class HostMarks:
    """What the markers of a snapshot say of a host; worked out once, whatever is learned since.

    Attributes:
        page: the first list with a URL or a prefix of it, on any port.
        learned: host, and the record that counts its learned blocks of a category.
        rule: the first list with an Adblock rule that speaks of a part of it, or with digests of which nothing is known.
    """

    page: Verdict | None
    learned: tuple[tuple[str, LearnedEntry], ...]
    rule: Verdict | None


def blocked_page(state: "EngineState", url: Url, now: float) -> Listing | None:
    """Returns an entry that blocks a URL or a prefix of the URL's host, on any port, `None` when none does."""
    marks = _marks(state, url)
    if marks.page is not None:
        return Listing(marks.page)
    overlay = state.overlay
    for host in hosts_of_prefixes(url):
        for digest in overlay.parts.get(host, _NONE):
            entry = overlay.learned.get(digest)
            if entry is not None and in_force(state, entry, _BLOCK, now):
                return learned_listing(entry)
    for host, record in marks.learned:
        changed = overlay.parts.get(host, _NONE)
        if in_force(state, record, _BLOCK, now) and parts_counted(record) > _taken_back(state, changed, record.category):
            return learned_listing(replace(record, key=f"{host}/…", detail=""))
    return None


def blocked_by_rule(state: "EngineState", url: Url) -> Verdict | None:
    """Returns the list with an Adblock rule that speaks of a part of the URL's host, or with digests, `None` without one."""
    return _marks(state, url).rule


def _marks(state: "EngineState", url: Url) -> HostMarks:
    marks = state.host_marks.get(url.host)
    if marks is None:
        hosts = hosts_of_prefixes(url)
        pages = (_of_lists(state, part_marker(host), f"{host}/…") for host in hosts)
        rules = (_of_lists(state, site_marker(name), f"||{name}…") for name in host_names(url.host))
        marks = HostMarks(
            next(filter(None, pages), None),
            tuple((host, record) for host in hosts for record in _records(state, host)),
            next(filter(None, rules), None) or _of_lists(state, ANY_HOST, "a digest"),
        )
        state.host_marks.put(url.host, marks)
    return marks


def _of_lists(state: "EngineState", marker: str, shown: str) -> Verdict | None:
    """Returns the verdict of the first list under a marker that is on; `shown` stands for the rule, as people know it."""
    digest = digest_of(marker)
    number = state.tables[_BLOCK].find(digest) if may_be_listed(state, digest) else None
    for index in state.on_sets[number] if number is not None else ():
        source = state.sources[index]
        if not source.learned:
            return list_verdict(source, shown)
    return None


def _records(state: "EngineState", host: str) -> Iterator[LearnedEntry]:
    for category in state.learned_blocks:
        digest = digest_of(part_marker(host, category))
        record = state.snapshot.learned(digest) if may_be_listed(state, digest) else None
        if record is not None:
            yield record


def _taken_back(state: "EngineState", changed: frozenset[bytes], category: str) -> int:
    """Returns how many of the snapshot's blocks of this category are among the keys that changed since."""
    if len(changed) > _MOST_COMPARED:
        return 0
    before = (state.snapshot.learned(digest) for digest in changed)
    return sum(entry is not None and entry.action is _BLOCK and entry.category == category for entry in before)
