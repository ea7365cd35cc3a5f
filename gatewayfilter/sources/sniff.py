"""Finds out from its first lines how a list is written, and refuses what is no list."""

import re
from collections import Counter

from gatewayfilter.errors import ListError
from gatewayfilter.sources.list_format import ListFormat

HEAD_SIZE = 65_536
"""Bytes that are looked at."""

_LINES = 500
_LEAST_KNOWN = 0.5
"""Share of the lines that must look like the format found."""

_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body|script|title|meta|\?xml|!--)", re.IGNORECASE)
_ADBLOCK_SIGN = re.compile(
    r"(?:\|\|?|@@)\S|[^\s#]*#@?[?$%]?#\S|\S+\$(?:~?third-party|domain=|script|image|important|popup|xmlhttp)"
)
_SIGNS: tuple[tuple[ListFormat, re.Pattern[str]], ...] = (
    (ListFormat.DNSMASQ, re.compile(r"(?:address|server|local)=/\S*", re.ASCII)),
    (ListFormat.HOSTS, re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:]*(?:%\w+)?|0)\s+\S.*", re.ASCII)),
    (ListFormat.DIGESTS, re.compile(r"[0-9a-fA-F]{32}", re.ASCII)),
    (ListFormat.URLS, re.compile(r"https?://\S+", re.ASCII | re.IGNORECASE)),
    (ListFormat.ADBLOCK, _ADBLOCK_SIGN),
    (ListFormat.DOMAINS, re.compile(r"(?:\*?\.)?[^\s/:#|$?*=,@!]+(?:\.[^\s/:#|$?*=,@!]+)+\.?(?:\s+#.*)?")),
    (ListFormat.UT1, re.compile(r"[^\s/:#|$?*=,@!]+\.[^\s/#|$?*=,@!]+/\S*")),
)


def refuse_non_lists(head: bytes) -> str:
    """Returns the text of the first `HEAD_SIZE` bytes of something that may be a list.

    Raises:
        ListError: it is empty, binary, a web page or JSON.
    """
    text = _text_of(head[:HEAD_SIZE])
    begin = text.lstrip()
    if _HTML.match(begin) or (begin.startswith("<") and "</" in begin[:4096]):
        raise ListError("it is a web page, not a list")
    if begin.startswith(("{", "[{", '["')):
        raise ListError("it is JSON, not a list")
    return text


def sniff(head: bytes) -> ListFormat:
    """Returns the format of a list by its first `HEAD_SIZE` bytes.

    Raises:
        ListError: it is no list (`refuse_non_lists`), holds no entry, or is like no known format.
    """
    lines = [line.strip() for line in refuse_non_lists(head).split("\n")]
    entries = [line for line in lines if line and not line.startswith(("#", "!", ";"))][:_LINES]
    if any(line.startswith("[Adblock") for line in entries[:1]):
        return ListFormat.ADBLOCK
    if not entries:
        if any(_ADBLOCK_SIGN.match(line) for line in lines):
            return ListFormat.ADBLOCK
        raise ListError("it holds no entry")
    votes = Counter(list_format for line in entries if (list_format := _vote(line)))
    unknown = len(entries) - votes.total()
    has_bangs = any(line.startswith("!") for line in lines)
    if votes[ListFormat.ADBLOCK] * 4 >= len(entries) or (has_bangs and (votes[ListFormat.ADBLOCK] or unknown)):
        return ListFormat.ADBLOCK
    if votes[ListFormat.UT1]:
        votes[ListFormat.UT1] += votes.pop(ListFormat.DOMAINS, 0)
    found, count = max(votes.items(), key=lambda vote: vote[1], default=(ListFormat.DOMAINS, 0))
    if count < len(entries) * _LEAST_KNOWN:
        raise ListError(f"it is like no known list format; its first entry is {entries[0][:100]!r}")
    return found


def _text_of(head: bytes) -> str:
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ListError("it is empty")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ListError("it is UTF-16 text; lists are UTF-8")
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
