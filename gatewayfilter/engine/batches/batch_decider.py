"""The decision on batches of requests, in columns: the verdicts of `FilterEngine.decide` at a fraction of its cost.

1. URLs that are not plain are left to the engine, as are all whose digest passes the Bloom gate (a hundredth at most).
2. The others are grouped by request class: host, page and type. Many classes have one verdict.
3. The URLs of the rest are searched for the literals of rules in one call. Those with hits, and those of classes with rules to
   be tested, are tested one by one.
4. What no rule blocks has the verdict of its class, unless its path has other spellings: these are left to the engine too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.batches.plain_urls import SLASH, SPELLED, PlainUrls, is_canonical, plain_url
from gatewayfilter.engine.batches.request_classes import (
    ALLOWS,
    SCANS_BLOCKS,
    SCANS_EXCEPTIONS,
    TESTS,
    RequestClass,
    RequestClasses,
)
from gatewayfilter.engine.batches.verdict_table import VerdictTable
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.path_spellings import has_spellings
from gatewayfilter.engine.state.list_lookup import may_be_listed
from gatewayfilter.model import ListAction, Request, ResourceType
from gatewayfilter.urls import Url, digest_of

UNDECIDED: Final = -1
"""In place of a verdict's number: the engine has to decide the request."""


LONGEST: Final = 2_048
"""Characters of the longest URL and page that are decided here: what is kept of a batch stays within some hundred megabytes
whatever its URLs contain."""


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

    def request(self, row: int, begin: int, of: RequestClass) -> Request:
        """Returns a request whose URL is plain.

        Args:
            row: of the request.
            begin: where its URL begins in `text`.
            of: its class.
        """
        starts = self.urls.starts
        text = str(self.text[begin : begin + starts[row + 1] - starts[row] - 1], "ascii")
        methods = self.methods
        method = methods.values[0] if len(methods.values) == 1 else methods.values[methods.numbers[row]]
        return Request(plain_url(text, of.head), of.page, of.kind, method)


class BatchDecider:
    """Decides batches by an engine as its lists are now.

    Args:
        engine: decides what is left.

    Attributes:
        wants_digests: lists have entries that may be URLs.
    """

    def __init__(self, engine: FilterEngine) -> None:
        self._state = state = engine.state
        lists = state.lists
        plain = state.policies is None and not state.overlay.rules and not lists.learned
        self._classes: RequestClasses | None = None
        if plain and state.adblock.takes_pairs(state.off_sources):
            self._classes = RequestClasses(state, engine.clock)
        self.wants_digests = bool(lists.tables[ListAction.BLOCK].count or lists.tables[ListAction.ALLOW].count)

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
        blocked = self._tested(batch, rows, members, classes, does, verdicts, numbers)
        flags = batch.urls.flags[rows]
        for place in np.flatnonzero((does & ALLOWS != 0) & (flags & (SPELLED | SLASH) != 0)).tolist():
            row = int(rows[place])
            if row not in blocked and self._has_other(batch.request(row, int(batch.begins[row]), classes[members[place]]).url):
                numbers[row] = UNDECIDED
        return numbers

    def _certainly_unlisted(self, batch: RequestColumns) -> NDArray[np.int64]:
        """Returns the rows of plain URLs that the gate tells to be on no list, without long URLs and pages."""
        urls = batch.urls
        canonical = np.array([is_canonical(name) for name in urls.names] + [False], np.bool_)
        short_page = np.array([page is None or len(page.text) <= LONGEST for page in batch.pages.values], np.bool_)
        plain = canonical[urls.heads] & short_page[batch.pages.numbers] & (np.diff(urls.starts) <= LONGEST)
        if urls.digests is None:
            return np.flatnonzero(plain)
        rows = np.flatnonzero(plain & urls.digests.any(axis=1))
        return rows[~self._state.lists.bloom.ask_many(urls.digests[rows])]

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
        lowered, starts = batch.urls.lowered, batch.urls.starts
        tests = does & TESTS != 0
        hits: dict[int, list[tuple[int, ...]]] = {}
        for scan in (SCANS_BLOCKS, SCANS_EXCEPTIONS):
            places = np.flatnonzero(does & scan)
            searched = [lowered[starts[row] : starts[row + 1] - 1] for row in rows[places].tolist()]
            found_in = adblock.literals_in(searched, exceptions=scan == SCANS_EXCEPTIONS)
            with_hits = places[list(found_in)]
            tests[with_hits] = True
            if scan == SCANS_BLOCKS:
                hits = dict(zip(with_hits.tolist(), found_in.values(), strict=True))
        blocked: set[int] = set()
        tested = np.flatnonzero(tests)
        tested_rows = rows[tested]
        begins = batch.begins[tested_rows].tolist()
        for place, row, begin, member in zip(
            tested.tolist(), tested_rows.tolist(), begins, members[tested].tolist(), strict=True
        ):
            found = classes[member]
            assert found.pair is not None
            request = batch.request(row, begin, found)
            low = lowered[starts[row] : starts[row + 1] - 1].decode()
            rule = adblock.first_block(found.pair, request, low, hits.get(place, ()))
            if rule < 0:
                continue
            blocked.add(row)
            verdict = None
            if not adblock.is_excepted(found.pair, request, low):
                verdict = self._classes.block_verdict(found, rule, request)
            numbers[row] = UNDECIDED if verdict is None else verdicts.number(verdict)
        return blocked

    def _has_other(self, url: Url) -> bool:
        """Returns whether another spelling of a URL may be blocked."""
        if has_spellings(url):
            return True
        if not self.wants_digests or not url.path.endswith("/") or not url.path.strip("/"):
            return False
        path, mark, query = url.key.partition("?")
        return may_be_listed(self._state.lists, digest_of(f"{path.rstrip('/')}{mark}{query}"))
