"""The index of modifier rules, which change a request or its response: the same indexes as for blocks, over separate tables.

Rules are grouped by the stage that applies them. A request costs a test of the group's union of types, one look-up of its
host, and a scan for the group's few literals. `$removeparam=name`, the most frequent kind, is found by the names in the query.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import reduce
from itertools import chain
from operator import or_

from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache
from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.near_rules import party_of
from gatewayfilter.engine.adblock.index.pattern import shape_of
from gatewayfilter.engine.adblock.index.rule_index import IndexPlan, RuleIndex, pack_index
from gatewayfilter.engine.adblock.index.rule_table import RuleColumns, RuleTable, pack_rules
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_names, pack_numbers
from gatewayfilter.engine.adblock.syntax.modifier_values import PAGE_SWITCHES, REDIRECTS, Prepared, prepare
from gatewayfilter.engine.adblock.syntax.removeparam import ParamFilter, spellings
from gatewayfilter.engine.adblock.syntax.response_conditions import (
    AddressTest,
    HeaderTest,
    address_test,
    canonical_address,
    header_test,
    plain_addresses,
)
from gatewayfilter.engine.adblock.syntax.rule import TYPE_BITS, AdblockMatch, NetworkRule
from gatewayfilter.errors import RuleError, SnapshotError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import host_suffixes


class Group(IntEnum):
    """The stage at which rules are applied; in the order of the compiled form."""

    REQUEST = 0
    RESPONSE = 1
    REDIRECT = 2
    PAGE = 3
    SUSPEND = 4


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A modifier rule in compiled form.

    Attributes:
        match: the rule with its list and line.
        does: its compiled value; "" for an exception without one, which disables all rules of its modifier.
        test: of pattern and conditions, as in `CompiledRule`.
        header, address: further tests of the response.
    """

    match: AdblockMatch
    test: Callable[[Request, str, str], bool]
    modifier: str
    value: str
    does: Prepared
    header: HeaderTest | None = None
    address: AddressTest | None = None

    def lifts(self, other: "FoundRule") -> bool:
        """Returns whether this exception disables another rule of the same modifier."""
        return (not self.value or self.value == other.value) and (self.match.important or not other.match.important)


_TYPE_BITS = dict(TYPE_BITS)
_DOCUMENT = TYPE_BITS[ResourceType.DOCUMENT]


def _views(request: Request) -> tuple[tuple[int, str], ...]:
    """Returns pairs of the bit of a request's type and a host that counts as its source.

    A page counts as its own source, and so does the page that linked to it: `$csp,domain=` means the page itself in uBlock
    Origin, the linking page in adblock-rust, and both in AdGuard.
    """
    kind = _TYPE_BITS[request.resource_type]
    page = request.source
    if kind != _DOCUMENT:
        return ((kind, "" if page is None else page.host),)
    host = request.url.host
    if page is None or page.host == host:
        return ((kind, host),)
    return (kind, host), (kind, page.host)


def group_of(rule: NetworkRule) -> Group:
    """Returns the stage at which a modifier rule is applied."""
    if rule.modifier == "genericblock":
        return Group.SUSPEND
    if rule.modifier in PAGE_SWITCHES:
        return Group.PAGE
    if rule.modifier in REDIRECTS:
        return Group.REDIRECT
    if rule.modifier in {"csp", "permissions", "replace", "response"}:
        return Group.RESPONSE
    if rule.modifier == "removeheader" and not rule.value.lower().startswith("request:"):
        return Group.RESPONSE
    return Group.REQUEST


def addresses_of(rule: NetworkRule) -> tuple[str, ...]:
    """Returns the server addresses by which a rule is indexed, none when it is indexed otherwise."""
    return plain_addresses(rule.conditions.address) if rule.conditions.address and not rule.exception else ()


def param_of(rule: NetworkRule) -> str:
    """Returns the name of the single parameter that a rule removes, "" when it is not indexed by name."""
    if rule.modifier != "removeparam" or rule.exception or not rule.value:
        return ""
    does = prepare(rule.modifier, rule.value)
    name = does.name if isinstance(does, ParamFilter) else ""
    return "" if "\n" in name else name


