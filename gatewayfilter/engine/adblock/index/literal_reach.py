"""The reach of rules that are found by literals: between which hosts can any of them match?

Most requests need no search of their URL, as none of these rules applies between their host and page. Testing each rule for each
new pair of hosts takes long, so rules that name their pages are found by the page's names, and rules for every site count without
a test.
"""

from collections.abc import Iterable

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.index.covering_names import host_names


class LiteralReach:
    """The masks of some rules, by the hosts between which each applies.

    Args:
        rules: (mask, rule) of each.

    Attributes:
        unbound: OR of the masks of those that may match between any hosts.
        by_page: those that name their pages, by the names of these.
        others: of each other one its mask, text that the host of a request must contain, and the rule.
    """

    __slots__ = ("by_page", "others", "unbound")

    def __init__(self, rules: Iterable[tuple[int, CompiledRule]]) -> None:
        self.unbound = 0
        self.by_page: dict[str, list[tuple[int, CompiledRule]]] = {}
        self.others: list[tuple[int, str, CompiledRule]] = []
        for mask, rule in rules:
            if rule.is_unbound:
                self.unbound |= mask
            elif rule.pages:
                for name in rule.pages:
                    self.by_page.setdefault(name, []).append((mask, rule))
            else:
                self.others.append((mask, rule.in_host, rule))

    def between(self, host: str, source: str, bits: int) -> int:
        """Returns the OR of the masks of the rules that may match between two hosts, as far as these bits go.

        Args:
            host: host of the requests.
            source: host of their source, "" when there is none.
            bits: types and party of the requests.
        """
        reach = self.unbound & bits
        if source and self.by_page:
            for name in host_names(source):
                for mask, rule in self.by_page.get(name, ()):
                    if mask & bits & ~reach and rule.between(host, source):
                        reach |= mask & bits
        for mask, in_host, rule in self.others:
            if mask & bits & ~reach and in_host in host and rule.between(host, source):
                reach |= mask & bits
        return reach
