"""Recognises lines that block one whole host, `||host^` or `0.0.0.0 host`: nine of ten rules are written so, and need no parser.

The search over the characters has a compiled twin, `_plain_lines.pyx`.
"""

import re

from gatewayfilter.compiled import load

MAX_LINE_LENGTH = 65_536
_LONGEST_NAME = 253
_HOST_RULE = re.compile(r"\|\|([a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)+)\^\r?\n?", re.ASCII)
_HOSTS_LINE = re.compile(
    r"(?:0\.0\.0\.0|127\.0\.0\.1) ((?!xn--)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
    r"(?:\.(?!xn--)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*\.[a-z][a-z]{0,20})\r?\n?",
    re.ASCII,
)
"""A hosts line with one name that is canonical as it is written: nearly all of them."""
_OWN_NAME = "localhost.localdomain"


def find_plain_host(line: str) -> str:
    """Returns the host of a line that blocks all requests to one host as written; "" for a line that needs the parser.

    The line may have its line end.
    """
    if line[:2] == "||":
        rule = _HOST_RULE.fullmatch(line)
        return rule[1] if rule and len(line) <= MAX_LINE_LENGTH else ""
    plain = _HOSTS_LINE.fullmatch(line) if line[:1] in {"0", "1"} and len(line) < _LONGEST_NAME else None
    return plain[1] if plain and plain[1] != _OWN_NAME else ""


_compiled = load("gatewayfilter.engine.adblock.syntax._plain_lines")
plain_host = find_plain_host if _compiled is None else _compiled.plain_host
"""`find_plain_host`, compiled where that is possible."""
