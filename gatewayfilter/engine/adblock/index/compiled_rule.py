"""A compiled network rule: the tests of its pattern and conditions."""

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Literal

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.pattern import PatternTest, TailTest, compile_pattern, compile_tail, shape_of, tail_begin
from gatewayfilter.engine.adblock.syntax.rule import NO_CONDITIONS, NO_HOSTS, ClientSet, Conditions, HostSet, NetworkRule
from gatewayfilter.model import KnownRequest, Request, canonical_address
from gatewayfilter.safe_regex.cost_guard import guard_regex

type ConditionTest = Callable[[str, str, str], bool]
"""(host of the request, host of its source or "", method) → whether it holds."""

type RuleTest = Callable[[Request, str, str], bool]
"""(request, its URL in lower case, host of its source or "") → whether a rule matches it, type and party aside."""

type _Names = frozenset[str] | None

type Bounds = tuple[str, str, int, _Names, _Names, _Names, _Names, RuleTest | Literal[True]]
"""See `CompiledRule.bounds`."""

_ANY: frozenset[str] = frozenset()
_compiled = load("gatewayfilter.engine.adblock._rule_tests")


def is_in(hosts: HostSet, host: str) -> bool:
    """Returns whether a host is one of these hosts, or a subdomain of one."""
    if not hosts.names.isdisjoint(host_names(host)):
        return True
    for pattern in hosts.patterns:
        guarded = guard_regex(pattern)
        if len(host) <= guarded.max_length and guarded.compile().search(host):
            return True
    return False


def compile_conditions(conditions: Conditions) -> ConditionTest | None:
    """Returns the test of a rule's conditions beyond type, party and pattern; `None` when there are none."""
    tests: list[ConditionTest] = []
    if conditions.strict:
        same = conditions.strict == 1
        tests.append(lambda host, source, _: (host == source) is same)
    if conditions.methods:
        tests.append(lambda _, __, method: method.upper() in conditions.methods)
    if conditions.not_methods:
        tests.append(lambda _, __, method: method.upper() not in conditions.not_methods)
    if conditions.sources:
        tests.append(_source_test(conditions.sources))
    if conditions.not_sources:
        tests.append(lambda _, source, __: source == "" or not is_in(conditions.not_sources, source))
    if conditions.targets:
        tests.append(lambda host, _, __: is_in(conditions.targets, host))
    if conditions.not_targets:
        tests.append(lambda host, _, __: not is_in(conditions.not_targets, host))
    if not tests:
        return None
    return _all_of(tests)


def _hosts_of(conditions: Conditions) -> Conditions:
    """Returns those of the conditions that depend on host and page."""
    return Conditions(
        sources=conditions.sources,
        not_sources=conditions.not_sources,
        targets=conditions.targets,
        not_targets=conditions.not_targets,
        strict=conditions.strict,
    )


def _all_of(tests: list[ConditionTest]) -> ConditionTest:
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        one, other = tests
        return lambda host, source, method: one(host, source, method) and other(host, source, method)
    return lambda host, source, method: all(test(host, source, method) for test in tests)


def _source_test(sources: HostSet) -> ConditionTest:
    """Returns the test for `domain=`; the common one without regular expressions is a single set operation."""
    if sources.patterns:
        return lambda _, source, __: source != "" and is_in(sources, source)
    disjoint = sources.names.isdisjoint
    return lambda _, source, __: source != "" and not disjoint(host_names(source))


