"""A rule made ready to be tested against requests."""

from collections.abc import Callable
from functools import lru_cache

from gatewayfilter.engine.adblock.pattern import compile_pattern
from gatewayfilter.engine.adblock.regex_guard import guard_regex
from gatewayfilter.engine.adblock.rule import NO_CONDITIONS, Conditions, HostSet, NetworkRule
from gatewayfilter.model import Request
from gatewayfilter.urls import host_suffixes, is_ip_literal, registrable_domain

type ConditionTest = Callable[[str, str, str], bool]
"""(host of the request, host of its source or "", method) → whether it holds."""


@lru_cache(maxsize=16_384)
def host_names(host: str) -> tuple[str, ...]:
    """Returns every name under which a list may mean a host: itself, its parent domains, and their entities (`google.*`)."""
    suffixes = host_suffixes(host)
    if is_ip_literal(host):
        return suffixes
    public_suffix = registrable_domain(host).partition(".")[2]
    if not public_suffix:
        return suffixes
    tail = len(public_suffix) + 1
    return suffixes + tuple(f"{name[:-tail]}.*" for name in suffixes if len(name) > tail)


def is_in(hosts: HostSet, host: str) -> bool:
    """Tells whether a host is one of these hosts, or below one."""
    if not hosts.names.isdisjoint(host_names(host)):
        return True
    for pattern in hosts.patterns:
        guarded = guard_regex(pattern)
        if len(host) <= guarded.max_length and guarded.compile().search(host):
            return True
    return False


def compile_conditions(conditions: Conditions) -> ConditionTest | None:
    """Returns the test for what a rule asks beyond type, party and pattern; `None` when it asks nothing."""
    tests: list[ConditionTest] = []
    if conditions.strict:
        same = conditions.strict == 1
        tests.append(lambda host, source, _: (host == source) is same)
    if conditions.methods:
        tests.append(lambda _, __, method: method.upper() in conditions.methods)
    if conditions.not_methods:
        tests.append(lambda _, __, method: method.upper() not in conditions.not_methods)
    if conditions.sources:
        tests.append(lambda _, source, __: source != "" and is_in(conditions.sources, source))
    if conditions.not_sources:
        tests.append(lambda _, source, __: source == "" or not is_in(conditions.not_sources, source))
    if conditions.targets:
        tests.append(lambda host, _, __: is_in(conditions.targets, host))
    if conditions.not_targets:
        tests.append(lambda host, _, __: not is_in(conditions.not_targets, host))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda host, source, method: all(test(host, source, method) for test in tests)


class CompiledRule:
    """Pattern and conditions of a rule; type and party are its mask, which the index has tested before."""

    __slots__ = ("_conditions", "_match_case", "_test")

    def __init__(self, rule: NetworkRule) -> None:
        self._test = compile_pattern(rule)
        self._match_case = rule.match_case
        self._conditions = None if rule.conditions is NO_CONDITIONS else compile_conditions(rule.conditions)

    def matches(self, request: Request, lowered: str, source: str) -> bool:
        """Tells whether the rule speaks of this request, but for type and party.

        Args:
            request: the request.
            lowered: its URL in lower case.
            source: host of its source, "" when there is none.
        """
        url = request.url
        if self._conditions is not None and not self._conditions(url.host, source, request.method):
            return False
        start = len(url.scheme) + 3
        return self._test(url.text if self._match_case else lowered, start, start + len(url.host))
