"""The heads that are read in one pass, held against mitmproxy's own reading of the same bytes."""

from collections.abc import Callable

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
        (b"HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked", None),
        (b"HTTP/1.1 205 Reset Content\r\ntransfer-encoding: chunked", CHUNKED),
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


@all_cases(
    ("fields", "stays"),
    [
        ((), True),
        (((b"x-connected", b"close"), (b"accept", b"close")), True),
        (((b"connections", b"close"), (b"a-connection", b"close")), True),
        (((b"Connection", b"Keep-Alive"),), True),
        (((b"connection", b"keep-alive"), (b"CONNECTION", b"Close")), False),
        (((b"Connection", b"upgrade"), (b"connection", b"keep-alive")), False),
        (((b"connection", b""),), False),
    ],
)
def test_which_fields_leave_a_connection_open(fields: tuple[tuple[bytes, bytes], ...], *, stays: bool) -> None:
    assert keeps_open(fields) is stays


READERS = [http1_heads.read_lines] if COMPILED is None else [http1_heads.read_lines, http1_heads._read_compiled]


@pytest.mark.parametrize("read_fields", READERS)
@all_cases(
    ("lines", "fields", "framing"),
    [
        ([], [], {}),
        ([b"a: b"], [(b"a", b"b")], {}),
        ([b"a:b", b"Accept: \t*/* ", b"x:"], [(b"a", b"b"), (b"Accept", b"*/*"), (b"x", b"")], {}),
        ([b"x" * 64 + b":b"], [(b"x" * 64, b"b")], {}),
        ([b"x" * 65 + b":b"], None, {}),
        ([b"Content-Length: 5"], [(b"Content-Length", b"5")], {b"content-length": b"5"}),
        ([b"expect: a", b"upgrade:b"], [(b"expect", b"a"), (b"upgrade", b"b")], {b"expect": b"a", b"upgrade": b"b"}),
        ([b"Transfer-Encoding: chunked"], [(b"Transfer-Encoding", b"chunked")], {b"transfer-encoding": b"chunked"}),
        ([b"content-length: 5", b"content-length: 5"], None, {}),
        ([b"Connection: Keep-Alive"], [(b"Connection", b"Keep-Alive")], {}),
        ([b"connection: close"], None, {}),
        ([b"connection: keep-alive", b"connection: keep-alive"], None, {}),
        ([b"Authorization: Basic eDp5"], [(b"Authorization", b"Basic eDp5")], {}),
        ([b"Authorization: NTLM x"], None, {}),
        ([b"a: b\nc: d"], None, {}),
        ([b"a: b", b""], None, {}),
        ([b"nothing"], None, {}),
        ([b": b"], None, {}),
        ([b"a b: c"], None, {}),
    ],
)
def test_lines_of_fields(
    read_fields: Callable[..., object],
    lines: list[bytes],
    fields: list[tuple[bytes, bytes]] | None,
    framing: dict[bytes, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http1_heads, "_repeated", {})
    head = b"".join([b"first", *(b"\r\n" + line for line in lines), b"\r\n\r\n"])
    for _ in range(2):  # some lines are remembered
        assert read_fields(head, 5, len(head) - 4) == (None if fields is None else (tuple(fields), framing))
    assert read_fields(head, 4, len(head) - 4) is None, "not at the end of a line"


@pytest.mark.parametrize("read_fields", READERS)
def test_repeated_lines_are_kept_within_bounds_and_without_credentials(
    read_fields: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1_heads, "_read_fields", read_fields)
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
    sizes = []
    for number in range(7):
        assert read_request(b"GET / HTTP/1.1\r\nHost: h%d.example\r\n\r\n" % number) is not None
        sizes.append(len(kept))
    assert sizes == [2, 3, 1, 2, 3, 1, 2]
    for size, remembered in ((256, True), (257, False)):
        line = b"Accept: " + b"x" * (size - 8)
        assert read_request(b"GET / HTTP/1.1\r\n%b\r\n\r\n" % line) is not None
        assert (line in kept) is remembered
    assert read_request(b"GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: h2c\r\nHost: a.example\r\n\r\n") is None


def test_heads_names_and_origins_are_read_up_to_their_bounds() -> None:
    for size, is_read in ((LONGEST_HEAD, True), (LONGEST_HEAD + 1, False)):
        data = b"GET / HTTP/1.1\r\nx: %b\r\n\r\n" % (b"y" * (size - 23))
        assert (len(data), read_request(data) is not None) == (size, is_read)
    for size, is_read in ((64, True), (65, False)):
        assert (read_request(b"GET / HTTP/1.1\r\n%b: y\r\n\r\n" % (b"x" * size)) is not None) is is_read
    for size, is_read in ((296, True), (297, False)):  # and the four bytes of the scheme
        host = (b"a" * 50 + b".") * 4 + b"a" * 40
        named = host + b":" + b"80".zfill(size - len(host) - 1)
        assert len(named) == size
        assert (read_request(b"GET http://%b/ HTTP/1.1\r\n\r\n" % named) is not None) is is_read


@all_cases(("size", "remembered"), [(80, 1), (81, 0)])
def test_long_status_lines_are_read_and_not_remembered(size: int, remembered: int) -> None:
    http1_heads._status.cache_clear()
    found = read_response(b"HTTP/1.1 204 %b" % (b"x" * (size - 13)), b"GET")
    assert found is not None
    assert found[0].data.reason == b"x" * (size - 13)
    assert http1_heads._status.cache_info().currsize == remembered


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