class CompiledRule:
    """Pattern and conditions of a rule; type and party are its mask, which the index has tested before.

    Attributes:
        in_host: text that the host of every matching request contains, "" for none.
        pages: names of all the pages that it applies to, none where it names none or has expressions for them.
        bounds: what `between` tests, for its compiled twin: `in_host`, the end of ".host", `strict`, the names of sources, of
            excluded ones, of targets and of excluded ones (`None` for none), and what remains; `None` with expressions for hosts.
        matches: the full test, type and party aside. Takes the request, its URL in lower case, and the host of its source
            ("" when there is none).
    """

    __slots__ = ("_hosts", "_hosts_fit", "_rest", "_suffix", "bounds", "in_host", "matches", "pages")

    def __init__(self, rule: NetworkRule) -> None:
        conditions = rule.conditions
        shape = shape_of(rule)
        pattern = compile_pattern(rule)
        self.matches = _rule_test(pattern, compile_conditions(conditions), match_case=rule.match_case)
        client = client_test(conditions)
        if client is not None:
            self.matches = _for_clients(client, self.matches)
        self.in_host = shape.in_host
        self.pages = _ANY if conditions.sources.patterns else conditions.sources.names
        self._suffix = f".{shape.host}" if shape.host else ""
        self._hosts = _hosts_of(conditions)
        self._hosts_fit = compile_conditions(self._hosts)
        methods = compile_conditions(Conditions(methods=conditions.methods, not_methods=conditions.not_methods))
        self._rest: RuleTest | None = None
        if methods is not None or rule.match_case:
            self._rest = _rule_test(pattern, methods, match_case=rule.match_case)
        elif not shape.is_host:
            self._rest = _tail_test(rule) or _rule_test(pattern, None, match_case=False)
        if client is not None:
            self._rest = _for_clients(client, self._rest)
        self.bounds = self._bounds()

    def _bounds(self) -> Bounds | None:
        hosts = self._hosts
        sets = (hosts.sources, hosts.not_sources, hosts.targets, hosts.not_targets)
        if any(each.patterns for each in sets):
            return None
        sources, not_sources, targets, not_targets = (each.names or None for each in sets)
        left: RuleTest | Literal[True] = True if self._rest is None else self._rest
        return self.in_host, self._suffix, hosts.strict, sources, not_sources, targets, not_targets, left

    @property
    def is_unbound(self) -> bool:
        """Whether it may match between any two hosts."""
        return not self.in_host and self._hosts_fit is None

    def left_at(self, *, by_host: bool, by_page: bool) -> RuleTest | Literal[True] | None:
        """Returns the test that remains between all hosts, as `between` does; `None` when it depends on the hosts.

        Args:
            by_host: the rule was found by the host of its pattern, or if that has none, by one of `to=`.
            by_page: it was found by one of its pages.
        """
        known = replace(self._hosts, sources=NO_HOSTS) if by_page else self._hosts
        if by_host and not self.in_host:
            known = replace(known, targets=NO_HOSTS)
        if known != NO_CONDITIONS or (self.in_host and not (by_host and self._suffix)):
            return None
        return True if self._rest is None else self._rest

    def between(self, host: str, source: str) -> RuleTest | bool:
        """Returns the test that remains for requests between two hosts: `True` for always, `False` for never.

        Args:
            host: host of the requests.
            source: host of their source, "" when there is none.
        """
        if self.in_host and (self.in_host not in host or not f".{host}".endswith(self._suffix)):
            return False
        if self._hosts_fit is not None and not self._hosts_fit(host, source, ""):
            return False
        return True if self._rest is None else self._rest


def client_test(conditions: Conditions) -> Callable[[Request], bool] | None:
    """Returns the test of a rule's clients and groups; `None` where it holds for all."""
    return _ClientTest(conditions).holds if conditions.names_clients else None


class _ClientTest:
    """The test of a rule that holds for some clients alone. A client or group that no policy names is none of them."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions

    def holds(self, request: Request) -> bool:
        conditions = self._conditions
        name, group = request.known_as if isinstance(request, KnownRequest) else ("", "")
        if conditions.clients and not _is_one_of(conditions.clients, request.client, name):
            return False
        if conditions.not_clients and _is_one_of(conditions.not_clients, request.client, name):
            return False
        return (not conditions.tags or group in conditions.tags) and group not in conditions.not_tags


def _is_one_of(clients: ClientSet, address: str, name: str) -> bool:
    if name in clients.names:
        return True
    try:
        plain = canonical_address(address)
    except ValueError:
        return False
    return plain in clients.addresses or any(ip_address(plain) in network for network in clients.networks)


def _for_clients(client: Callable[[Request], bool], then: RuleTest | None) -> RuleTest:
    def test(request: Request, lowered: str, source: str) -> bool:
        return client(request) and (then is None or then(request, lowered, source))

    return test


def _tail_test(rule: NetworkRule) -> RuleTest | None:
    """Returns the test for a rule whose host is known to match; `None` where it is of another kind."""
    tail = compile_tail(rule)
    if tail is None:
        return None
    if _compiled is not None:  # called as fast as the functions below, and tested without a call in batches
        test: RuleTest = _compiled.HostTail(tail_begin(rule), None if isinstance(tail, str) else tail)
        return test
    return tail_test(tail)


def tail_test(tail: str | TailTest) -> RuleTest:
    """Returns the test for what follows a host, in Python: as `HostTail` of the compiled module."""
    if isinstance(tail, str):
        return lambda request, lowered, _: lowered.startswith(tail, len(request.url.scheme) + 3 + len(request.url.host))
    return lambda request, lowered, _: tail(lowered, len(request.url.scheme) + 3 + len(request.url.host))


def _rule_test(pattern: PatternTest, conditions: ConditionTest | None, *, match_case: bool) -> RuleTest:
    """Returns one function for a rule. A quarter of all requests call one, so nested calls within it are avoided."""
    if conditions is None and not match_case:

        def test_pattern(request: Request, lowered: str, source: str) -> bool:  # noqa: ARG001  # the signature of all tests
            url = request.url
            start = len(url.scheme) + 3
            return pattern(lowered, start, start + len(url.host))

        return test_pattern

    def test(request: Request, lowered: str, source: str) -> bool:
        url = request.url
        if conditions is not None and not conditions(url.host, source, request.method):
            return False
        start = len(url.scheme) + 3
        return pattern(url.text if match_case else lowered, start, start + len(url.host))

    return test
