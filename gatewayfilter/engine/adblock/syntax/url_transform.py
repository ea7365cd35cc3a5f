"""`$urlskip`, which extracts a URL's destination from it, and `$uritransform`, which rewrites path and query."""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from urllib.parse import unquote, unquote_plus

from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.safe_regex.re2 import Substitution, compile_linear, split_substitution
from gatewayfilter.urls import Url, parse_url

MAX_STEPS = 16

type Step = Callable[[str], str | None]
"""Text so far → text after the step, `None` when it fails and the rule does not apply."""

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_FOREIGN_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")


class UrlSkip:
    """The steps of a `$urlskip`: `?name`, `&1`, `/expression/`, `+https`, `-base64`, `-safebase64`, `-uricomponent`, `-blocked`.

    Attributes:
        skips_blocked: applies to blocked URLs too (`-blocked`).

    Raises:
        RuleError: a step cannot be parsed.
    """

    __slots__ = ("_steps", "skips_blocked")

    def __init__(self, value: str) -> None:
        words = value.split()
        if not words or len(words) > MAX_STEPS:
            raise RuleError(f"urlskip has 1 to {MAX_STEPS} steps")
        self.skips_blocked = "-blocked" in words
        self._steps = tuple(_read_step(word) for word in words if word != "-blocked")

    def target(self, url: Url) -> Url | None:
        """Returns the destination of a URL, always with HTTPS; `None` when it cannot be extracted."""
        text: str | None = url.text
        try:
            for step in self._steps:
                text = step(text or "")
                if not text:
                    return None
            found = parse_url(text or "")
        except (UrlError, ValueError, binascii.Error):
            return None
        if found.scheme not in {"http", "https"} or found == url:
            return None
        return found if found.scheme == "https" else Url("https", found.host, found.port, found.path, found.query)


def _read_step(word: str) -> Step:
    match word[0]:
        case "?" if len(word) > 1:
            return lambda text: _parameter(text, word[1:])
        case "&" if word[1:].isdecimal() and len(word) <= 4 and int(word[1:]):
            return lambda text: _parameter_name(text, int(word[1:]))
        case "/" if len(word) > 2 and word[-1] == "/":
            return _regex_step(word[1:-1])
        case _:
            step = _NAMED_STEPS.get(word)
            if step is None:
                raise RuleError(f"unknown step {word[:100]!r} of urlskip")
            return step


def _parameters(text: str) -> list[str]:
    if not _SCHEME.match(text):
        return []
    query = text.partition("#")[0].partition("?")[2]
    return [part for part in query.split("&") if part]


def _parameter(text: str, name: str) -> str | None:
    for part in _parameters(text):
        key, _, value = part.partition("=")
        if unquote_plus(key) == name:
            return unquote_plus(value).replace(" ", "%20")
    return None


def _parameter_name(text: str, number: int) -> str | None:
    parts = _parameters(text)
    return unquote(unquote_plus(parts[number - 1].partition("=")[0])) if number <= len(parts) else None


def _regex_step(expression: str) -> Step:
    regex = compile_linear(expression)
    if not regex.groups:
        raise RuleError("the expression of an urlskip has no group")

    def step(text: str) -> str | None:
        found = regex.search(text)
        return None if found is None else found[1]

    return step


def _with_https(text: str) -> str | None:
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    return None if "://" in rest and _FOREIGN_SCHEME.match(rest) else f"https://{rest}"


def _from_base64(text: str) -> str:
    compact = "".join(text.split()).rstrip("=")
    return b64decode(compact + "=" * (-len(compact) % 4), validate=True).decode("latin-1")


_NAMED_STEPS: dict[str, Step] = {
    "+https": _with_https,
    "-base64": _from_base64,
    "-safebase64": lambda text: _from_base64(text.replace("-", "+").replace("_", "/")),
    "-uricomponent": unquote,
}


class UriTransform:
    """`/expression/replacement/flags` on path and query; with an empty expression the rule's pattern, on the whole URL.

    Args:
        value: of the option.
        pattern: of the rule.

    Raises:
        RuleError: it cannot be parsed.
    """

    __slots__ = ("_of_whole", "_substitution")

    def __init__(self, value: str, pattern: str) -> None:
        expression, replacement, flags = split_substitution(value)
        self._of_whole = not expression
        if self._of_whole:
            if len(pattern) < 3 or pattern[0] != "/" or pattern[-1] != "/":
                raise RuleError("uritransform without an expression needs a rule that is one")
            expression = pattern[1:-1]
        self._substitution = Substitution(expression, replacement, flags)

    def target(self, url: Url) -> Url | None:
        """Returns the rewritten URL; `None` when it is unchanged, not a URL, or would be rewritten in a loop."""
        rest = url.text if self._of_whole else f"{url.path}{url.query}"
        changed = self._substitution.apply(rest)
        if changed == rest or not (self._of_whole or changed.startswith("/")):
            return None
        again = self._substitution.apply(changed)
        if again != changed and self._substitution.apply(again) != again:
            return None
        try:
            found = parse_url(changed if self._of_whole else f"{url.scheme}://{url.netloc}{changed.partition('#')[0]}")
        except UrlError:
            return None
        return found if found.scheme == url.scheme else None
