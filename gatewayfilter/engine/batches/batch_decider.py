"""The decision on batches of requests, in columns: the verdicts of `FilterEngine.decide` at a fraction of its cost.

1. URLs that are not plain are left to the engine, as are all whose digest passes the Bloom gate (a hundredth at most).
2. The others are grouped by request class: host, page and type. Many classes have one verdict.
3. The URLs of the rest are searched for the literals of rules in one call. Those with hits, and those of classes with rules to
   be tested, are tested one by one.
4. What no rule blocks has the verdict of its class, unless another spelling of its URL may be blocked: that is left to the
   engine too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.adblock.matcher import NO_PAIR, PairRules
from gatewayfilter.engine.batches.plain_urls import OTHER_KEY, SLASH, SPELLED, PlainUrls, is_canonical, plain_url
from gatewayfilter.engine.batches.request_classes import (
    ALLOWS,
    SCANS_BLOCKS,
    SCANS_EXCEPTIONS,
    TESTS,
    RequestClass,
    RequestClasses,
)
from gatewayfilter.engine.batches.tested_rows import NO_HITS, TestedRows, first_of_each
from gatewayfilter.engine.batches.verdict_table import VerdictTable
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.path_spellings import spellings_of
from gatewayfilter.engine.state.list_lookup import may_be_listed
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.model import ListAction, Request, ResourceType
from gatewayfilter.urls import Url, digest_of

UNDECIDED: Final = -1
"""In place of a verdict's number: the engine has to decide the request."""


LONGEST: Final = 8_192
"""Characters of the longest URL that is decided here."""
LONGEST_PAGE: Final = 2_048
"""Likewise of a page: classes, which are kept, name it."""
_TOGETHER: Final = 1 << 22
"""Bytes of URLs whose rules are looked for together: what is kept of hits stays within some hundred megabytes whatever is in
them."""


@dataclass(frozen=True, slots=True)
class Column[T]:
    """A column of values of which few differ.

    Attributes:
        numbers: int32[n], into `values`.
        values: each once.
    """

    numbers: NDArray[np.int32]
    values: Sequence[T]


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """A batch of requests.

    Attributes:
        urls: read with digests if `BatchDecider.wants_digests`.
        text: the URLs, one behind the other.
        begins: int32[n + 1]: where each begins in `text`.
        pages: that caused them.
        kinds: their types.
        methods: of HTTP.
    """

    urls: PlainUrls
    text: bytes | memoryview
    begins: NDArray[np.int32]
    pages: Column[Url | None]
    kinds: Column[ResourceType]
    methods: Column[str]

    def request(self, row: int, of: RequestClass) -> Request:
        """Returns a request whose URL is plain.

        Args:
            row: of the request.
            of: its class.
        """
        methods = self.methods
        method = methods.values[0] if len(methods.values) == 1 else methods.values[methods.numbers[row]]
        return Request(plain_url(self.text_of(row), of.head), of.page, of.kind, method)

    def text_of(self, row: int) -> str:
        """Returns a URL that is plain."""
        return str(self.text[int(self.begins[row]) : int(self.begins[row + 1])], "ascii")


