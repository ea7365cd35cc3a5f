"""What must hold of all else that reads hostile input, for any bytes; driven by hypothesis and atheris as adblock_checks.py.

Each check takes raw bytes and raises where the code does: an exception that is not one of its own, a reading that is not the same
when it is repeated, or damage that is not found.
"""

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Final

from mitmproxy.net.http import http1

from gatewayfilter.documents.encoding.charset import decode, decode_as_labelled
from gatewayfilter.documents.html.forms import likely_credentials, read_forms
from gatewayfilter.documents.html.markup import read_html, read_markup, read_references
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import ListError, RuleError, SnapshotError, UrlError
from gatewayfilter.model import ListAction
from gatewayfilter.proxy.listener.client_hello import ClientHello, NotTls, read_client_hello
from gatewayfilter.proxy.listener.connect_request import read_connect
from gatewayfilter.proxy.listener.protocol_detection import Protocol, count_line_ends, detect
from gatewayfilter.proxy.mitm.fastpath.http1_heads import read_request, read_response
from gatewayfilter.sources.formats.detect import sniff
from gatewayfilter.sources.formats.line_formats import LINE_FORMATS, line_format, read_line
from gatewayfilter.sources.formats.list_export import csv_items, entry_key, json_items
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.urls import (
    canonical_host,
    domain_key,
    host_key,
    host_suffixes,
    parameter_name,
    parse_loose_url,
    parse_url,
    prefix_key,
    redacted,
    registrable_domain,
    unescaped,
    url_key,
)
from tests.proxy.connection_fakes import client_hello

SEEDS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "canonical-url": (b"http://User@Ex%41mple.COM:80/%7ea/../b?q=%zz#f", b"https://xn--bcher-kva.example./", b"http://0x7f.1/"),
    "list-file": (
        b"0.0.0.0 a.example b.example # x\n",
        b"address=/a.example/0.0.0.0\n",
        b"a.example CNAME .\n",
        b'[{"action":"block",',
    ),
    "page": (
        b"<title>a</title><p hidden>b<form action=/x><input type=password name=p>",
        b'<meta charset=gbk>\xc4\xe3<a href="//b">',
    ),
    "hello": (client_hello("a.example"), client_hello(None), b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"),
    "head": (
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic YTpi\r\n\r\n",
        b"GET http://a.example/b?c HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/html\r\n\r\n",
    ),
    "snapshot": (b"\x00\x10\xff", b"\x40\x00\x00\x00\x00\x01"),
}
"""Inputs to begin with, by check."""


def check_canonical_url(data: bytes) -> None:
    """Any text as a URL: refused, or canonical, which it stays, with keys that agree."""
    text = data.decode(errors="surrogateescape")
    redacted(text)
    parameter_name(text)
    unescaped(text)
    with suppress(UrlError):
        host = canonical_host(text)
        assert canonical_host(host) == host, text
        assert all(host == suffix or host.endswith(f".{suffix}") for suffix in host_suffixes(host)), text
        assert host_key(host) != domain_key(host)
    for parse in (parse_url, parse_loose_url):
        with suppress(UrlError):
            url = parse(text)
            again = parse_url(url.text)
            assert (again.text, again.host) == (url.text, url.host), text
            assert url_key(again) == url_key(url)
            assert prefix_key(again) == prefix_key(url)
            assert registrable_domain(url.host) in {"", *host_suffixes(url.host)}, text


def check_list_file(data: bytes) -> None:
    """Any bytes as a list: of a format or refused; each line gives keys or is counted as bad."""
    with suppress(ListError):
        sniff(data)
    lines = data.decode(errors="replace").split("\n")
    for one in (*LINE_FORMATS, ListFormat.RPZ):
        for action in (ListAction.BLOCK, ListAction.ALLOW):
            reader = line_format(one, action)
            for line in lines:
                refused: list[str] = []
                with suppress(RuleError):
                    for key in read_line(reader, line, refused.append) or []:
                        assert key, (one, line)
                        assert key.isprintable(), (one, line)
    for items in (json_items, csv_items):
        for number, item in items(io.BytesIO(data)):
            assert number >= 0
            with suppress(RuleError, UrlError):
                entry_key(item, ListAction.BLOCK)


def check_page(data: bytes) -> None:
    """Any bytes as a page: decoded and read, without an exception."""
    label = data[-20:].decode("latin-1") if len(data) % 2 else "text/html; charset=gbk"
    decoded = decode(data, label)
    decoded.text.encode()
    decode_as_labelled(data, label, decoded.charset)
    assert decode(data, label) == decoded
    for read in (read_markup, read_html, read_references, likely_credentials, read_forms):
        read(decoded.text)


def check_hello(data: bytes) -> None:
    """Any bytes as a ClientHello: what is whole stays the same with more after it; what is none is refused."""
    try:
        found = read_client_hello(data)
    except NotTls:
        return
    if found is not None:
        assert isinstance(found, ClientHello)
        assert read_client_hello(data + b"\x17\x03\x03\x00\x01x") == found
        assert detect(data) is Protocol.TLS


def check_head(data: bytes) -> None:
    """Any bytes as a head: the quick readers refuse, or read what mitmproxy's reader does."""
    count_line_ends(data)
    detect(data)
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return
    head = data[: end + 4]
    read_connect(head)
    read_response(head, b"GET")
    if (quick := read_request(head)) is not None:
        slow = http1.read_request_head(head[:-4].split(b"\r\n"))
        assert (quick.method, quick.host, quick.port, quick.path) == (slow.method, slow.host, slow.port, slow.path), data
        assert quick.headers.fields == slow.headers.fields, data


@cache
def _snapshot() -> bytes:
    builder = SnapshotBuilder()
    return bytes(builder.build())


def check_snapshot(data: bytes) -> None:
    """Any damage to a snapshot: found when it is opened, or of bytes that stand for nothing."""
    good = _snapshot()
    damaged = bytearray(good)
    for place in range(0, len(data) - 2, 3):
        damaged[int.from_bytes(data[place : place + 2]) % len(damaged)] ^= data[place + 2]
    cut = bytes(damaged[: len(damaged) - (data[0] if data and len(data) % 3 == 1 else 0)])
    try:
        opened = Snapshot.from_bytes(cut)
    except SnapshotError:
        return
    assert len(cut) == len(good), "cut off, and not noticed"
    opened.close()


INPUT_CHECKS: dict[str, Callable[[bytes], None]] = {
    "canonical-url": check_canonical_url,
    "list-file": check_list_file,
    "page": check_page,
    "hello": check_hello,
    "head": check_head,
    "snapshot": check_snapshot,
}
"""Name → check."""
