"""The heads that are read in one pass, held against mitmproxy's own reading of the same bytes."""

import pytest
from h11._receivebuffer import ReceiveBuffer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mitmproxy import http
from mitmproxy.net.http import http1
from mitmproxy.net.http.validate import validate_headers

from gatewayfilter.proxy.mitm.fastpath import http1_heads
from gatewayfilter.proxy.mitm.fastpath.http1_heads import CHUNKED, LONGEST_HEAD, keeps_open, read_request, read_response
from gatewayfilter.proxy.request.header_fields import COMPILED
from tests.case_tables import all_cases

NAMES = st.sampled_from([
    b"Host", b"accept", b"Connection", b"content-length", b"Content-Length", b"Transfer-Encoding", b"expect", b"Upgrade", b"x",
    b"", b" x", b"x ", b"\tfold", b"bad name", b"caf\xc3\xa9", b"x\x00",
])  # fmt: skip
VALUES = st.sampled_from([
    b"", b"x", b" x ", b"keep-alive", b"Keep-Alive", b"close", b"0", b"5", b"05", b"-1", b"5, 5", b"chunked", b"gzip, chunked",
    b"identity", b"100-continue", b"a:b", b"\xff", b"x\rz", b"x\nz", b"h2c", b"9" * 30,
])  # fmt: skip
FIELDS = st.lists(st.tuples(NAMES, VALUES, st.sampled_from([b":", b": ", b""])), max_size=4).map(
    lambda fields: [name + colon + value for name, value, colon in fields]
)
TARGETS = st.one_of(
    st.sampled_from([
        b"/", b"*", b"", b"/a?b=c#d", b"//x/y", b"http://a.example", b"http://a.example/x", b"HTTP://A.example:80/", b"http://a:b/",
        b"https://[::1]:8443/p", b"http://[::1/", b"http://user@a.example/", b"http://a.example?x", b"ftp://a.example/",
        b"http:///x", b"http://a.example:99999/", b"http://\xc3\xa9.example/", b"http://xn--caf-dma.example/[1]", b"/\xc3\xa9",
        b"/a\x0bb", b"a.example:1",
    ]),
    st.text("/?#[]:@%;=&.ab1", max_size=12).map(lambda text: b"http://a.example/" + text.encode()),
    st.text("/?#[]:@%;=&.ab1", max_size=12).map(lambda text: b"http://" + text.encode()),
)  # fmt: skip
METHODS = st.sampled_from([b"GET", b"HEAD", b"get", b"POST", b"OPTIONS", b"DELETE", b"CONNECT", b"G T"])
VERSIONS = st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"http/1.1", b"", b"HTTP/1.1 "])
STATUS = st.sampled_from([
    b"HTTP/1.1 200 OK", b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.1  200 OK", b"HTTP/1.1 404 Not  Found ", b"HTTP/1.0 200 OK",
    b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 Not Modified", b"HTTP/1.1 101 Switching", b"HTTP/1.1 100", b"HTTP/1.1 20 x",
    b"HTTP/1.1 999 x", b"HTTP/1.1 200 caf\xc3\xa9", b"HTTP/1.1\t200 OK", b"HTTP/1.1 200 a\tb", b"ICY 200 OK",
])  # fmt: skip


def lines_of(data: bytes) -> list[bytes]:
    buffer = ReceiveBuffer()
    buffer += data
    return [bytes(line) for line in buffer.maybe_extract_lines() or []]


def same(ours: http.Message, theirs: http.Message) -> None:
    ours.data.timestamp_start = theirs.data.timestamp_start
    assert ours.data == theirs.data
    validate_headers(theirs)
    assert not http1.connection_close(theirs.http_version, theirs.headers)
    assert keeps_open(theirs.headers.fields)


