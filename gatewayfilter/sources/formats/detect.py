"""Format detection from the first lines of a list, and the refusal of files that are no list."""

import re
from collections import Counter

from gatewayfilter.errors import ListError
from gatewayfilter.sources.formats.list_format import ListFormat

HEAD_SIZE = 65_536
"""Bytes that are examined."""

_LINES = 500
_LONGEST = 300
"""Characters of a line that are examined: the expressions below are not made for lines of any length."""

_LEAST_KNOWN = 0.5
"""Share of the lines that must match the format found."""

_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body|script|title|meta|\?xml|!--)", re.IGNORECASE)
_ADBLOCK_SIGN = re.compile(
    r"(?:\|\|?|@@)\S|[^\s#]*#@?[?$%]?#\S|\S+\$(?:~?third-party|domain=|script|image|important|popup|xmlhttp)"
)
_RPZ_SIGN = re.compile(
    r"\$(?:TTL|ORIGIN)\s+\S+|\S+\s+(?:\w+\s+){0,2}?(?:CNAME\s+(?:\*?\.|rpz-[a-z-]+\.)|SOA\s+\S+.*|NS\s+\S+)(?:\s*;.*)?",
    re.ASCII | re.IGNORECASE,
)
_PHRASE_SIGN = re.compile(rb"(?:<[^<>\r\n]+>\s*,?\s*)+(?:#.*)?")
"""A line of a phrase list for e2guardian or DansGuardian; its charset is not known."""

_WEIGHTED_SIGN = re.compile(rb"(?:<[^<>\r\n]+>\s*,?\s*)+<-?[0-9]{1,6}>\s*(?:#.*)?")
_EXPORT_ITEM = re.compile(r"\[\s*\{[^{}]*\"(?:kind|pattern)\"\s*:[^{}]*\"(?:kind|pattern)\"\s*:")
_CSV_HEADER = frozenset({"action", "kind", "pattern"})
_MARKDOWN = re.compile(r"!?\[[^\]]*\]\(|```|\|[ :-]*---|[-*>] .*\]\(|.*\S\]\([a-z./]+\)")
_PROSE_WORDS = 4
"""Words of a line that no network rule has; cosmetic rules have their marks before the first blank."""

_PROSE_MARKS = frozenset("#$|@/")
_MOST_PROSE = 0.15
"""Share of such lines from which a file counts as prose; lists of every kind have none in their first 500 entries."""

_END_TAG = re.compile(rb"</[a-zA-Z]")

_SIGNS: tuple[tuple[ListFormat, re.Pattern[str]], ...] = (
    (ListFormat.DNSMASQ, re.compile(r"(?:address|server|local)=/\S*", re.ASCII)),
    (ListFormat.RPZ, _RPZ_SIGN),
    (ListFormat.HOSTS, re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:]*(?:%\w+)?|0)\s+\S.*", re.ASCII)),
    (ListFormat.DIGESTS, re.compile(r"[0-9a-fA-F]{32}", re.ASCII)),
    (ListFormat.URLS, re.compile(r"https?://\S+", re.ASCII | re.IGNORECASE)),
    (ListFormat.ADBLOCK, _ADBLOCK_SIGN),
    (ListFormat.DOMAINS, re.compile(r"(?:\*?\.)?[^\s/:#|$?*=,@!.]+(?:\.[^\s/:#|$?*=,@!.]+)+\.?(?:\s+#.*)?")),
    (ListFormat.UT1, re.compile(r"[^\s/:#|$?*=,@!]+\.[^\s/#|$?*=,@!]+/\S*")),
)


def refuse_non_lists(head: bytes) -> str:
    """Returns the text of the first `HEAD_SIZE` bytes of something that may be a list.

    Raises:
        ListError: it is empty, binary, prose, a web page, a phrase list, or JSON that is no export of ours.
    """
    if _is_phrase_list(head[:HEAD_SIZE]):
        raise ListError("it is a phrase list, for the text of pages: `gatewayfilter words import FILE --category NAME` takes it")
    text = _text_of(head[:HEAD_SIZE])
    begin = text.lstrip()
    if _HTML.match(begin) or (begin.startswith("<") and "</" in begin[:4096]):
        raise ListError("it is a web page, not a list")
    if _exported_format(text):
        return text
    if begin.startswith(("{", "[{", '["')):
        raise ListError("it is JSON, not a list")
    entries = _entries(text)
    if sum(map(_is_prose, entries)) > len(entries) * _MOST_PROSE:
        raise ListError(f"it is prose, not a list; it begins {entries[0][:100]!r}")
    return text


