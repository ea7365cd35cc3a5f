"""Characters that stand for others: traditional for simplified, look-alikes for Latin letters, and invisible ones."""

import unicodedata
from functools import cache

_ALSO = {"妳": "你", "祢": "你", "籤": "签", "嚐": "尝", "菸": "烟", "週": "周", "迴": "回"}
"""Characters of everyday Chinese that OpenCC leaves to the phrases around them."""
_HAN_BLOCKS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00))


@cache
def simplified() -> dict[int, str]:
    """Returns traditional character → simplified, one for one: some 4,200, made by OpenCC once a process, in 40 ms.

    Deviation: OpenCC's phrases (乾隆 against 乾燥) are left out: they would cost 1 ms a page and move positions, and the words
    that we look for go the same way as the page.
    """
    from opencc import OpenCC  # the processes that judge no page do without  # noqa: PLC0415

    characters = [chr(code) for first, end in _HAN_BLOCKS for code in range(first, end)]
    converted = str(OpenCC("t2s").convert("\n".join(characters))).split("\n")
    table = {ord(one): other for one, other in zip(characters, converted, strict=True) if one != other and len(other) == 1}
    return table | {ord(one): other for one, other in _ALSO.items()}


_ALIKE = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u044c\u0432\u03b2",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u0454\u03b5",
    "h": "\u04bb\u043d",
    "i": "\u0456\u0457\u03b9\u0131",
    "j": "\u0458",
    "k": "\u043a\u03ba",
    "l": "\u04cf",
    "m": "\u043c",
    "n": "\u043f\u03b7",
    "o": "\u043e\u03bf\u03c3\u04e9",
    "p": "\u0440\u03c1",
    "r": "\u0433\u044f",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u0446",
    "v": "\u0475\u03bd",
    "w": "\u051d\u0448\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u0437",
}
_ACCENTED = {
    code: base
    for code in range(0xC0, 0x250)
    if (base := unicodedata.normalize("NFKD", chr(code))[0]).isascii() and base.isalpha()
}
HOMOGLYPHS = {ord(alike): letter for letter, all_alike in _ALIKE.items() for alike in all_alike} | _ACCENTED
"""Greek, Cyrillic and accented letters → the Latin letter that they look like; for words that mix scripts only."""

INVISIBLE = (
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0,
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0x300, 0x370), *range(0x20D0, 0x2100),
    *range(0xFE00, 0xFE10),
)  # fmt: skip
"""Characters without width, and marks that stand over others."""
