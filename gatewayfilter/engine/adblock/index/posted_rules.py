"""Posting lists of the rule index in memory: the rules under one key, compiled when the key is first seen in traffic.

The same keys (`google.com`) are met below ever new hosts. What depends on the key alone is computed once: the union of the masks,
the compiled rules, and for keys with many rules that name their pages, a table of these by page.
"""

from collections.abc import Sequence

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule, RuleTest
from gatewayfilter.engine.adblock.index.rule_table import NEEDS_TEST, RuleTable
from gatewayfilter.errors import SnapshotError

type Near = tuple[int, int, RuleTest | None]
"""Mask, number and remaining test of a rule that may apply between two hosts."""

type Candidates = tuple[tuple[int, int], ...]
"""(mask, rule) of each."""

type Posted = tuple[Near, CompiledRule | None]
"""A rule, and its compiled form where it has to be tested whether it applies between two hosts at all."""


class PostedRules:
    """The rules under one key.

    Args:
        table: of all rules.
        numbers: of these rules.
        by_host: the key is the host in the patterns of these rules.

    Attributes:
        mask: OR of their masks.
        always: those to be considered on every page.
        by_page: those that name their pages, by the names of these.
    """

    __slots__ = ("always", "by_page", "mask")

    def __init__(self, table: RuleTable, numbers: Sequence[int], *, by_host: bool = False) -> None:
        self.mask = 0
        self.by_page: dict[str, list[Posted]] = {}
        fixed: list[Posted] = []
        tested: list[Posted] = []
        for number in numbers:
            mask = table.masks[number]
            self.mask |= mask
            if not mask & NEEDS_TEST:
                fixed.append(((mask, number, None), None))
                continue
            compiled = table.compiled(number)
            left = compiled.left_at(by_host=by_host, by_page=bool(compiled.pages))
            rule: Posted = ((mask, number, None), compiled)
            if left is not None:
                rule = ((mask, number, None if left is True else left), None)
            if compiled.pages:
                for name in compiled.pages:
                    self.by_page.setdefault(name, []).append(rule)
            else:
                (tested if left is None else fixed).append(rule)
        self.always = (*fixed, *tested)


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
