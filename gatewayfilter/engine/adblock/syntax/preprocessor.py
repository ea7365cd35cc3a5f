"""The preprocessor of filter lists: `!#if condition`, `!#else`, `!#endif`; `!#include` and others are only recognised."""

import re
from dataclasses import dataclass

from gatewayfilter.errors import RuleError

TRUE_NAMES = frozenset({"cap_html_filtering", "cap_ipaddress", "ext_ublock", "true"})
"""Names that are true in conditions: the syntax is uBlock Origin's, HTML filtering and IP addresses are supported. A proxy is no
browser, no extension and not mobile. Every other name is false."""

MAX_DEPTH = 32
_TOKEN = re.compile(r"\s*(&&|\|\||[()!]|[A-Za-z_][A-Za-z0-9_.]*)")


@dataclass(slots=True)
class _Branch:
    active: bool
    taken: bool


class Preprocessor:
    """The state of the directives of one list.

    Attributes:
        active: whether lines count at this point.
    """

    def __init__(self) -> None:
        self.active = True
        self._branches: list[_Branch] = []

    def directive(self, line: str) -> str:
        """Processes a line that begins with `!#`; returns the name of a directive that is not honoured, else "".

        Raises:
            RuleError: it is `!#if`, `!#else` or `!#endif`, but out of place or not valid.
        """
        name, _, rest = line[2:].strip().partition(" ")
        match name:
            case "if":
                if len(self._branches) >= MAX_DEPTH:
                    raise RuleError("'!#if' is nested too deeply")
                try:
                    holds = evaluate(rest)
                finally:
                    self._branches.append(_Branch(active=self.active, taken=False))
                    self.active = False
                self._branches[-1].taken = holds
                self.active = self._branches[-1].active and holds
            case "else":
                if not self._branches:
                    raise RuleError("'!#else' without '!#if'")
                self.active = self._branches[-1].active and not self._branches[-1].taken
            case "endif":
                if not self._branches:
                    raise RuleError("'!#endif' without '!#if'")
                self.active = self._branches.pop().active
            case "include":
                return "!#include" if self.active else ""
            case _:
                pass
        return ""


def evaluate(condition: str) -> bool:
    """Returns whether the condition of an `!#if` holds for a filter in a proxy.

    Raises:
        RuleError: it cannot be parsed.
    """
    tokens: list[str] = []
    position = 0
    condition = condition.strip()
    while position < len(condition):
        match = _TOKEN.match(condition, position)
        if match is None or len(tokens) >= 100:
            raise RuleError(f"the condition {condition[:100]!r} cannot be read")
        tokens.append(match[1])
        position = match.end()
    tokens.reverse()
    holds = _either(tokens, condition)
    if tokens:
        raise RuleError(f"the condition {condition[:100]!r} cannot be read")
    return holds


def _either(tokens: list[str], condition: str) -> bool:
    holds = _both(tokens, condition)
    while tokens and tokens[-1] == "||":
        tokens.pop()
        holds = _both(tokens, condition) or holds
    return holds


def _both(tokens: list[str], condition: str) -> bool:
    holds = _single(tokens, condition)
    while tokens and tokens[-1] == "&&":
        tokens.pop()
        holds = _single(tokens, condition) and holds
    return holds


def _single(tokens: list[str], condition: str) -> bool:
    word = tokens.pop() if tokens else ")"
    if word == "!":
        return not _single(tokens, condition)
    if word == "(":
        holds = _either(tokens, condition)
        if tokens and tokens.pop() == ")":
            return holds
    elif word[0].isalpha() or word[0] == "_":
        return word in TRUE_NAMES
    raise RuleError(f"the condition {condition[:100]!r} cannot be read")
