"""The candidate rules between two hosts: what the index of rules has for host and page, less what cannot apply there.

It is worked out once for each pair of hosts, and each pair is new once: so there is a compiled twin, `_near_rules.pyx`.
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.index.covering_names import host_names, is_same_site
from gatewayfilter.engine.adblock.index.literal_reach import LiteralReach
from gatewayfilter.engine.adblock.index.name_table import HEAD, NameTable
from gatewayfilter.engine.adblock.index.posted_rules import Near, PostedRules, Postings
from gatewayfilter.engine.adblock.index.rule_table import CANCELLED
from gatewayfilter.engine.adblock.syntax.rule import PARTY_SHIFT
from gatewayfilter.urls import host_suffixes

type Proximity = tuple[int, int, int, tuple[Near, ...]]
"""Cached facts about requests to one host from another: the party (`party_of`); the OR of the masks of the rules by literals;
that of the other candidates; and of each of these its mask, its number, and its remaining test."""


type NearTables = tuple[NameTable, Postings, Mapping[str, int], Postings, PostedRules, int, LiteralReach | None]
"""What an index has for hosts and pages, a bare tuple for its compiled reader: the keys of the rules by host, these rules; the
keys of the rules by page, these rules; the rules without a key; OR of the masks of the rules by literals, and the reach of these
rules (`None` where testing them would take long)."""


def party_of(host: str, source: str) -> int:
    """Returns the factor that turns a type's bit into a request's bits in a rule's mask.

    Args:
        host: host of the request.
        source: host of its source; with "" it counts as first and as third party.
    """
    if not source:
        return 1 | 1 << PARTY_SHIFT
    return 1 if is_same_site(host, source) else 1 << PARTY_SHIFT


def find_proximity(tables: NearTables, host: str, source: str, types: int) -> Proximity:
    """Returns the facts about requests between two hosts; rules that are cancelled while all lists are on are left out.

    Args:
        tables: of the index.
        host: host of the requests.
        source: host of their source, "" when there is none.
        types: bits of their types.
    """
    party = party_of(host, source)
    near = tuple(found for found in find_near_rules(tables, host, source, types * party) if not found[0] & CANCELLED)
    _, _, _, _, _, in_url, literals = tables
    if literals is not None:
        in_url = literals.between(host, source, types * party)
    return party, in_url, reduce(or_, (found[0] for found in near), 0), near


def find_near_rules(tables: NearTables, host: str, source: str, reach: int) -> tuple[Near, ...]:
    """Returns the candidate rules between two hosts, those without a test first.

    Args:
        tables: of the index.
        host: host of the requests.
        source: host of their source, "" when there is none.
        reach: bits of all types for the party of the requests.
    """
    certain: list[Near] = []
    tested: list[Near] = []
    hosts, host_rules, pages, page_rules, everywhere, _, _ = tables
    for name in host_suffixes(host):
        keys = hosts[name[:HEAD]]
        if name in keys:
            _add_near(host_rules[keys[name]], host, source, reach, certain, tested)
    for name in host_names(source) if source and pages else ():
        if name in pages:
            _add_near(page_rules[pages[name]], host, source, reach, certain, tested)
    _add_near(everywhere, host, source, reach, certain, tested)
    return (*certain, *tested) if certain or tested else ()


def _add_near(posted: PostedRules, host: str, source: str, reach: int, certain: list[Near], tested: list[Near]) -> None:
    """Adds the rules of a key that may apply to those without a remaining test, or to those with one."""
    if not posted.mask & reach:
        return
    candidates = posted.always
    if posted.by_page and source:
        paged = posted.by_page
        fitting = {found[0][1]: found for name in host_names(source) if name in paged for found in paged[name]}
        candidates = (*candidates, *fitting.values())
    for near, rule in candidates:
        if not near[0] & reach:
            continue
        left = near[2] if rule is None else rule.between(host, source)
        if left is None or left is True:
            certain.append(near)
        elif left is not False:
            tested.append(near if rule is None else (near[0], near[1], left))


_compiled = load("gatewayfilter.engine.adblock.index._near_rules")
near_rules = find_near_rules if _compiled is None else _compiled.near_rules
"""`find_near_rules`, compiled where that is possible."""

proximity = find_proximity if _compiled is None else _compiled.proximity
"""`find_proximity`, compiled where that is possible."""
