"""Regular expressions for replacements in bodies and URLs, run by RE2: a search is linear for every expression.

Lists use JavaScript's syntax. It is translated as far as RE2 supports it; look-around and back-references, which no linear
engine supports, are refused.
"""

import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import re2

from gatewayfilter.errors import RuleError, UnsupportedError

MAX_LENGTH: Final = 2_048
"""Maximum length of an expression in characters."""

MAX_MEMORY: Final = 4 << 20
"""Bytes that one compiled expression may take; a larger one is refused."""

TIME_LIMIT_S: Final = 0.25
"""A search is linear, but each match of an expression may read up to the end of the text: after this time the rest of a text is
left unchanged."""

_BEYOND = ("invalid perl operator", "invalid escape sequence", "invalid repetition size", "pattern too large", "bad repetition")
"""Prefix of RE2's error messages for unsupported syntax."""

_TOKEN = re.compile(
    r"\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\c([A-Za-z])|\\([^\x00-\x7f])|(\[\^\])|(\[\])|\\.|.", re.DOTALL
)
_REFERENCE = re.compile(r"\$(\$|&|\d{1,2}|<[A-Za-z_]\w*>)")
_FLAGS = frozenset("gimsuy")


def translate(text: str) -> str:
    """Returns an expression of JavaScript in RE2's syntax."""

    def piece(match: re.Match[str]) -> str:
        braced, four, control, odd, anything, nothing = match.groups()
        if braced or four:
            return rf"\x{{{braced or four}}}"
        if control:
            return rf"\x{ord(control.upper()) - 64:02x}"
        if odd:
            return odd
        if anything:
            return r"[\s\S]"
        return r"[^\s\S]" if nothing else match[0]

    return _TOKEN.sub(piece, text)


@lru_cache(maxsize=512)
def compile_linear(text: str, flags: str = "") -> "re2._Regexp":
    """Returns an expression (without its slashes), compiled by RE2.

    Raises:
        RuleError: it is not valid, too long, or not supported by a linear engine.
    """
    if len(text) > MAX_LENGTH:
        raise RuleError(f"the regular expression is longer than {MAX_LENGTH} characters")
    if not _FLAGS.issuperset(flags):
        raise RuleError(f"unknown flags {flags[:20]!r} of a regular expression")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.case_sensitive = "i" not in flags
    options.dot_nl = "s" in flags
    source = translate(text)
    try:
        return re2.compile(f"(?m:{source})" if "m" in flags else source, options)
    except (re2.error, UnicodeError) as error:
        said = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else ""
        if said.startswith(_BEYOND):
            raise UnsupportedError("look-around, back-reference or long repetition in a regular expression") from error
        raise RuleError(f"the regular expression is not valid: {said}") from error


class Substitution:
    """A compiled `/expression/replacement/flags`.

    Raises:
        RuleError: the expression cannot be used, or the replacement refers to a missing group.
    """

    __slots__ = ("_expand", "_once", "_regex")

    def __init__(self, expression: str, replacement: str, flags: str = "") -> None:
        self._regex = compile_linear(expression, flags)
        self._once = "g" not in flags
        self._expand = _template(replacement, self._regex.groups, self._regex.groupindex)

    def apply(self, text: str) -> str:
        """Returns the text with the first match replaced, or all with the flag `g`."""
        pieces: list[str] = []
        position = 0
        deadline = time.perf_counter() + TIME_LIMIT_S
        try:
            for match in self._regex.finditer(text):
                pieces += (text[position : match.start()], self._expand(match))
                position = match.end()
                if self._once or time.perf_counter() > deadline:
                    break
        except UnicodeError:  # lone surrogates
            return text
        if not pieces:
            return text
        return "".join((*pieces, text[position:]))


def _template(replacement: str, groups: int, names: Mapping[str, int]) -> "Callable[[re2._Match], str]":
    parts: list[str | int] = []
    position = 0
    for match in _REFERENCE.finditer(replacement):
        parts.append(replacement[position : match.start()])
        position = match.end()
        parts.append(_reference(match[1], groups, names))
    parts.append(replacement[position:])
    found = tuple(part for part in parts if part != "")

    def expand(match: "re2._Match") -> str:
        return "".join([part if isinstance(part, str) else match[part] or "" for part in found])

    return expand


def _reference(text: str, groups: int, names: Mapping[str, int]) -> str | int:
    if text == "$":
        return "$"
    if text == "&":
        return 0
    if text[0] == "<":
        if text[1:-1] not in names:
            raise RuleError(f"the expression has no group {text}")
        return names[text[1:-1]]
    number = int(text)
    return number if 0 < number <= groups else f"${text}"


def split_substitution(value: str) -> tuple[str, str, str]:
    r"""Splits `/expression/replacement/flags` at its slashes, except escaped ones (`\/`).

    Raises:
        RuleError: it does not have three parts.
    """
    if len(value) > 1 and value[0] in "'\"`" and value[-1] == value[0]:
        value = value[1:-1]
    ends: list[int] = []
    position = 1
    while value.startswith("/") and position < len(value) and len(ends) < 2:
        if value[position] == "\\":
            position += 1
        elif value[position] == "/":
            ends.append(position)
        position += 1
    if len(ends) < 2:
        raise RuleError("a substitution has the form /expression/replacement/")
    middle, end = ends
    return value[1:middle], value[middle + 1 : end].replace("\\/", "/"), value[end + 1 :]
