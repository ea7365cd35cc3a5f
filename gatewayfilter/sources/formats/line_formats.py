"""The formats that hold list keys, one table: for each the lines taken in bulk, and the reader of all others."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.model import ListAction
from gatewayfilter.sources.formats.host_names import HOST_NAME, HOST_PATTERN, OWN_NAMES, SINKS, exact_host_key, whole_domain_key
from gatewayfilter.sources.formats.line_blocks import MAX_LINE_LENGTH
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.formats.rpz import RpzReader
from gatewayfilter.urls import parse_loose_url, prefix_key, url_key

type Reject = Callable[[str], None]
"""Called with why a part of the line is no entry; the line's other parts still count."""

_SINK_PATTERN = r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?)[ \t]+"
_COMMENT_TAIL = re.compile(r"(?:^|\s)#.*")
_ADDRESS = re.compile(r"[0-9a-fA-F.:]+(?:%\w+)?", re.ASCII)
_DNSMASQ_LINE = re.compile(r"(address|local|server)=/(.+)/([^/]*)", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How to read a format's lines.

    Attributes:
        read: returns the keys of a line without comment; raises RuleError when it is no entry at all.
        ordinary: lines that need no check but `host_names.all_ordinary`: group 1 is the host; a group 2, if there is one,
            what follows it in the key. `None`: there are none.
        prefix: what makes that host a key.
    """

    read: Callable[[str, Reject], list[str]]
    ordinary: re.Pattern[str] | None = None
    prefix: str = ""


def read_line(line_format: LineFormat, line: str, reject: Reject) -> list[str] | None:
    """Returns the keys of a line, `None` for a comment or blank line.

    Raises:
        RuleError: the line is no entry.
    """
    text = line.strip("\ufeff \t\r\f\v")
    if not text or text[0] in "#!;":
        return None
    if len(text) >= MAX_LINE_LENGTH:
        raise RuleError("longer than any entry can be")
    if "\ufffd" in text:
        raise RuleError("not UTF-8 text")
    if _CONTROL.search(text):
        raise RuleError("control characters in it")
    entry = _COMMENT_TAIL.sub("", text)
    return line_format.read(entry, reject) if entry.strip() else None  # lines may hold other blanks alone, such as U+0085


def _read_hosts(text: str, reject: Reject) -> list[str]:
    address, *names = text.split()
    if not _ADDRESS.fullmatch(address):
        raise RuleError("does not begin with an address")
    if not names:
        raise RuleError("an address without a name")
    keys: list[str] = []
    for name in names:
        lowered = name.lower()
        if lowered in OWN_NAMES or lowered in SINKS:
            continue
        try:
            if address not in SINKS:
                raise RuleError("sends the name to a real address")  # noqa: TRY301  one way to refuse a name
            if "*" in lowered:
                raise RuleError("a wildcard means nothing in a hosts file")  # noqa: TRY301
            keys.append(exact_host_key(lowered))
        except RuleError as error:
            reject(str(error))
    return keys


def _read_domain(text: str, _reject: Reject) -> list[str]:
    return [whole_domain_key(text.removeprefix("*").removeprefix("."))]


def _read_dnsmasq(text: str, reject: Reject) -> list[str]:
    line = _DNSMASQ_LINE.fullmatch(text)
    if not line:
        raise RuleError("no address=/…/, local=/…/ or server=/…/")
    keyword, names, target = line.groups()
    if keyword == "address" and target not in SINKS | {"", "#"}:
        raise RuleError("sends the name to a real address")
    if keyword != "address" and target:
        raise RuleError("forwards to a server instead of blocking")
    keys: list[str] = []
    for name in names.split("/"):
        try:
            keys += _read_domain(name, reject)
        except RuleError as error:
            reject(str(error))
    return keys


def _read_url(text: str, _reject: Reject) -> list[str]:
    try:
        url = parse_loose_url(text)
    except UrlError as error:
        raise RuleError("not an http(s) URL") from error
    exact_host_key(url.host)
    return [url_key(url)]


def _read_ut1(text: str, reject: Reject) -> list[str]:
    if "/" not in text:
        return _read_domain(text, reject)
    try:
        url = parse_loose_url(text)
    except UrlError as error:
        raise RuleError("neither a domain nor a path below one") from error
    exact_host_key(url.host)
    return [prefix_key(url)]


_HOST_LINE = re.compile(rf"^{HOST_PATTERN}$", re.ASCII | re.MULTILINE)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PORT = r"(?::(?!(?:80|443)/)(?:[1-5][0-9]{4}|[1-9][0-9]{0,3}))?"
_ESCAPE = r"%(?!2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])[0-9A-F]{2}"
_PATH = rf"(?:[A-Za-z0-9_~=&;,+!$*|()\[\]@:?/-]++|(?<!/)\.|{_ESCAPE})*+"
"""What the parser of URLs and their keys leave as it is; a segment that begins with a dot is parsed in full."""

_URL_LINE = re.compile(rf"^https?://({HOST_NAME}|{_OCTET}(?:\.{_OCTET}){{3}})({_PORT}/{_PATH})(?<!\?)$", re.ASCII | re.MULTILINE)

LINE_FORMATS: Mapping[ListFormat, LineFormat] = {
    ListFormat.HOSTS: LineFormat(_read_hosts, re.compile(rf"^{_SINK_PATTERN}{HOST_PATTERN}$", re.ASCII | re.MULTILINE)),
    ListFormat.DOMAINS: LineFormat(_read_domain, _HOST_LINE, "."),
    ListFormat.DNSMASQ: LineFormat(
        _read_dnsmasq,
        re.compile(rf"^address=/{HOST_PATTERN}/(?:0\.0\.0\.0|::|127\.0\.0\.1|#)?$", re.ASCII | re.MULTILINE),
        ".",
    ),
    ListFormat.URLS: LineFormat(_read_url, _URL_LINE),
    ListFormat.UT1: LineFormat(_read_ut1, _HOST_LINE, "."),
}
"""Formats read line by line. Adblock rules are the engine's to read, digests have no keys, exports no lines (parse.py)."""


def line_format(list_format: ListFormat, action: ListAction) -> LineFormat:
    """Returns how to read the lines of one list, from its first on.

    Args:
        list_format: one of `LINE_FORMATS`, or RPZ.
        action: what the list means; only RPZ entries can differ.
    """
    if list_format is ListFormat.RPZ:
        return LineFormat(RpzReader(action).read)
    return LINE_FORMATS[list_format]
