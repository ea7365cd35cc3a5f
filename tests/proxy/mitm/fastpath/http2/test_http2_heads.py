"""Heads of HTTP/2 that are read in one pass: what is read of them, their bounds, and what is remembered."""

import pytest
from mitmproxy import http

from gatewayfilter.proxy.mitm.fastpath.http2 import heads
from gatewayfilter.proxy.mitm.fastpath.http2.heads import are_lower, read_request, read_response
from tests.case_tables import all_cases
from tests.proxy.mitm.fastpath.http2.frame_script import OK, Fields, ask


def test_a_request_has_what_its_head_says() -> None:
    fields = ask(b"/a?b", b"HEAD", (b"cookie", b"a=b"))
    request = read_request(fields)
    assert request is not None
    meant = request.data
    assert (meant.http_version, meant.method, meant.scheme, meant.authority, meant.path) == (
        b"HTTP/2.0",
        b"HEAD",
        b"https",
        b"a.example",
        b"/a?b",
    )
    assert meant.headers.fields == tuple(fields[4:])
    assert (meant.content, meant.trailers, meant.timestamp_end) == (None, None, None)


@all_cases(
    ("authority", "address"),
    [
        (b"a.example", ("a.example", 443)),
        (b"a.example:8443", ("a.example", 8443)),
        (b"[2001:db8::1]:80", ("2001:db8::1", 80)),
        (b"a", ("a", 443)),
        (b"", None),
        (b"a.example:x", None),
        (b"a b", None),
        (b" a.example", None),
        (b".".join([b"a" * 49] * 5) + b":" + b"443".zfill(50), (".".join(["a" * 49] * 5), 443)),  # 300 bytes
        (b".".join([b"a" * 49] * 5) + b":" + b"443".zfill(51), None),
    ],
)
def test_where_a_request_leads(authority: bytes, address: tuple[str, int] | None) -> None:
    found = read_request([(b":authority", authority), *ask(drop=b":authority")])
    assert (None if found is None else (found.data.host, found.data.port)) == address


@all_cases(
    ("status", "fields", "length"),
    [
        (b"200", [], None),
        (b"599", [(b"content-length", b"0")], 0),
        (b"404", [(b"a", b"b"), (b"content-length", b"9" * 18)], int("9" * 18)),
    ],
)
def test_a_response_has_what_its_head_says(status: bytes, fields: Fields, length: int | None) -> None:
    found = read_response([(b":status", status), *fields])
    assert found is not None
    response, announced = found
    assert isinstance(response, http.Response)
    data = response.data
    assert (data.http_version, data.status_code, data.reason, data.headers.fields) == (
        b"HTTP/2.0",
        int(status),
        b"",
        tuple(fields),
    )
    assert (data.content, data.trailers, data.timestamp_end, announced) == (None, None, None, length)


@all_cases(
    "fields",
    [
        [],
        [(b":status", b"600")],
        [(b":status", b"199")],
        [(b":status", b"2000")],
        [(b":status", b"20")],
        [(b"a", b"b"), (b":status", b"200")],
        [*OK, (b"content-length", b"2")],
        [(b":status", b"200"), (b"content-length", b"01")],
        [(b":status", b"200"), (b"content-length", b"9" * 19)],
        [*OK, (b"te", b"x")],
    ],
)
def test_a_response_that_is_not_plain_is_left_to_h2(fields: Fields) -> None:
    assert read_response(fields) is None


def test_names_are_read_up_to_their_bound() -> None:
    for size, is_read in ((0, False), (1, True), (64, True), (65, False)):
        assert (read_request(ask(b"/", b"GET", (b"x" * size, b"y"))) is not None) is is_read


def test_plain_fields_are_remembered_within_bounds_and_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: set[tuple[bytes, bytes]] = set()
    monkeypatch.setattr(heads, "_repeated", kept)
    monkeypatch.setattr(heads, "_MOST_REPEATED", 4)
    usual = {(b"accept", b"text/html"), (b"user-agent", b"test")}
    private = [(b"cookie", b"a=b"), (b"authorization", b"Basic eDp5"), (b"proxy-authorization", b"Basic eDp5")]
    assert read_request(ask(b"/", b"GET", *private, (b"x-long", b"y" * 257))) is not None
    assert kept == usual
    for _ in range(2):
        assert read_response([*OK, (b"set-cookie", b"a=b"), (b"x-long", b"y" * 256)]) is not None
        assert kept == {*usual, OK[1], (b"x-long", b"y" * 256)}
    assert read_response([OK[0], (b"etag", b"1")]) is not None
    assert kept == {(b"etag", b"1")}
    assert read_request(ask(b"/", b"GET", (b"content-length", b"2"))) is None, "it may be in a response alone"


def test_which_names_go_out_as_they_are() -> None:
    for names, lower in (((), True), ((b"a", b"x-b"), True), ((b"a", b"X-B"), False), ((b"A", b"x-b"), False), ((b"",), False)):
        assert are_lower(tuple((name, b"C") for name in names)) is lower
