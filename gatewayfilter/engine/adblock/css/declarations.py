"""The parser of CSS declarations in `:style()` and `#$#`: only presentation, nothing that loads resources or adds text."""

import re

from gatewayfilter.errors import RuleError, UnsupportedError

MAX_LENGTH = 1_024

_PROPERTY = re.compile(r"-?[a-z][a-z0-9-]*|--[A-Za-z0-9_-]+", re.ASCII)
_FORBIDDEN_PROPERTIES = frozenset({"behavior", "-moz-binding", "src"})
_FORBIDDEN = re.compile(
    r"[\\<>{}@;\x00-\x1f]|/\*|url|image-set|image\(|src\(|cross-fade|element\(|expression|attr\(|paint\(|javascript",
    re.IGNORECASE,
)
_SPEAKING = frozenset({"content", "quotes"})
_SILENT = frozenset({"inherit", "initial", "none", "normal", "revert", "revert-layer", "unset"})
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")


def read_declarations(text: str) -> str:
    """Returns declarations in canonical form, each `!important`: a page's own style must not win.

    Raises:
        UnsupportedError: one loads a resource, or adds text to the page.
        RuleError: there is none, or one cannot be parsed.
    """
    if len(text) > MAX_LENGTH:
        raise RuleError(f"the style is longer than {MAX_LENGTH} characters")
    found: list[str] = []
    for declaration in text.split(";"):
        if not declaration.strip():
            continue
        name, colon, value = declaration.partition(":")
        if not colon:
            continue  # as browsers do
        name = name.strip()
        name = name if name.startswith("--") else name.lower()
        value = re.sub(r"\s*!\s*important\s*$", "", value.strip(), flags=re.IGNORECASE)
        if not value or not _PROPERTY.fullmatch(name):
            raise RuleError(f"not a declaration: {declaration.strip()[:100]!r}")
        if name in _FORBIDDEN_PROPERTIES or _FORBIDDEN.search(value) or not _is_balanced(value):
            raise UnsupportedError("a style that loads something")
        if name in _SPEAKING and value.lower() not in _SILENT:
            raise UnsupportedError("a style that writes on the page")
        found.append(f"{name}:{value}!important")
    if not found:
        raise RuleError("the style has no declaration")
    return ";".join(found)


def _is_balanced(value: str) -> bool:
    rest = _STRING.sub("", value)
    depth = 0
    for mark in rest:
        depth += (mark == "(") - (mark == ")")
        if depth < 0 or mark in "\"'!":
            return False
    return depth == 0
