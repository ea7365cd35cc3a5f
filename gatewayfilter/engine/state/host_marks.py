"""The markers of a host in a snapshot (host_markers.py): the lists that block a part of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.state.list_lookup import list_verdict, may_be_listed
from gatewayfilter.engine.state.list_view import ListView
from gatewayfilter.engine.state.manual_rules import hosts_of_prefixes
from gatewayfilter.engine.tables.host_markers import ANY_HOST, part_marker, site_marker
from gatewayfilter.model import LearnedEntry, ListAction, Verdict
from gatewayfilter.urls import Url, digest_of


@dataclass(frozen=True, slots=True)
class HostMarks:
    """The markers of a host; found once, independent of entries learned since.

    Attributes:
        page: the first list with a URL or a prefix of it, on any port.
        learned: pairs of host and the record that counts its learned blocks of a category.
        rule: the first list with an Adblock rule for a part of it, or with digests of unknown keys.
    """

    page: Verdict | None
    learned: tuple[tuple[str, LearnedEntry], ...]
    rule: Verdict | None


def find_marks(lists: ListView, url: Url) -> HostMarks:
    """Returns the markers of a URL's host. Cost: a look-up for each label of the host and each category of learned blocks."""
    hosts = hosts_of_prefixes(url)
    pages = (_of_lists(lists, part_marker(host), f"{host}/…") for host in hosts)
    rules = (_of_lists(lists, site_marker(name), f"||{name}…") for name in host_names(url.host))
    return HostMarks(
        next(filter(None, pages), None),
        tuple((host, record) for host in hosts for record in _records(lists, host)),
        next(filter(None, rules), None) or _of_lists(lists, ANY_HOST, "a digest"),
    )


def _of_lists(lists: ListView, marker: str, shown: str) -> Verdict | None:
    """Returns the verdict of the first list under a marker that is on; `shown` is the rule as displayed."""
    digest = digest_of(marker)
    number = lists.tables[ListAction.BLOCK].find(digest) if may_be_listed(lists, digest) else None
    for index in lists.on_sets[number] if number is not None else ():
        source = lists.sources[index]
        if not source.learned:
            return list_verdict(source, shown)
    return None


def _records(lists: ListView, host: str) -> Iterator[LearnedEntry]:
    for source in lists.sources:
        if source.learned and source.action is ListAction.BLOCK and source.category not in lists.off_categories:
            digest = digest_of(part_marker(host, source.category))
            record = lists.records.find(digest) if may_be_listed(lists, digest) else None
            if record is not None:
                yield record