def sniff(head: bytes) -> ListFormat:
    """Returns the format of a list by its first `HEAD_SIZE` bytes.

    Raises:
        ListError: it is no list (`refuse_non_lists`), holds no entry, or is like no known format.
    """
    text = refuse_non_lists(head)
    lines = [line.strip() for line in text.split("\n")]
    entries = _entries(text)
    if any(line.startswith("[Adblock") for line in entries[:1]):
        return ListFormat.ADBLOCK
    if exported := _exported_format(text):
        return exported
    if not entries:
        if any(_ADBLOCK_SIGN.match(line) for line in lines):
            return ListFormat.ADBLOCK
        raise ListError("it holds no entry")
    return _by_votes(entries, has_bangs=any(line.startswith("!") and not line.startswith("![") for line in lines))


def _exported_format(text: str) -> ListFormat | None:
    if _EXPORT_ITEM.match(text.lstrip()):
        return ListFormat.JSON
    columns = text.lstrip().partition("\n")[0].replace('"', "").strip().split(",")
    return ListFormat.CSV if set(columns) >= _CSV_HEADER else None


def _is_prose(line: str) -> bool:
    if _MARKDOWN.match(line):
        return True
    words = line.split()
    begins_with_a_word = len(words) >= _PROSE_WORDS and _PROSE_MARKS.isdisjoint(words[0]) and any(map(str.isalpha, words[0]))
    return begins_with_a_word and not _vote(line)


def _entries(text: str) -> list[str]:
    lines = (line[:_LONGEST].strip() for line in text.split("\n"))
    return [line for line in lines if line and (line.startswith("![") or not line.startswith(("#", "!", ";")))][:_LINES]


def _by_votes(entries: list[str], *, has_bangs: bool) -> ListFormat:
    votes = Counter(list_format for line in entries if (list_format := _vote(line)))
    unknown = len(entries) - votes.total()
    if votes[ListFormat.RPZ] and any(re.search(r"\sSOA\s", line, re.IGNORECASE) for line in entries):
        return ListFormat.RPZ
    if votes[ListFormat.ADBLOCK] * 4 >= len(entries) or (has_bangs and (votes[ListFormat.ADBLOCK] or unknown)):
        return ListFormat.ADBLOCK
    if votes[ListFormat.UT1]:
        votes[ListFormat.UT1] += votes.pop(ListFormat.DOMAINS, 0)
    found, count = max(votes.items(), key=lambda vote: vote[1], default=(ListFormat.DOMAINS, 0))
    if count < len(entries) * _LEAST_KNOWN:
        raise ListError(f"it is like no known list format; its first entry is {entries[0][:100]!r}")
    return found


def _is_phrase_list(head: bytes) -> bool:
    lines = [line[:_LONGEST].strip() for line in head.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")][
        :_LINES
    ]
    sign = _WEIGHTED_SIGN if _END_TAG.search(head) or _HTML.match(head.decode("latin-1").lstrip()) else _PHRASE_SIGN
    return sum(sign.fullmatch(line) is not None for line in lines) * 2 > len(lines)


def _text_of(head: bytes) -> str:
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ListError("it is empty")
    controls = sum(octet < 9 or 13 < octet < 32 for octet in head)
    if controls * 20 > len(head):
        raise ListError("it is binary, not a list")
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.count("\ufffd") * 3 > len(text):
        raise ListError("it is binary, not a list")
    return text


def _vote(line: str) -> ListFormat | None:
    for list_format, sign in _SIGNS:
        if sign.fullmatch(line) or (list_format is ListFormat.ADBLOCK and sign.match(line)):
            return list_format
    return None
