"""The cost budget of all regular expressions of a list together, on the longest possible URL.

Each expression has its own bound (cost_guard.py). One request of a long URL may run all of them, each once (pattern.py), so the
sum of the bounds is the maximum cost of a request.
"""

from gatewayfilter.engine.adblock.syntax.removeparam import split_flags
from gatewayfilter.engine.adblock.syntax.rule import HostSet, NetworkRule
from gatewayfilter.safe_regex.cost_guard import guard_regex

LIST_STEPS = 150_000_000
"""Steps of all expressions of one list, about 1.5 s. uBlock Origin's list of bad sites has the most: 94 million."""

ALL_STEPS = 500_000_000
"""Steps of all expressions of all lists, about 5 s. The seventeen lists with expressions that were measured have 333 million."""

_LONGEST_HOST = 253


class RegexBudget:
    """The budget that is left, over all lists and for the current list."""

    __slots__ = ("_left", "_left_of_list")

    def __init__(self) -> None:
        self._left = ALL_STEPS
        self._left_of_list = LIST_STEPS

    def begin_list(self) -> None:
        """Starts the budget of the next list."""
        self._left_of_list = LIST_STEPS

    def refusal(self, rule: NetworkRule) -> str:
        """Returns why a rule is refused; "" when it is accepted, and its cost is deducted."""
        steps = steps_of(rule)
        if steps > self._left_of_list:
            return "the regular expressions of the list cost too much together"
        if steps > self._left:
            return "the regular expressions of all lists cost too much together"
        self._left -= steps
        self._left_of_list -= steps
        return ""


def steps_of(rule: NetworkRule) -> int:
    """Returns the maximum number of steps of a rule's expressions for one request. Takes 0.3 µs for a rule without any."""
    conditions = rule.conditions
    steps = guard_regex(rule.pattern[1:-1], match_case=rule.match_case).steps() if rule.is_regex else 0
    for hosts in (conditions.sources, conditions.not_sources, conditions.targets, conditions.not_targets):
        if hosts.patterns:
            steps += _steps_on_hosts(hosts)
    if conditions.header:
        steps += _steps_of_value(conditions.header.partition(":")[2].strip().removeprefix("~"))
    if conditions.address:
        steps += _steps_of_value(conditions.address)
    if rule.modifier == "removeparam":
        steps += _steps_of_value(rule.value.removeprefix("~"))
    return steps


def _steps_on_hosts(hosts: HostSet) -> int:
    return sum(guard_regex(pattern).steps(_LONGEST_HOST) for pattern in hosts.patterns)


def _steps_of_value(value: str) -> int:
    expression = split_flags(value)
    return 0 if expression is None else guard_regex(expression[0], match_case=not expression[1]).steps()