@dataclass(slots=True)
class ParamPlan:
    """The plan of rules that remove one parameter each.

    Attributes:
        names: name of a parameter → rules.
        reach: host of requests (`|host`), host of pages (`@host`), or "" for any → numbers of the names that may apply there.
    """

    names: dict[str, list[int]] = field(default_factory=dict)
    reach: dict[str, list[int]] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, rule: NetworkRule, number: int) -> None:
        """Adds a rule."""
        self.names.setdefault(name, []).append(number)
        host = shape_of(rule).host
        pages = rule.conditions.sources
        targets = rule.conditions.targets
        keys = [""]
        if targets and not targets.patterns and not any(name.endswith(".*") for name in targets.names):
            keys = [f"|{target}" for target in sorted(targets.names)]
        elif host:
            keys = [f"|{host}"]
        elif pages and not pages.patterns:
            keys = [f"@{page}" for page in sorted(pages.names)]
        for key in keys:
            self.reach.setdefault(key, []).append(self._places.setdefault(name, len(self._places)))


def _pack_postings(table: Mapping[str, list[int]]) -> list[bytes]:
    starts = [0]
    for numbers in table.values():
        starts.append(starts[-1] + len(numbers))
    return [pack_names(table), pack_numbers(starts), pack_numbers(number for numbers in table.values() for number in numbers)]


def _read_postings(sections: SectionReader) -> dict[str, tuple[int, ...]]:
    names, starts, numbers = sections.names(), sections.numbers(), sections.numbers()
    if not names and len(starts) == 2:  # the one key ""
        names = [""]
    if len(starts) != len(names) + 1 or starts[-1] != len(numbers):
        raise SnapshotError("the compiled Adblock rules are damaged")
    return {name: tuple(numbers[starts[place] : starts[place + 1]]) for place, name in enumerate(names)}


def pack_modifiers(
    columns: RuleColumns, params: ParamPlan, addresses: Mapping[str, list[int]], plans: Iterable[IndexPlan]
) -> list[bytes]:
    """Returns the sections that `ModifierIndex` reads.

    Args:
        columns: all modifier rules.
        params: those indexed by the parameter that they remove.
        addresses: those indexed by the server's address.
        plans: of the other rules, one per group.
    """
    sections = [
        *pack_rules(columns),
        *_pack_postings(params.names),
        *_pack_postings(dict(sorted(params.reach.items()))),
        *_pack_postings(addresses),
    ]
    kinds: list[int] = []
    for plan in plans:
        sections += pack_index(plan)
        numbers = chain(plan.everywhere, *plan.hosts.values(), *plan.literals.values(), *plan.sources.values())
        kinds.append(reduce(or_, (columns.rules[number].types for number in numbers), 0))
    return [*sections, pack_numbers(kinds)]