class BatchDecider:
    """Decides batches by an engine as its lists are now.

    Args:
        engine: decides what is left.

    Attributes:
        wants_digests: lists have entries that may be URLs. Markers, which Adblock rules leave in the tables, are none.
    """

    def __init__(self, engine: FilterEngine) -> None:
        self._state = state = engine.state
        lists = state.lists
        plain = state.policies is None and not state.overlay.rules and not lists.learned
        self._classes: RequestClasses | None = None
        if plain and state.adblock.takes_pairs(state.off_sources):
            self._classes = RequestClasses(state, engine.clock)
        info = state.snapshot.info
        only_markers = not (info.blacklist or info.whitelist or state.snapshot.meta["patches"])  # a full build counts exactly
        tables = lists.tables[ListAction.BLOCK], lists.tables[ListAction.ALLOW]
        self.wants_digests = not only_markers and any(table.count for table in tables)

    def decide(self, batch: RequestColumns, verdicts: VerdictTable) -> NDArray[np.int32]:
        """Returns the number of the verdict on each request, `UNDECIDED` for what has to be decided by the engine.

        Args:
            batch: the requests.
            verdicts: numbers verdicts; gets those that are new.
        """
        numbers = np.full(len(batch.urls.heads), UNDECIDED, np.int32)
        if self._classes is None:
            return numbers
        rows = self._certainly_unlisted(batch)
        if not len(rows):
            return numbers
        classes, members = self._grouped(batch, rows)
        number = verdicts.number
        alike = np.array([UNDECIDED if found.verdict is None else number(found.verdict) for found in classes], np.int32)
        numbers[rows] = alike[members]
        does = np.array([found.does for found in classes], np.int8)[members]
        blocked: set[int] = set()
        for part in _in_parts(batch.urls.starts, rows):
            blocked |= self._tested(batch, rows[part], members[part], classes, does[part], verdicts, numbers)
        other = SPELLED | SLASH if self.wants_digests else SPELLED  # a slash counts for entries of lists alone
        may_differ = batch.urls.flags[rows] & other != 0
        for place in np.flatnonzero((does & ALLOWS != 0) & may_differ).tolist():
            row, of = int(rows[place]), classes[members[place]]
            if row not in blocked and self._may_be_blocked_otherwise(batch.request(row, of), of.pair):
                numbers[row] = UNDECIDED
        return numbers

    def _certainly_unlisted(self, batch: RequestColumns) -> NDArray[np.int64]:
        """Returns the rows of plain URLs that the gate tells to be on no list, without long URLs and pages."""
        urls = batch.urls
        canonical = np.array([is_canonical(name) for name in urls.names] + [False], np.bool_)
        short_page = np.array([page is None or len(page.text) <= LONGEST_PAGE for page in batch.pages.values], np.bool_)
        plain = canonical[urls.heads] & short_page[batch.pages.numbers] & (np.diff(urls.starts) <= LONGEST + 1)
        if urls.digests is None:
            return np.flatnonzero(plain)
        rows = np.flatnonzero(plain & (urls.flags & OTHER_KEY == 0))
        rows = rows[~self._state.lists.bloom.ask_many(urls.digests[rows])]
        names, odd = urls.names, np.flatnonzero(plain & (urls.flags & OTHER_KEY != 0)).tolist()
        keyed = [(row, plain_url(batch.text_of(row), names[urls.heads[row]].decode())) for row in odd]
        others = [row for row, url in keyed if not self._passes_gate(url)]
        return np.sort(np.concatenate([rows, np.array(others, np.int64)]))

    def _grouped(self, batch: RequestColumns, rows: NDArray[np.int64]) -> tuple[list[RequestClass], NDArray[np.int64]]:
        """Returns the classes of these rows, and the number of each row's class."""
        assert self._classes is not None
        pages, kinds, heads = batch.pages, batch.kinds, batch.urls.heads
        together = (heads[rows].astype(np.int64) * len(pages.values) + pages.numbers[rows]) * len(kinds.values)
        keys, members = np.unique(together + kinds.numbers[rows], return_inverse=True)
        names = [name.decode() for name in batch.urls.names]
        page_texts = ["" if page is None else page.text for page in pages.values]
        kind_names = [kind.value for kind in kinds.values]
        of = self._classes.of
        head, rest = np.divmod(keys, len(pages.values) * len(kinds.values))
        page, kind = np.divmod(rest, len(kinds.values))
        places = zip(head.tolist(), page.tolist(), kind.tolist(), strict=True)
        return [of(names[one], page_texts[two], kind_names[three]) for one, two, three in places], members

    def _tested(
        self,
        batch: RequestColumns,
        rows: NDArray[np.int64],
        members: NDArray[np.int64],
        classes: list[RequestClass],
        does: NDArray[np.int8],
        verdicts: VerdictTable,
        numbers: NDArray[np.int32],
    ) -> set[int]:
        """Puts down the verdicts of rules that are tested one by one. Returns the rows that a rule blocks."""
        assert self._classes is not None
        adblock = self._state.adblock
        tests = does & TESTS != 0
        hits: dict[int, list[tuple[int, ...]]] = {}
        for scan in (SCANS_BLOCKS, SCANS_EXCEPTIONS):
            places = np.flatnonzero(does & scan)
            found_in = self._literals_in(batch, rows[places], exceptions=scan == SCANS_EXCEPTIONS)
            with_hits = places[list(found_in)]
            tests[with_hits] = True
            if scan == SCANS_BLOCKS:
                hits = dict(zip(with_hits.tolist(), found_in.values(), strict=True))
        tested = np.flatnonzero(tests)
        some, of_some = _those_in_use(classes, members[tested])
        looked = self._tested_rows(batch, rows[tested], of_some, some)
        looked.hits = [hits.get(place, NO_HITS) for place in tested.tolist()]
        between = [(found.pair or NO_PAIR).blocks for found in some]
        rules = np.array(first_of_each(adblock.blocks, between, looked), np.int64)
        blocking = np.flatnonzero(rules >= 0)
        at, of = rows[tested[blocking]], members[tested[blocking]]
        excepted = self._excepted(batch, at, of, classes)
        known: dict[tuple[int, int], int] = {}
        for row, member, rule in zip(at.tolist(), of.tolist(), rules[blocking].tolist(), strict=True):
            if row in excepted:
                numbers[row] = UNDECIDED
                continue
            found = classes[member]
            number = None if found.stubs else known.get((member, rule))
            if number is None:
                request = batch.request(row, found) if found.stubs else found.shared
                assert request is not None
                verdict = self._classes.block_verdict(found, rule, request)
                number = known[member, rule] = UNDECIDED if verdict is None else verdicts.number(verdict)
            numbers[row] = number
        return set(at.tolist())

    def _excepted(
        self, batch: RequestColumns, rows: NDArray[np.int64], members: NDArray[np.int64], classes: list[RequestClass]
    ) -> set[int]:
        """Returns those of some rows that an exception matches."""
        of = [classes[member].pair or NO_PAIR for member in members.tolist()]
        may = np.flatnonzero(np.array([not pair.exceptions.is_empty for pair in of], np.bool_))
        if not len(may):
            return set()
        scanned = np.flatnonzero(np.array([pair.exceptions.scans for pair in of], np.bool_))
        found_in = self._literals_in(batch, rows[scanned], exceptions=True)
        hits = dict(zip(scanned[list(found_in)].tolist(), found_in.values(), strict=True))
        some, of_some = _those_in_use(classes, members[may])
        looked = self._tested_rows(batch, rows[may], of_some, some)
        looked.hits = [hits.get(place, NO_HITS) for place in may.tolist()]
        between = [(found.pair or NO_PAIR).exceptions for found in some]
        rules = first_of_each(self._state.adblock.exceptions, between, looked)
        return {row for row, rule in zip(rows[may].tolist(), rules, strict=True) if rule >= 0}

    def _literals_in(
        self, batch: RequestColumns, rows: NDArray[np.int64], *, exceptions: bool
    ) -> dict[int, list[tuple[int, ...]]]:
        """Returns the hits of literals in the URLs of some rows, by their places among these."""
        urls = batch.urls
        return self._state.adblock.literals_in(urls.lowered, urls.starts[rows], urls.starts[rows + 1] - 1, exceptions=exceptions)

    def _tested_rows(
        self, batch: RequestColumns, rows: NDArray[np.int64], members: NDArray[np.int64], classes: list[RequestClass]
    ) -> TestedRows:
        """Returns some rows as they are tested, without hits."""
        urls, methods, at, of = batch.urls, batch.methods, rows.tolist(), members.tolist()
        shared = np.array([method == "GET" for method in methods.values], np.bool_)[methods.numbers[rows]].tolist()
        return TestedRows(
            urls.lowered,
            urls.starts[rows].tolist(),
            (urls.starts[rows + 1] - 1).tolist(),
            of,
            ["" if found.pair is None else found.pair.source for found in classes],
            [len(found.head) for found in classes],
            [classes[member].shared if is_shared else None for member, is_shared in zip(of, shared, strict=True)],
            lambda number: batch.request(at[number], classes[of[number]]),
        )

    def _may_be_blocked_otherwise(self, request: Request, pair: PairRules | None) -> bool:
        """Returns whether another spelling of a URL may be blocked.

        Args:
            request: that nothing blocks as it is.
            pair: the Adblock rules of its class.
        """
        if self._may_be_listed_without_slash(request.url):
            return True
        if pair is None and not self.wants_digests:
            return False
        page, kind, method = request.source, request.resource_type, request.method
        return any(self._may_be_blocked(Request(other, page, kind, method), pair) for other in spellings_of(request.url))

    def _may_be_blocked(self, request: Request, pair: PairRules | None) -> bool:
        url = request.url
        if (self.wants_digests and self._passes_gate(url)) or self._may_be_listed_without_slash(url):
            return True
        return pair is not None and self._state.adblock.first_block(pair, request, url.text.lower(), None) >= 0

    def _passes_gate(self, url: Url) -> bool:
        return self._state.lists.bloom.ask(url.digest) is not BloomAnswer.NO

    def _may_be_listed_without_slash(self, url: Url) -> bool:
        if not self.wants_digests or not url.path.endswith("/") or not url.path.strip("/"):
            return False
        path, mark, query = url.key.partition("?")
        return may_be_listed(self._state.lists, digest_of(f"{path.rstrip('/')}{mark}{query}"))


def _those_in_use(classes: list[RequestClass], members: NDArray[np.int64]) -> tuple[list[RequestClass], NDArray[np.int64]]:
    """Returns the classes of some rows alone, and the number of each row's class among them: most classes need no test."""
    used, numbers = np.unique(members, return_inverse=True)
    return [classes[member] for member in used.tolist()], numbers


def _in_parts(starts: NDArray[np.int64], rows: NDArray[np.int64]) -> list[slice]:
    """Returns the parts of some rows whose URLs are near each other: within `_TOGETHER` bytes, one row at least."""
    begins = starts[rows]
    cuts = [0]
    while cuts[-1] < len(rows):
        cuts.append(int(np.searchsorted(begins, begins[cuts[-1]] + _TOGETHER)))
    return [slice(begin, end) for begin, end in pairwise(cuts)]
