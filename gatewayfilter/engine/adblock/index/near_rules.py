"""The candidate rules between two hosts: what the index of rules has for host and page, less what cannot apply there.

It is worked out once for each pair of hosts, and each pair is new once: so there is a compiled twin, `_near_rules.pyx`.
"""

from collections.abc import Mapping

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.name_table import HEAD, NameTable
from gatewayfilter.engine.adblock.index.posted_rules import Near, PostedRules, Postings
from gatewayfilter.urls import host_suffixes


def find_near_rules(
    hosts: NameTable,
    host_rules: Postings,
    pages: Mapping[str, int],
    page_rules: Postings,
    everywhere: PostedRules,
    host: str,
    source: str,
    reach: int,
) -> tuple[Near, ...]:
    """Returns the candidate rules between two hosts, those without a test first.

    Args:
        hosts: the keys of the rules by host.
        host_rules: the rules by host.
        pages: the keys of the rules by page.
        page_rules: the rules by page.
        everywhere: the rules without a key.
        host: host of the requests.
        source: host of their source, "" when there is none.
        reach: bits of all types for the party of the requests.
    """
    certain: list[Near] = []
    tested: list[Near] = []
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
