"""`##^script:has-text(…)`: removes inline scripts from HTML by their text, in one pass."""

import re
from collections.abc import Callable

from gatewayfilter.engine.adblock.syntax.removeparam import split_flags
from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex.re2 import compile_linear

MAX_SCRIPT = 2_000_000
"""Maximum length of a script in characters; a longer one stays."""

_OPEN = re.compile(r"<script(?=[\s/>])[^>]*>", re.IGNORECASE)
_CLOSE = re.compile(r"</script(?=[\s/>])[^>]*>", re.IGNORECASE)

type TextTest = Callable[[str], bool]


def read_script_test(text: str) -> TextTest:
    """Returns the test for a script's text: every line of `text` must be found in it, as a literal or as `/expression/flags`.

    Raises:
        RuleError: an expression cannot be used, or there is nothing to search for.
    """
    tests = [_one_test(line) for line in text.split("\n")]
    return lambda script: all(test(script) for test in tests)


def _one_test(text: str) -> TextTest:
    if not text:
        raise RuleError("has-text looks for nothing")
    expression = split_flags(text)
    if expression is None:
        return lambda script: text in script
    search = compile_linear(*expression).search

    def test(script: str) -> bool:
        try:
            return search(script) is not None
        except UnicodeError:
            return False

    return test


class ScriptRemoval:
    """Removes every `<script>` with a text that passes the test (`model.BodyEdit`)."""

    __slots__ = ("_test",)

    def __init__(self, text: str) -> None:
        self._test = read_script_test(text)

    def apply(self, text: str) -> str:
        """Returns the HTML without those scripts; comments are treated like the rest."""
        pieces: list[str] = []
        kept = 0
        position = 0
        while opening := _OPEN.search(text, position):
            closing = _CLOSE.search(text, opening.end())
            if closing is None:
                break
            script = text[opening.end() : closing.start()]
            if len(script) <= MAX_SCRIPT and self._test(script):
                pieces.append(text[kept : opening.start()])
                kept = closing.end()
            position = closing.end()
        return "".join((*pieces, text[kept:])) if pieces else text
