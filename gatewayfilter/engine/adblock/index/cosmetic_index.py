"""The index of cosmetic rules: their compiled form, and their effects on the pages of one host.

Rules that name hosts are found by the checksum of a host's names, in a sorted array that is read in place and not held in
memory. Generic rules are stored as ready CSS rules of `CHUNK` selectors each. Where a host has exceptions, the CSS rules that
they affect are rebuilt for it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Final
from zlib import crc32

from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache
from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_numbers
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import CosmeticRule, Effect, Subject, read_cosmetic
from gatewayfilter.engine.adblock.syntax.path_condition import PathCondition
from gatewayfilter.engine.adblock.syntax.rule import NO_HOSTS, HostSet
from gatewayfilter.engine.adblock.syntax.script_removal import ScriptRemoval
from gatewayfilter.errors import RuleError, SnapshotError
from gatewayfilter.safe_regex.cost_guard import guard_regex

CHUNK: Final = 64
"""Selectors of one CSS rule. If a browser rejects one of them, the whole CSS rule is lost."""

HIDING: Final = "{display:none!important}"
FEW_BYTES: Final = 16_384
"""Maximum bytes of a list's generic CSS that is added to every page; EasyList's has 212 kB."""
MAX_NAMED: Final = 64
"""Maximum of rules that are named for one page."""

MAX_CONDITIONS: Final = 32
"""Maximum of different `:matches-path()` of a host; the rules of further ones do not apply."""

_NO_CHUNK: Final = 0xFFFFFFFF


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes four times as long to make; nothing assigns to it
class CosmeticRecord:
    """A cosmetic rule as the builder passes it on, with its text, source and line number."""

    rule: CosmeticRule
    text: str
    source: int
    line: int


@dataclass(slots=True)
class _Chunk:
    source: int
    rules: list[int] = field(default_factory=list)
    selectors: list[str] = field(default_factory=list)


def pack_cosmetics(records: Sequence[CosmeticRecord]) -> list[bytes]:
    """Returns the sections that `CosmeticIndex` reads."""
    places: dict[int, list[int]] = {}
    everywhere: list[int] = []
    lifted: list[int] = []
    subjects: list[tuple[int, int]] = []
    chunks: list[_Chunk] = []
    open_chunks: dict[int, _Chunk] = {}
    for number, record in enumerate(records):
        rule = record.rule
        hosts, not_hosts = rule.hosts, rule.not_hosts
        if hosts is not NO_HOSTS or not_hosts is not NO_HOSTS:
            for name in sorted(hosts.names | not_hosts.names):
                places.setdefault(checksum(name), []).append(number)
        spares_some = rule.exception and rule.generic and bool(not_hosts)
        if hosts.patterns or not_hosts.patterns or spares_some:
            everywhere.append(number)
        if not rule.generic:
            continue
        if rule.exception:
            if not spares_some:
                lifted.append(number)
        else:
            _put_in_chunk(number, record, chunks, open_chunks)
            subjects.append((checksum(rule.text), number))
    texts = [record.text.encode(errors="replace") for record in records]
    css = [f"{','.join(chunk.selectors)}{HIDING}".encode() for chunk in chunks]
    chunk_of = {number: place for place, chunk in enumerate(chunks) for number in chunk.rules}
    subjects.sort()
    keys = sorted(places)
    return [
        *_pack_texts(texts),
        pack_numbers(record.line for record in records),
        pack_numbers(record.source for record in records),
        pack_numbers(chunk_of.get(number, _NO_CHUNK) for number in range(len(records))),
        pack_numbers(keys),
        *_pack_lists([places[key] for key in keys]),
        pack_numbers(everywhere),
        pack_numbers(lifted),
        pack_numbers(key for key, _ in subjects),
        pack_numbers(number for _, number in subjects),
        *_pack_texts(css),
        pack_numbers(chunk.source for chunk in chunks),
        *_pack_lists([chunk.rules for chunk in chunks]),
    ]


def _put_in_chunk(number: int, record: CosmeticRecord, chunks: list[_Chunk], open_chunks: dict[int, _Chunk]) -> None:
    chunk = open_chunks.get(record.source) if record.rule.shared else None
    if chunk is None or len(chunk.rules) >= CHUNK:
        chunk = _Chunk(record.source)
        chunks.append(chunk)
        if record.rule.shared:
            open_chunks[record.source] = chunk
    chunk.rules.append(number)
    chunk.selectors.append(record.rule.text)


def _pack_texts(texts: Sequence[bytes]) -> list[bytes]:
    return [b"".join(texts), pack_numbers(accumulate(map(len, texts), initial=0))]


def _pack_lists(lists: Sequence[Sequence[int]]) -> list[bytes]:
    return [pack_numbers(accumulate(map(len, lists), initial=0)), pack_numbers(chain.from_iterable(lists))]


def checksum(text: str) -> int:
    """Returns the key of a host name or selector; collisions are resolved by reading the rules."""
    return crc32(text.encode(errors="replace"))


class _Lists:
    """Number → numbers, read in place."""

    __slots__ = ("_numbers", "_starts")

    def __init__(self, sections: SectionReader, count: int) -> None:
        self._starts = sections.numbers()
        self._numbers = sections.numbers()
        if len(self._starts) != count + 1 or self._starts[-1] != len(self._numbers):
            raise SnapshotError("the compiled Adblock rules are damaged")

    def __getitem__(self, place: int) -> Sequence[int]:
        return self._numbers[self._starts[place] : self._starts[place + 1]]


class _Texts:
    """Number → text, read in place."""

    __slots__ = ("_starts", "_text")

    def __init__(self, sections: SectionReader) -> None:
        self._text = sections.raw()
        self._starts = sections.numbers()
        if not self._starts or self._starts[-1] != len(self._text):
            raise SnapshotError("the compiled Adblock rules are damaged")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def size(self, place: int) -> int:
        """Returns the length of a text in bytes."""
        return self._starts[place + 1] - self._starts[place]

    def __getitem__(self, place: int) -> str:
        return str(self._text[self._starts[place] : self._starts[place + 1]], "utf-8", "replace")


@dataclass(frozen=True, slots=True)
class HostLooks:
    """Effects of cosmetic rules on a host's pages.

    Attributes:
        css: of the rules that name the host.
        remove: selectors of elements to remove.
        edits: scripts to remove by their text.
        headers: response headers to remove.
        rules: (source, line, rule) of the rules applied, at most `MAX_NAMED`.
        own_chunks: generic CSS rules that differ on this host, by number.
        conditions: of rules for some of the host's pages only; these rules are in effect where theirs holds.
    """

    css: str = ""
    remove: tuple[str, ...] = ()
    edits: tuple[ScriptRemoval, ...] = ()
    headers: tuple[str, ...] = ()
    rules: tuple[tuple[int, int, str, Effect], ...] = ()
    own_chunks: tuple[tuple[int, str], ...] = ()
    conditions: tuple[PathCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class _Base:
    """The generic part for a set of lists that are off: CSS rules by number and joined, and what exceptions disable."""

    chunks: dict[int, str]
    css: tuple[str, str]
    gone: frozenset[int]
    lifted: frozenset[Subject]


class CosmeticIndex:
    """Cosmetic rules in the form of `pack_cosmetics`; entries are read at their first use.

    Raises:
        SnapshotError: it is damaged.
    """

    def __init__(self, sections: SectionReader) -> None:
        self._texts = _Texts(sections)
        self._lines = sections.numbers()
        self._sources = sections.numbers()
        self._chunk_of = sections.numbers()
        self._hosts = sections.numbers()
        self._host_rules = _Lists(sections, len(self._hosts))
        self._everywhere = sections.numbers()
        self._lifted = sections.numbers()
        self._subjects = sections.numbers()
        self._subject_rules = sections.numbers()
        self._chunks = _Texts(sections)
        self._chunk_sources = sections.numbers()
        self._chunk_rules = _Lists(sections, len(self._chunk_sources))
        if not len(self._texts) == len(self._lines) == len(self._sources) == len(self._chunk_of):
            raise SnapshotError("the compiled Adblock rules are damaged")
        if len(self._chunks) != len(self._chunk_sources) or len(self._subjects) != len(self._subject_rules):
            raise SnapshotError("the compiled Adblock rules are damaged")
        self._of_few = self._find_few()
        self._looks: BoundedCache[tuple[str, frozenset[int], tuple[bool, ...]], HostLooks] = BoundedCache(self._look_at)
        self._bases: dict[frozenset[int], _Base] = {}

    def __len__(self) -> int:
        """Number of rules."""
        return len(self._texts)

    def looks(self, host: str, off: frozenset[int], path: str = "/") -> HostLooks:
        """Returns the effects on a page of the rules that name hosts.

        Args:
            host: of the page.
            off: lists that do not count.
            path: path and query of the page.
        """
        looks = self._looks[host, off, ()]
        if looks.conditions:
            return self._looks[host, off, tuple(condition.holds(path) for condition in looks.conditions)]
        return looks

    def prepare(self, off: frozenset[int]) -> None:
        """Builds the CSS that every page needs, so that the first page does not wait for it."""
        self._base(off)

    def generic_css(self, own: Iterable[tuple[int, str]], off: frozenset[int]) -> tuple[str, str]:
        """Returns the CSS of generic rules: of lists with few of them, and of lists with many (`FEW_BYTES`).

        Args:
            own: what differs on a host (`HostLooks.own_chunks`).
            off: lists that do not count.
        """
        base = self._base(off)
        changed = dict(own)
        return self._parted({**base.chunks, **changed}) if changed else base.css

    def _parted(self, chunks: dict[int, str]) -> tuple[str, str]:
        few = self._of_few
        return (
            "".join(css for place, css in chunks.items() if place in few),
            "".join(css for place, css in chunks.items() if place not in few),
        )

    def _base(self, off: frozenset[int]) -> _Base:
        """Returns the generic part; computed once."""
        base = self._bases.get(off)
        if base is None:
            rules = [self._rule(number) for number in self._lifted if self._sources[number] not in off]
            gone = self._rules_of({rule.text for rule in rules if rule.effect is Effect.HIDE})
            chunks = {place: self._chunks[place] for place, source in enumerate(self._chunk_sources) if source not in off}
            chunks |= self._without(gone, off)
            lifted = frozenset(rule.subject for rule in rules)
            base = self._bases[off] = _Base(chunks, self._parted(chunks), frozenset(gone), lifted)
        return base

    def _find_few(self) -> frozenset[int]:
        """Returns the numbers of the generic CSS rules of lists with few of them."""
        sizes: Counter[int] = Counter()
        for place, source in enumerate(self._chunk_sources):
            sizes[source] += self._chunks.size(place)
        return frozenset(place for place, source in enumerate(self._chunk_sources) if sizes[source] <= FEW_BYTES)

    def _rule(self, number: int) -> CosmeticRule:
        try:
            return read_cosmetic(self._texts[number])
        except RuleError as error:
            raise SnapshotError("the compiled Adblock rules are damaged") from error

    def _found(self, host: str) -> list[int]:
        found: set[int] = set(self._everywhere)
        hosts = self._hosts
        for name in host_names(host):
            key = checksum(name)
            place = bisect_left(hosts, key)
            if place < len(hosts) and hosts[place] == key:
                found.update(self._host_rules[place])
        return sorted(found)

    def _look_at(self, key: tuple[str, frozenset[int], tuple[bool, ...]]) -> HostLooks:
        host, off, held = key
        numbers = [number for number in self._found(host) if self._sources[number] not in off]
        if not numbers:
            return _PLAIN
        rules = [(number, self._rule(number)) for number in numbers]
        base = self._base(off)
        own = {rule.subject for _, rule in rules if rule.exception and works_on(rule, host)}
        lifted = own | base.lifted
        kept: dict[Subject, tuple[int, CosmeticRule]] = {}
        spared: list[int] = []
        for number, rule in rules:
            if rule.exception:
                continue
            if rule.generic:
                if not works_on(rule, host):
                    spared.append(number)
            elif rule.subject not in lifted and works_on(rule, host):
                kept.setdefault(rule.subject, (number, rule))
        gone = self._rules_of({text for effect, text, _, _ in own if effect is Effect.HIDE})
        gone.update(number for number in spared if self._chunk_of[number] != _NO_CHUNK)
        conditions = tuple(dict.fromkeys(rule.path for _, rule in kept.values() if rule.path is not None))[:MAX_CONDITIONS]
        true = {None, *(condition for condition, holds in zip(conditions, held, strict=False) if holds)}
        shown = [found for found in kept.values() if found[1].path in true]
        return self._joined(shown, tuple(self._without(gone - base.gone, off, base.gone)), conditions)

    def _joined(
        self, kept: list[tuple[int, CosmeticRule]], own: tuple[tuple[int, str], ...], conditions: tuple[PathCondition, ...]
    ) -> HostLooks:
        css: list[str] = []
        shared = [rule.text for _, rule in kept if rule.effect is Effect.HIDE and rule.shared]
        if shared:
            css.append(f"{','.join(shared)}{HIDING}")
        css += [rule.css for _, rule in kept if rule.effect is Effect.HIDE and not rule.shared]
        css += [rule.css for _, rule in kept if rule.effect is Effect.STYLE]
        return HostLooks(
            "".join(css),
            tuple(rule.text for _, rule in kept if rule.effect is Effect.REMOVE),
            tuple(ScriptRemoval(rule.text) for _, rule in kept if rule.effect is Effect.SCRIPT_TEXT),
            tuple(rule.text for _, rule in kept if rule.effect is Effect.HEADER),
            tuple(
                (self._sources[number], self._lines[number], self._texts[number], rule.effect)
                for number, rule in kept[:MAX_NAMED]
            ),
            own,
            conditions,
        )

    def _rules_of(self, selectors: set[str]) -> set[int]:
        """Returns the generic rules with one of these selectors."""
        found: set[int] = set()
        for selector in selectors:
            key = checksum(selector)
            place = bisect_left(self._subjects, key)
            while place < len(self._subjects) and self._subjects[place] == key:
                number = self._subject_rules[place]
                if self._rule(number).text == selector:
                    found.add(number)
                place += 1
        return found

    def _without(
        self, gone: set[int], off: frozenset[int], gone_everywhere: frozenset[int] = frozenset()
    ) -> list[tuple[int, str]]:
        """Returns the generic CSS rules that contain one of these rules, rebuilt without it."""
        changed = []
        for place in sorted({self._chunk_of[number] for number in gone}):
            if self._chunk_sources[place] in off:
                continue
            numbers = (number for number in self._chunk_rules[place] if number not in gone and number not in gone_everywhere)
            kept = [self._rule(number).text for number in numbers]
            changed.append((place, f"{','.join(kept)}{HIDING}" if kept else ""))
        return changed


_PLAIN = HostLooks()


def works_on(rule: CosmeticRule, host: str) -> bool:
    """Returns whether a rule applies to a host: the longest of the names that cover the host decides."""
    names = host_names(host)
    included, excluded = _best(rule.hosts, host, names), _best(rule.not_hosts, host, names)
    if rule.generic:
        return excluded == 0
    return included > excluded


def _best(hosts: HostSet, host: str, names: Sequence[str]) -> int:
    """Returns the length of the longest name that covers the host, 0 without one; an expression counts as the whole host."""
    for pattern in hosts.patterns:
        guarded = guard_regex(pattern)
        if len(host) <= guarded.max_length and guarded.compile().search(host):
            return len(host)
    return max((len(name) for name in names if name in hosts.names), default=0)
