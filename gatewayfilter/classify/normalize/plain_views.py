"""Two views of a text: the normal one that people read, and the squashed one without the tricks that hide words.

Both are linear in the text; no expression here can backtrack over more than a few characters. This is the
specification; views.py does the same with compiled code where it can.
"""

import re
import unicodedata
from collections.abc import Callable

from gatewayfilter.characters import HOMOGLYPHS, INVISIBLE, simplified

# Replacing marks one by one is far faster than `str.translate` where the text is not ASCII.
_FOLDED = {"-": " ", "_": " ", "\u2010": " ", "\u2011": " ", "\u2018": "'", "\u2019": "'"}
_BLANKS = re.compile(r"[^\S\n]++")
_LINES = re.compile(r" \n[ \n]*+|\n[ \n]++")
_OTHER_BLANKS = tuple(chr(code) for code in range(0x3001) if chr(code).isspace() and chr(code) not in " \n")
"""One search each is faster than one expression for all."""

_CJK = "\u3400-\u4dbf\u4e00-\u9fff"
_HAN = re.compile(rf"[{_CJK}]")
_INVISIBLE = "".join(map(chr, INVISIBLE))
_HIDDEN = re.compile(f"[{_INVISIBLE}]+")
_LOOKALIKE = re.compile(r"[\u00c0-\u024f\u0370-\u052f]")
_EXOTIC = re.compile(rf"[\u00c0-\u024f\u0370-\u052f{_CJK}{_INVISIBLE}]")
_MIXED_WORD = re.compile(
    r"(?<![a-z\u00c0-\u024f\u0370-\u052f])[a-z]*+[\u00c0-\u024f\u0370-\u052f][a-z\u00c0-\u024f\u0370-\u052f]*+"
)
_LATIN = re.compile(r"[a-z]")
# What comes before a word of letters and digits, and that word (or the end): ordinary words are passed over inside it.
_LEET_WORD = re.compile(
    r"((?:[^a-z0-9@$]++|[a-z]++(?![0-9@$])|[0-9@$]++(?![a-z]))*+)([a-z]++[0-9@$][a-z0-9@$]*+|[0-9@$]++[a-z][a-z0-9@$]*+|\Z)"
)
LEET = str.maketrans("01345789@$", "oieastbgas")
SEPARATORS = " .*|/~+\u00b7\u2022"
_SEPARATOR = rf"[{re.escape(SEPARATORS)}]"
_SPELLED = re.compile(rf"(?<![a-z0-9@$])[a-z0-9@$](?:{_SEPARATOR}{{1,3}}[a-z0-9@$](?![a-z0-9@$])){{3,}}+")
_NOT_SPELLED = re.compile(r"[^a-z0-9@$]+")
IN_WORD = "*~^|+=\u00b7\u2022"
_MARKS = re.compile(rf"(?<=[a-z])[{re.escape(IN_WORD)}]{{1,3}}(?=[a-z])")
"""Up to three marks inside a word."""
HAN_MARKS = " .*~^|/\\+#@=&%$\u00b7\u2022\u2026"
_IN_HAN = re.compile(rf"(?<=[{_CJK}])[{re.escape(HAN_MARKS)}]{{1,3}}(?=[{_CJK}])")

# Cheap signs, each led by a class of rare characters, of what the expressions above look for at every character.
_MAYBE_MARKS = re.compile(rf"[{re.escape(IN_WORD)}](?=[a-z])")
_MAYBE_LEET = re.compile(r"[0-9@$](?:(?=[a-z])|(?<=[a-z][0-9@$]))")
_MAYBE_SPELLED = re.compile(rf"{_SEPARATOR}[a-z0-9@$](?:{_SEPARATOR}{{1,3}}[a-z0-9@$]){{2}}(?![a-z0-9@$])")


def normal_view(text: str) -> str:
    """Returns the text in NFKC, lower case, simplified characters; blanks folded to one, hyphens too, lines kept.

    Characters are simplified one for one (characters.py).
    """
    if text.isascii():
        text = text.lower().replace("-", " ").replace("_", " ")
    else:
        text = unicodedata.normalize("NFKC", text).lower()
        if _HAN.search(text):
            text = text.translate(simplified())
        for mark, plain in _FOLDED.items():
            text = text.replace(mark, plain)
    if any(map(text.__contains__, _OTHER_BLANKS)):
        text = _BLANKS.sub(" ", text)
    while "  " in text:  # a handful of times at most: each halves the runs of blanks
        text = text.replace("  ", " ")
    if " \n" in text or "\n " in text or "\n\n" in text:
        text = _LINES.sub("\n", text)
    return text.strip()


def squashed_view(normal: str) -> str:
    """Returns a normal view without inserted symbols, invisible characters, look-alikes, leet and spelled-out words.

    Sentence marks stay: they part words that stand side by side by chance. Equal to its input when there is nothing to undo.
    """
    text = normal if normal.isascii() else _without_exotic(normal)
    if any(map(text.__contains__, IN_WORD)):
        text = _in_lines(text, _MAYBE_MARKS, _MARKS, "")
    text = _in_lines(text, _MAYBE_SPELLED, _SPELLED, _joined)
    return _in_lines(text, _MAYBE_LEET, _LEET_WORD, _unleeted)


def _without_exotic(text: str) -> str:
    """Returns a text without invisible characters, look-alikes, and marks between ideographs."""
    if _EXOTIC.search(text) is None:
        return text
    text = _HIDDEN.sub("", text)
    text = _in_lines(text, _LOOKALIKE, _MIXED_WORD, _latinised)
    return _IN_HAN.sub("", text) if _HAN.search(text) else text


def changed_lines(normal: str) -> str:
    """Returns the lines of a normal view that squashing changes, squashed: what the others hold is known."""
    squashed = squashed_view(normal)
    if squashed == normal:
        return ""
    lines = normal.split("\n")  # squashing never takes one away
    return "\n".join(changed for number, changed in enumerate(squashed.split("\n")) if changed != lines[number])


def _in_lines(text: str, sign: re.Pattern[str], pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str]) -> str:
    """Replaces a pattern, which never goes beyond its line, in the lines that show a sign of it. Linear where both are."""
    found = sign.search(text)
    if found is None:
        return text
    pieces: list[str] = []
    ended = f"{text}\n"
    done = 0
    while found:
        start = max(done, text.rfind("\n", done, found.start()))
        end = ended.index("\n", found.end())
        pieces += text[done:start], pattern.sub(new, text[start:end])
        done = end
        found = sign.search(text, end)
    return "".join((*pieces, text[done:]))


def _latinised(match: re.Match[str]) -> str:
    word = match[0]
    return word.translate(HOMOGLYPHS) if _LATIN.search(word) else word


def _joined(match: re.Match[str]) -> str:
    return _NOT_SPELLED.sub("", match[0])


def _unleeted(match: re.Match[str]) -> str:
    return match[1] + match[2].translate(LEET)
