"""The condition `:matches-path()` of a cosmetic rule: it applies to pages with a certain path and query only."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gatewayfilter.errors import RuleError, UnsupportedError
from gatewayfilter.safe_regex.cost_guard import GuardedRegex, guard_regex

MAX_PATH: Final = 2_048
"""Characters of path and query up to which expressions are tried, at each page of a site."""

_CALL = re.compile(r":(?P<negated>not\(:)?matches-path\(")
_REGEX = re.compile(r"/(?P<text>.+)/(?P<flag>i?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PathCondition:
    """A text that a page's path and query contain, or an expression that is found in it.

    Attributes:
        argument: as it is written; `/…/` and `/…/i` are expressions.
        negated: it must not be found.
    """

    argument: str
    negated: bool

    def holds(self, path: str) -> bool:
        """Returns whether it holds for a page.

        Args:
            path: path and query of its URL.
        """
        guarded = _expression(self.argument)
        if guarded is None:
            return (self.argument in path) is not self.negated
        if len(path) > min(guarded.max_length, MAX_PATH):
            return False  # not known: the rule does not apply
        found = guarded.compile().search(path if guarded.match_case else path.lower())
        return (found is not None) is not self.negated


@lru_cache(maxsize=1_024)
def _expression(argument: str) -> GuardedRegex | None:
    found = _REGEX.fullmatch(argument)
    return guard_regex(found["text"], match_case=not found["flag"]) if found else None


def split_path(body: str) -> tuple[str, PathCondition | None]:
    """Returns a selector without its `:matches-path()`, and the condition.

    Raises:
        UnsupportedError: the condition holds for a part of the selector only, or nothing else stands in it.
        RuleError: it is not valid.
    """
    call = _CALL.search(body)
    if call is None:
        return body, None
    end = _closing(body, call.end())
    condition = PathCondition(body[call.end() : end].strip(), call["negated"] is not None)
    _expression(condition.argument)
    end += 1
    if condition.negated:
        if not body.startswith(")", end):
            raise UnsupportedError(":matches-path()")
        end += 1
    before, after = body[: call.start()], body[end:]
    if not condition.argument:
        raise RuleError(":matches-path() has no argument")
    if not _is_whole(before) or not _is_whole(after) or _CALL.search(after) or not (before + after).strip():
        raise UnsupportedError(":matches-path()")
    if before and before[-1] in " >+~":
        before += "*"
    return (before + after).strip(), condition


def _closing(text: str, position: int) -> int:
    """Returns the position of the parenthesis that closes the one before `position`."""
    depth = 1
    while position < len(text):
        character = text[position]
        depth += (character == "(") - (character == ")")
        if not depth:
            return position
        position += 2 if character == "\\" else 1
    raise RuleError(":matches-path() is not closed")


def _is_whole(text: str) -> bool:
    """Returns whether no parenthesis is left open in a part of a selector, and no comma stands outside of them."""
    depth, quote, escaped = 0, "", False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "([") - (character in ")]")
            if depth < 0 or (character == "," and not depth):
                return False
    return not depth and not quote