class ModifierIndex:
    """Modifier rules in the form of `pack_modifiers`.

    Attributes:
        table: of all modifier rules.
        asks_responses: there are rules for responses.

    Raises:
        SnapshotError: it is damaged.
    """

    def __init__(self, sections: SectionReader) -> None:
        self.table = RuleTable(sections)
        self._params = _read_postings(sections)
        names = tuple(self._params)
        reach = _read_postings(sections)
        written = [spellings(name) for name in names]
        self._reach = {key: frozenset(chain.from_iterable(written[place] for place in places)) for key, places in reach.items()}
        self._anywhere = self._reach.pop("", frozenset())
        self._addresses = _read_postings(sections)
        indexes = [RuleIndex(sections, self.table) for _ in Group]
        self._kinds = tuple(sections.numbers())
        self._indexes = tuple(index if kinds else None for index, kinds in zip(indexes, self._kinds, strict=True))
        self.asks_responses = bool(self._addresses) or self._indexes[Group.RESPONSE] is not None
        self._ready: dict[int, FoundRule] = {}
        self._concerns = BoundedCache(self._find_concern)

    def find(self, group: Group, request: Request, off: frozenset[int]) -> list[FoundRule]:
        """Returns every rule of a group that matches and whose source is on.

        Args:
            group: of the rules to test.
            request: the request.
            off: lists that do not count.
        """
        index = self._indexes[group]
        if index is None:
            return []
        lowered = request.url.text.lower()
        found: dict[int, None] = {}
        for kind, source in _views(request):
            bits = kind * party_of(request.url.host, source)
            found.update(dict.fromkeys(index.all(request, lowered, bits, source, off)))
        return [self.ready(rule) for rule in found]

    def may_find(self, group: Group, host: str, source: str, kind: ResourceType) -> bool:
        """Returns whether a rule of a group may match requests of a type other than pages between two hosts, all sources on."""
        index = self._indexes[group]
        if index is None or not self._kinds[group] & _TYPE_BITS[kind]:
            return False
        return not index.between(host, source, _TYPE_BITS[kind]).is_empty

    def finds_any(self, group: Group, request: Request) -> bool:
        """Returns, at minimal cost, whether a rule of a group matches while all sources are on."""
        index = self._indexes[group]
        kind = _TYPE_BITS[request.resource_type]
        if index is None or not self._kinds[group] & kind:
            return False
        if kind != _DOCUMENT:  # most requests: one view
            page = request.source
            return index.first(request, kind, "" if page is None else page.host) >= 0
        return any(index.first(request, kind, source) >= 0 for kind, source in _views(request))

    def concern(self, request: Request) -> tuple[bool, frozenset[str]]:
        """Returns whether rules that change requests may match, all sources on, and the spellings of parameters that may go.

        One look-up for most requests, to which no rule applies. The first value ignores rules that are indexed by parameter.
        """
        kind = _TYPE_BITS[request.resource_type]
        page = request.source
        if kind != _DOCUMENT:
            kinds, names = self._concerns[request.url.host, "" if page is None else page.host]
            return kinds & kind != 0, names
        near = [self._concerns[request.url.host, source] for _, source in _views(request)]
        if len(near) == 1:
            return near[0][0] & kind != 0, near[0][1]
        return (near[0][0] | near[1][0]) & kind != 0, near[0][1] | near[1][1]

    def _find_concern(self, hosts: tuple[str, str]) -> tuple[int, frozenset[str]]:
        index = self._indexes[Group.REQUEST]
        return 0 if index is None else index.kinds_near(*hosts), self._find_params_near(hosts)

    def _find_params_near(self, hosts: tuple[str, str]) -> frozenset[str]:
        host, source = hosts
        found = self._anywhere
        keys = [f"|{name}" for name in host_suffixes(host)]
        keys += [f"@{name}" for name in host_names(source)] if source else []
        for key in keys:
            more = self._reach.get(key)
            found = found if more is None else found | more
        return found

    def find_params(self, names: Iterable[str], request: Request, off: frozenset[int]) -> list[FoundRule]:
        """Returns the rules that remove one of these parameters; arguments as in `find`."""
        table = self.table
        lowered = request.url.text.lower()
        found: dict[int, None] = {}
        for kind, source in _views(request):
            bits = kind * party_of(request.url.host, source)
            for name in names:
                for rule in self._params.get(name, ()):
                    if not table.masks[rule] & bits or table.is_off(rule, off):
                        continue
                    if self.ready(rule).test(request, lowered, source):
                        found[rule] = None
        return [self.ready(rule) for rule in found]

    def find_addresses(self, address: str, request: Request, off: frozenset[int]) -> list[FoundRule]:
        """Returns the matching rules for this server address; arguments as in `find`."""
        rules = self._addresses.get(canonical_address(address), ()) if self._addresses else ()
        return self._matching(rules, request, off) if rules else []

    def find_conditional(self, request: Request, off: frozenset[int]) -> list[FoundRule]:
        """Returns the rules that match if their conditions on response headers or server address hold; for explanations."""
        addressed = dict.fromkeys(chain.from_iterable(self._addresses.values()))
        found = [*self._matching(addressed, request, off), *self.find(Group.RESPONSE, request, off)]
        return [rule for rule in found if rule.header is not None or rule.address is not None]

    def _matching(self, rules: Iterable[int], request: Request, off: frozenset[int]) -> list[FoundRule]:
        table = self.table
        lowered = request.url.text.lower()
        found: dict[int, None] = {}
        for kind, source in _views(request):
            bits = kind * party_of(request.url.host, source)
            for rule in rules:
                if table.masks[rule] & bits and not table.is_off(rule, off) and self.ready(rule).test(request, lowered, source):
                    found[rule] = None
        return [self.ready(rule) for rule in found]

    def ready(self, number: int) -> FoundRule:
        """Returns a rule in compiled form. Results are kept; their number is bounded by that of the rules."""
        found = self._ready.get(number)
        if found is None:
            rule = self.table.rule(number)
            conditions = rule.conditions
            try:
                found = FoundRule(
                    self.table.describe(number),
                    CompiledRule(rule).matches,
                    rule.modifier,
                    rule.value,
                    prepare(rule.modifier, rule.value, rule.pattern) if rule.value or not rule.exception else "",
                    header_test(conditions.header) if conditions.header else None,
                    address_test(conditions.address) if conditions.address else None,
                )
            except RuleError as error:
                raise SnapshotError("the compiled Adblock rules are damaged") from error
            self._ready[number] = found
        return found
