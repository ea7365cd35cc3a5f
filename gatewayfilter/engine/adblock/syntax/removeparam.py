"""`$removeparam`: removes parameters from a URL's query; the rest of the query stays as it is written."""

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, unquote_plus

from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex.cost_guard import guard_regex

type ParamTest = Callable[[str, str], bool]
"""(name, whole parameter as written) → whether it is removed."""


_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_NEEDLESS_ESCAPE = re.compile(r"%(?:[46][1-9A-Fa-f]|[57][0-9Aa]|3[0-9]|2[DEde]|5[Ff]|7[Ee])")


@dataclass(frozen=True, slots=True)
class ParamFilter:
    """The parameters that a rule removes.

    Attributes:
        name: the parameter's name where the rule is just a name, "" otherwise; the rule is indexed by it.
        removes: the test of one parameter.
    """

    name: str
    removes: ParamTest


def split_flags(value: str) -> tuple[str, str] | None:
    """Returns expression and flags of `/expression/flags`, `None` for any other value."""
    if not value.startswith("/"):
        return None
    body, slash, flags = value.rpartition("/")
    if not slash or len(body) < 2 or (flags and not flags.isalpha()):
        return None
    return body[1:], flags


def text_test(expression: str, flags: str) -> Callable[[str], bool]:
    """Returns the test for a short text by a guarded expression; a text that is too long for it never matches.

    Raises:
        RuleError: the expression cannot be used.
    """
    if flags not in {"", "i"}:
        raise RuleError(f"unknown flags {flags[:20]!r} of a regular expression")
    guarded = guard_regex(expression, match_case=not flags)
    search = guarded.compile().search
    longest = guarded.max_length

    def test(text: str) -> bool:
        try:
            return len(text) <= longest and search(text.lower() if flags else text) is not None
        except UnicodeError:  # RE2 accepts UTF-8 only, and headers may hold any bytes
            return False

    return test


def read_param(value: str) -> ParamFilter:
    """Parses the value of `removeparam=`; "" removes the whole query.

    Raises:
        RuleError: it cannot be read.
    """
    if not value:
        return ParamFilter("", lambda _name, _text: True)
    negated = value.startswith("~")
    body = value[negated:]
    if not body:
        raise RuleError("removeparam names no parameter")
    expression = split_flags(body)
    if expression is not None:
        found = text_test(*expression)
        return ParamFilter("", lambda name, text: found(_decoded(name, text)) is not negated)
    if body.startswith("|"):  # an older spelling of "begins with"
        start = body[1:]
        return ParamFilter("", lambda _name, text: text.startswith(start) is not negated)
    if negated:
        return ParamFilter("", lambda name, _text: name != body)
    return ParamFilter(body, lambda name, _text: name == body)


def _decoded(name: str, text: str) -> str:
    return f"{name}={unquote_plus(text.partition('=')[2])}" if "%" in text or "+" in text else text


def param_names(query: str) -> list[str]:
    """Returns the decoded names of the parameters of a query (with its `?`), in order, as `without` tests them."""
    return [_name_of(text) for text in query[1:].split("&")]


def may_name(query: str, names: AbstractSet[str]) -> bool:
    """Returns, at a fraction of the cost of `param_names`, whether a query may have a parameter of one of these names.

    Args:
        query: with its `?`.
        names: each also in its `spellings`. Values are compared as if they were names.
    """
    return not names.isdisjoint(query[1:].replace("&", "=").split("=")) or _NEEDLESS_ESCAPE.search(query) is not None


def spellings(name: str) -> set[str]:
    """Returns the usual spellings of a parameter's name; needless escapes (of letters, digits and `_.-~`) are left out."""
    found = {name, quote(name), quote(name, safe=""), quote(name, safe="!$'()*,/:;@?"), quote_plus(name)}
    return found | {_ESCAPE.sub(lambda escape: escape[0].lower(), spelling) for spelling in found}


def _name_of(text: str) -> str:
    name = text.partition("=")[0]
    return unquote_plus(name) if "%" in name or "+" in name else name


def without(query: str, removes: ParamTest) -> str:
    """Returns a query (with its `?`) without the parameters that the test removes, "" when none is left."""
    texts = query[1:].split("&")
    kept = [text for text in texts if not text or not removes(_name_of(text), text)]
    if len(kept) == len(texts):
        return query
    return f"?{'&'.join(kept)}" if any(kept) else ""