@settings(max_examples=30)
@given(METHODS, TARGETS, VERSIONS, FIELDS, st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n"]))
@example(b"GET", b"http://a.example:8080/x", b"HTTP/1.1", [b"Host: a.example:8080", b"Accept: */*"], b"\r\n")
def test_a_request_is_read_as_mitmproxy_reads_it(
    method: bytes, target: bytes, version: bytes, fields: list[bytes], end: bytes
) -> None:
    data = end.join([b"%b %b %b" % (method, target, version), *fields, b"", b""])
    found = read_request(data)
    if found is None:
        return
    expected = http1.read_request_head(lines_of(data))
    assert http1.expected_http_body_size(expected) == 0
    same(found, expected)


@settings(max_examples=30)
@given(STATUS, FIELDS, st.sampled_from([b"GET", b"HEAD", b"POST"]))
@example(b"HTTP/1.1 200 OK", [b"Content-Length: 5", b"Connection: keep-alive"], b"GET")
def test_a_response_is_read_as_mitmproxy_reads_it(status: bytes, fields: list[bytes], method: bytes) -> None:
    head = b"\r\n".join([status, *fields])
    found = read_response(head, method)
    if found is None:
        return
    response, size = found
    expected = http1.read_response_head(lines_of(head + b"\r\n\r\n"))
    request = http.Request.make(method.decode(), "http://a.example/")
    assert http1.expected_http_body_size(request, expected) == (None if size == CHUNKED else size)
    same(response, expected)


@all_cases(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive\r\nCookie: a=b\r\n\r\n",
        b"HEAD https://a.example:8443/ HTTP/1.1\r\n\r\n",
    ],
)
def test_plain_requests_are_read(data: bytes) -> None:
    assert read_request(data) is not None


@all_cases(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: a.example\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * LONGEST_HEAD + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x" * 65 + b": y\r\n\r\n",
        b"GET http://" + b"a." * 160 + b"example/ HTTP/1.1\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\r\n\r\n",
    ],
)
def test_whatever_is_disputed_is_left_to_mitmproxy(data: bytes) -> None:
    assert read_request(data) is None


@all_cases(
    ("head", "size"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5", 5),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked", CHUNKED),
        (b"HTTP/1.1 304 Not Modified", 0),
        (b"HTTP/1.1 200 OK", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close", None),
        (b"HTTP/1.1 100 Continue", None),
    ],
)
def test_the_end_of_a_response_is_clear_or_left_to_mitmproxy(head: bytes, size: int | None) -> None:
    found = read_response(head, b"GET")
    assert (found[1] if found else None) == size


def test_repeated_lines_are_kept_within_bounds_and_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[bytes, tuple[bytes, bytes]] = {}
    monkeypatch.setattr(http1_heads, "_repeated", kept)
    monkeypatch.setattr(http1_heads, "_MOST_REPEATED", 3)
    private = [b"Cookie: a=b", b"Authorization: Basic eDp5", b"Proxy-Authorization: Basic eDp5", b"Connection: keep-alive"]
    data = b"\r\n".join([b"GET / HTTP/1.1", b"ACCEPT:  */* ", *private, b"Accept: %b" % (b"x" * 300), b"", b""])
    first, second = read_request(data), read_request(data)
    assert list(kept) == [b"ACCEPT:  */* "]
    assert first is not None
    assert second is not None
    assert first.headers.fields == second.headers.fields
    assert first.headers.fields[0] == (b"ACCEPT", b"*/*")
    for number in range(7):
        assert read_request(b"GET / HTTP/1.1\r\nHost: h%d.example\r\n\r\n" % number) is not None
        assert len(kept) <= 3
    assert read_request(b"GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: h2c\r\nHost: a.example\r\n\r\n") is None


LINES = st.lists(
    st.one_of(
        st.tuples(NAMES, VALUES, st.sampled_from([b":", b": ", b""])).map(lambda line: line[0] + line[2] + line[1]),
        st.sampled_from(
            [b"Authorization: Basic eDp5", b"authorization: NTLM x", b"Host: \x0b a\x85 \x0c", b"x" * 64 + b":", b"x" * 65 + b":"]
        ),
        st.binary(max_size=6),
    ),
    max_size=5,
)


@pytest.mark.skipif(COMPILED is None, reason="not compiled")
@settings(max_examples=30)
@given(LINES, st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\r\n", b"\n\r\n"]), st.integers(0, 3), st.integers(0, 3))
def test_lines_are_read_the_same_compiled_and_in_python(lines: list[bytes], end: bytes, before: int, behind: int) -> None:
    head = b"first"[:before] + end.join([b"", *lines]) + b"\r\n\r\n"[:behind]
    for begin, stop in ((before, len(head)), (before, len(head) - behind), (0, len(head)), (len(head), len(head))):
        kept = [dict[bytes, tuple[bytes, bytes]](), dict[bytes, tuple[bytes, bytes]]()]
        found = []
        for read, memory in zip((http1_heads._read_compiled, http1_heads.read_lines), kept, strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(http1_heads, "_repeated", memory)
                found += [read(head, begin, stop), read(head, begin, stop)]
        assert found[0] == found[1] == found[2] == found[3]
        if found[0] is not None:
            assert kept[0] == kept[1]
