"""Posting lists of the rule index in memory: the rules under one key, compiled when the key is first seen in traffic.

The same keys (`google.com`) are met below ever new hosts. What depends on the key alone is computed once: the union of the masks,
the compiled rules, and for keys with many rules that name their pages, a table of these by page.
"""

from collections.abc import Iterable, Sequence

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule, RuleTest, host_names
from gatewayfilter.engine.adblock.index.rule_table import NEEDS_TEST, RuleTable
from gatewayfilter.errors import SnapshotError

type Near = tuple[int, int, RuleTest | None]
"""Mask, number and remaining test of a rule that may apply between two hosts."""

type Candidates = tuple[tuple[int, int], ...]
"""(mask, rule) of each."""

_MANY_PAGED = 4
"""With more rules than this that name their pages, they are found by the names of the page."""


class PostedRules:
    """The rules under one key.

    Args:
        table: of all rules.
        numbers: of these rules.
        by_host: the key is the host in the patterns of these rules.

    Attributes:
        mask: OR of their masks.
    """

    __slots__ = ("_by_page", "_fixed", "_tested", "mask")

    def __init__(self, table: RuleTable, numbers: Sequence[int], *, by_host: bool = False) -> None:
        self.mask = 0
        self._fixed: list[Near] = []
        self._tested: list[tuple[int, int, CompiledRule]] = []
        self._by_page: dict[str, list[tuple[int, int, CompiledRule]]] = {}
        paged: list[tuple[int, int, CompiledRule]] = []
        for number in numbers:
            mask = table.masks[number]
            self.mask |= mask
            if not mask & NEEDS_TEST:
                self._fixed.append((mask, number, None))
                continue
            compiled = table.compiled(number)
            left = compiled.left_at(host_fits=by_host)
            if left is None:
                (paged if compiled.pages else self._tested).append((mask, number, compiled))
            else:
                self._fixed.append((mask, number, None if left is True or left is False else left))
        if len(paged) <= _MANY_PAGED:
            self._tested += paged
            return
        for found in paged:
            for name in found[2].pages:
                self._by_page.setdefault(name, []).append(found)

    def add_near(self, host: str, source: str, reach: int, certain: list[Near], tested: list[Near]) -> None:
        """Adds the rules that may apply between two hosts to those without a remaining test, or to those with one.

        Args:
            host: host of the requests.
            source: host of their source, "" when there is none.
            reach: bits of all types for the party of the requests.
            certain: gets the rules without a remaining test.
            tested: gets the others.
        """
        for found in self._fixed:
            if found[0] & reach:
                (certain if found[2] is None else tested).append(found)
        if self._by_page and source:
            paged = self._by_page
            fitting = {found[1]: found for name in host_names(source) if name in paged for found in paged[name]}
            rules: Iterable[tuple[int, int, CompiledRule]] = (*self._tested, *fitting.values())
        else:
            rules = self._tested
        for mask, number, rule in rules:
            if mask & reach:
                left = rule.between(host, source)
                if left is True:
                    certain.append((mask, number, None))
                elif left is not False:
                    tested.append((mask, number, left))


class Postings(dict[int, PostedRules]):
    """Number of a key → its rules, compiled at their first use.

    Args:
        table: of all rules.
        starts: where the rules of each key begin in `rules`.
        rules: the numbers of the rules, key by key.
        by_host: the keys are hosts of patterns (`PostedRules`).

    Raises:
        SnapshotError: the two do not fit together.
    """

    __slots__ = ("_by_host", "_rules", "_starts", "_table")

    def __init__(self, table: RuleTable, starts: Sequence[int], rules: Sequence[int], *, by_host: bool = False) -> None:
        super().__init__()
        if starts[-1] != len(rules):
            raise SnapshotError("the compiled Adblock rules are damaged")
        self._table = table
        self._starts = starts
        self._rules = rules
        self._by_host = by_host

    def __missing__(self, key: int) -> PostedRules:
        posted = self[key] = PostedRules(self._table, self.numbers(key), by_host=self._by_host)
        return posted

    def numbers(self, key: int) -> Sequence[int]:
        """Returns the numbers of a key's rules."""
        return self._rules[self._starts[key] : self._starts[key + 1]]

    def all_numbers(self) -> Sequence[int]:
        """Returns the numbers of the rules of all keys, in their order."""
        return self._rules


class PostedMasks(dict[int, Candidates]):
    """Number of a key → masks and numbers of its rules, put together at the first use.

    Args:
        table: of all rules.
        postings: the rules by key.

    Attributes:
        mask: OR of the masks of all rules.
        size: number of all rules.
    """

    __slots__ = ("_postings", "_table", "mask", "size")

    def __init__(self, table: RuleTable, postings: Postings) -> None:
        super().__init__()
        self._table = table
        self._postings = postings
        self.size = len(postings.all_numbers())
        self.mask = 0
        for mask in {table.masks[number] for number in postings.all_numbers()}:
            self.mask |= mask

    def __missing__(self, key: int) -> Candidates:
        found = self[key] = self._of(self._postings.numbers(key))
        return found

    def candidates(self) -> Candidates:
        """Returns masks and numbers of all rules."""
        return self._of(self._postings.all_numbers())

    def _of(self, numbers: Sequence[int]) -> Candidates:
        masks = self._table.masks
        return tuple((masks[number], number) for number in numbers)
