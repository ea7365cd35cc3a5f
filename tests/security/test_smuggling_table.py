"""Requests and answers that two readers could take apart differently, and how many messages the filter makes of each.

Each row is sent to a running filter; a raw origin behind it tells which requests reached it. A request with a second one
hidden in it is refused, or the hidden one stays the body that it is.
"""

import re
import ssl
from collections.abc import Callable, Iterator

import hpack
import pytest
import trustme
from hyperframe.frame import DataFrame, HeadersFrame, SettingsFrame

from tests.e2e.e2e_gateway import GatewayProcess, until
from tests.security.attack_case import Case, Flight, Handshake
from tests.security.attack_client import Outcome, run_case
from tests.security.attack_run import product
from tests.security.recording_origin import RecordingOrigin

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HIDDEN = "GET http://ok.test:PORT/hidden HTTP/1.1\r\nHost: ok.test:PORT\r\n\r\n"
BLOCKED = HIDDEN.replace("ok.test:PORT", "blocked.test:PORT")
type Ends = list[list[str]]
"""Requests that may have reached the origin, each way in which it may end."""

REFUSED: Ends = [[]]
ONE: Ends = [["POST /one"]]
AT_MOST_ONE: Ends = REFUSED + ONE
"""Refused or passed on: what is passed on is what was judged."""
ONE_OR_TWO: Ends = [["POST /one"], ["POST /one", "POST /one"]]
GET_ONE: Ends = [["GET /one"]]
TWO: Ends = [["POST /one", "GET /hidden"]]
"""The filter makes two requests of it, and judges each."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def gateway(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with product(tmp_path_factory.mktemp("smuggling"), authority, proxy__workers="1", learn__enabled="false") as running:
        assert running.cli("list", "add", "--block", "blocked.test").returncode == 0
        until("the rule", lambda: running.get("http://blocked.test/").status == 403)
        yield running


@pytest.fixture(scope="module")
def origin_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("ok.test").configure_cert(context)
    return context


async def run_raw(gateway: GatewayProcess, case: Case, settled: Callable[[bytes], bool]) -> Outcome:
    host, _, port = gateway.address.rpartition(":")
    return await run_case(case, (host, int(port)), settled)


def post(fields: str, body: str, *, version: str = "HTTP/1.1") -> str:
    """A POST with framing fields, and a body; `PORT` is the origin's."""
    return f"POST http://ok.test:PORT/one {version}\r\nHost: ok.test:PORT\r\n{fields}\r\n\r\n{body}"


CHUNKED = "Transfer-Encoding: chunked"
LAST = "0\r\n\r\n"
REQUESTS = [
    # Both framings, RFC 9112 §6.1.
    ("cl-te", post(f"Content-Length: 5\r\n{CHUNKED}", LAST + HIDDEN), REFUSED),
    ("te-cl", post(f"{CHUNKED}\r\nContent-Length: 4", "5\r\nabcde\r\n" + LAST + HIDDEN), REFUSED),
    ("cl-te-spaced", post("Content-Length: 5\r\nTransfer-Encoding : chunked", LAST + HIDDEN), REFUSED),
    ("cl-te-folded", post("Content-Length: 5\r\nTransfer-Encoding:\r\n chunked", LAST + HIDDEN), REFUSED),
    # Spellings of Transfer-Encoding.
    ("te-x", post("Transfer-Encoding: xchunked", LAST + HIDDEN), REFUSED),
    ("te-twice", post(f"{CHUNKED}\r\n{CHUNKED}", LAST + HIDDEN), REFUSED),
    ("te-twice-other", post(f"{CHUNKED}\r\nTransfer-Encoding: identity", LAST + HIDDEN), REFUSED),
    ("te-list", post("Transfer-Encoding: gzip, chunked", LAST + HIDDEN), TWO),
    ("te-list-identity", post("Transfer-Encoding: identity, chunked", LAST + HIDDEN), REFUSED),
    ("te-not-last", post("Transfer-Encoding: chunked, gzip", LAST + HIDDEN), REFUSED),
    ("te-identity", post("Transfer-Encoding: identity", HIDDEN), REFUSED),
    ("te-empty", post("Transfer-Encoding:", LAST + HIDDEN), REFUSED),
    ("te-quoted", post('Transfer-Encoding: "chunked"', LAST + HIDDEN), REFUSED),
    ("te-parameter", post("Transfer-Encoding: chunked;x=y", LAST + HIDDEN), REFUSED),
    ("te-tab", post("Transfer-Encoding:\tchunked", LAST), ONE),
    ("te-vertical-tab", post("Transfer-Encoding: \x0bchunked", LAST + HIDDEN), TWO),
    ("te-form-feed", post("Transfer-Encoding: chunked\x0c", LAST + HIDDEN), TWO),
    ("te-nul", post("Transfer-Encoding: chunked\0", LAST + HIDDEN), REFUSED),
    ("te-nbsp", post("Transfer-Encoding: chunked\xa0", LAST + HIDDEN), REFUSED),
    ("te-case", post("Transfer-Encoding: CHUNKED", LAST), ONE),
    ("te-name-case", post("tRANSFER-eNCODING: chunked", LAST), ONE),
    ("te-name-underscore", post("Transfer_Encoding: chunked", ""), ONE),
    ("te-name-space-before", post(f" {CHUNKED}", LAST + HIDDEN), REFUSED),
    ("te-name-space-behind", post("Transfer-Encoding : chunked", LAST + HIDDEN), REFUSED),
    ("te-name-tab-behind", post("Transfer-Encoding\t: chunked", LAST + HIDDEN), REFUSED),
    ("te-behind-a-bare-cr", post(f"X: a\r{CHUNKED}", LAST + HIDDEN), REFUSED),
    ("te-behind-a-bare-lf", post(f"X: a\n{CHUNKED}", LAST), ONE),
    ("te-old-version", post(CHUNKED, LAST + HIDDEN, version="HTTP/1.0"), REFUSED),
    ("folded-field", post("X: a\r\n b", ""), REFUSED),
    ("folded-first-field", "POST http://ok.test:PORT/one HTTP/1.1\r\n X: y\r\nHost: ok.test:PORT\r\n\r\n", REFUSED),
    ("no-colon", post("Content-Length", HIDDEN), REFUSED),
    ("empty-name", post(": x", ""), REFUSED),
    ("name-with-nul", post("X\0Y: z", ""), REFUSED),
    ("value-with-nul", post("X: y\0z", ""), REFUSED),
    ("value-with-cr", post("X: y\rz", ""), REFUSED),
    # Content-Length.
    ("cl-two", post("Content-Length: 0\r\nContent-Length: LENGTH", HIDDEN), REFUSED),
    ("cl-two-alike", post("Content-Length: 4\r\nContent-Length: 4", "abcd"), REFUSED),
    ("cl-list", post("Content-Length: 0, LENGTH", HIDDEN), REFUSED),
    ("cl-list-alike", post("Content-Length: 4, 4", "abcd"), REFUSED),
    ("cl-plus", post("Content-Length: +4", "abcd"), REFUSED),
    ("cl-minus", post("Content-Length: -1", HIDDEN), REFUSED),
    ("cl-hex", post("Content-Length: 0x4", "abcd"), REFUSED),
    ("cl-underscore", post("Content-Length: 1_0", "abcdefghij"), REFUSED),
    ("cl-fraction", post("Content-Length: 4.0", "abcd"), REFUSED),
    ("cl-space-inside", post("Content-Length: 4 0", "abcd"), REFUSED),
    ("cl-empty", post("Content-Length:", HIDDEN), REFUSED),
    ("cl-unicode-digit", post("Content-Length: \xb2", "ab"), REFUSED),
    ("cl-space-behind-name", post("Content-Length : 0", HIDDEN), REFUSED),
    ("cl-huge", post("Content-Length: 99999999999999999999999", HIDDEN), ONE),
    ("cl-zeros", post("Content-Length: 0004", "abcd"), REFUSED),
    ("cl-of-a-hidden-request", post("Content-Length: LENGTH", HIDDEN), ONE),
    ("cl-in-a-get", post("Content-Length: LENGTH", HIDDEN).replace("POST", "GET", 1), GET_ONE),
    # Chunks.
    ("chunk-plain", post(CHUNKED, "4\r\nabcd\r\n" + LAST), ONE),
    ("chunk-of-a-hidden-request", post(CHUNKED, f"LENGTH_X\r\n{HIDDEN}\r\n" + LAST), ONE),
    ("chunk-extension", post(CHUNKED, "4;a=b\r\nabcd\r\n" + LAST), ONE),
    ("chunk-extension-with-lf", post(CHUNKED, "4;a\nxx\r\nabcd\r\n" + LAST), REFUSED),
    ("chunk-bare-lf", post(CHUNKED, "4\nabcd\n0\n\n"), ONE),
    ("chunk-hex-prefix", post(CHUNKED, "0x4\r\nabcd\r\n" + LAST), REFUSED),
    ("chunk-plus", post(CHUNKED, "+4\r\nabcd\r\n" + LAST), REFUSED),
    ("chunk-minus", post(CHUNKED, "-4\r\nabcd\r\n" + LAST), REFUSED),
    ("chunk-underscore", post(CHUNKED, "1_0\r\nabcdefghij012345\r\n" + LAST), REFUSED),
    ("chunk-space-before", post(CHUNKED, " 4\r\nabcd\r\n" + LAST), REFUSED),
    ("chunk-space-behind", post(CHUNKED, "4 \r\nabcd\r\n" + LAST), ONE),
    ("chunk-empty-size", post(CHUNKED, "\r\nabcd\r\n" + LAST), REFUSED),
    ("chunk-too-short", post(CHUNKED, "2\r\nabcd\r\n" + LAST), REFUSED),
    ("chunk-no-line-end", post(CHUNKED, "4\r\nabcd" + LAST), REFUSED),
    ("chunk-overflow", post(CHUNKED, "10000000000000000\r\nabcd\r\n" + LAST), ONE),
    ("chunk-trailing-host", post(CHUNKED, "0\r\nHost: blocked.test\r\n\r\n"), ONE),
    # The head itself.
    ("two-hosts", post("Host: blocked.test", ""), REFUSED),
    ("host-of-another", post("X: y", "").replace("Host: ok.test:PORT", "Host: blocked.test"), AT_MOST_ONE),
    ("bare-lf-lines", post("X: y", "").replace("\r\n", "\n"), ONE),
    ("bare-cr-lines", post("X: y", "").replace("\r\n", "\r"), REFUSED),
    ("two-spaces", post("X: y", "").replace("POST http", "POST  http"), AT_MOST_ONE),
    ("tab-in-the-line", post("X: y", "").replace("POST http", "POST\thttp"), AT_MOST_ONE),
    ("space-in-the-target", post("X: y", "").replace("/one", "/one x"), REFUSED),
    ("no-version", post("X: y", "").replace(" HTTP/1.1", ""), REFUSED),
    ("version-9", post("X: y", "", version="HTTP/9.9"), AT_MOST_ONE),
    ("bom-before", "\xef\xbb\xbf" + post("X: y", ""), REFUSED),
    ("nul-before", "\0" + post("X: y", ""), REFUSED),
    ("expect-and-hidden", post("Expect: 100-continue\r\nContent-Length: LENGTH", HIDDEN), ONE),
    # Several requests.
    (
        "pipeline",
        post("Content-Length: 0", "") + post("Content-Length: 0", "").replace("/one", "/two"),
        [["POST /one", "POST /two"]],
    ),
    ("pipeline-with-line-ends", post("Content-Length: 0", "\r\n") + post("Content-Length: 0", ""), ONE_OR_TWO),
    (
        "pipeline-with-a-blocked-one",
        post("Content-Length: 0", "") + BLOCKED + post("Content-Length: 0", ""),
        [["POST /one", "POST /one"]],
    ),
    ("upgrade-h2c", post("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk", ""), ONE),
]


def render(sent: str, port: int, *, tunnel: bool) -> bytes:
    """Returns a row's bytes for an origin's port: to the proxy, or as they are sent in a tunnel."""
    hidden = HIDDEN
    if tunnel:
        sent, hidden = (re.sub(r"(\w[ \t]+)http://[\w.]+:PORT", r"\1", text) for text in (sent, hidden))
    length = len(hidden.replace("PORT", str(port)))
    sent = sent.replace("LENGTH_X", f"{length:x}").replace("LENGTH", str(length)).replace("PORT", str(port))
    return sent.encode("latin-1")


@pytest.mark.parametrize("tunnel", [False, True], ids=["proxy", "tunnel"])
@pytest.mark.parametrize(("sent", "expected"), [pytest.param(sent, expected, id=name) for name, sent, expected in REQUESTS])
async def test_requests(sent: str, expected: Ends, *, tunnel: bool, gateway: GatewayProcess) -> None:
    async with RecordingOrigin().running() as origin:
        connect = b"CONNECT ok.test:%d HTTP/1.1\r\nHost: ok.test:%d\r\n\r\n" % (origin.port, origin.port) if tunnel else b""
        case = Case("row", (Flight(render(sent, origin.port, tunnel=tunnel)),), Flight(connect))
        await run_raw(gateway, case, lambda _: origin.reached() in expected)
        reached = origin.reached()
    assert reached in expected
    hosts = {host for head in origin.heads() for host in head.values(b"host")}
    assert hosts <= {b"ok.test:%d" % origin.port}


OK_BODY = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"
STRAY = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nstray one"
"""What must never come as the answer to the second request, whose own is `fine two`."""
ANSWERS = [
    # What the origin says to the first request; what of its body the client may take for the answer.
    ("plain", OK_BODY + "fine one", "fine one"),
    ("two-answers", OK_BODY + "fine one" + STRAY, "fine one"),
    ("cl-te", f"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{CHUNKED}\r\n\r\n" + LAST + STRAY, ""),
    ("te-cl", f"HTTP/1.1 200 OK\r\n{CHUNKED}\r\nContent-Length: 60\r\n\r\n" + LAST + STRAY, ""),
    ("two-lengths", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n" + STRAY, ""),
    ("two-lengths-alike", "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nContent-Length: 8\r\n\r\nfine one", "fine one"),
    ("length-list", "HTTP/1.1 200 OK\r\nContent-Length: 0, 50\r\n\r\n" + STRAY, ""),
    ("length-sign", "HTTP/1.1 200 OK\r\nContent-Length: +8\r\n\r\nfine one" + STRAY, ""),
    ("length-negative", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + STRAY, ""),
    ("length-hex", "HTTP/1.1 200 OK\r\nContent-Length: 0x8\r\n\r\nfine one" + STRAY, ""),
    ("te-twice", f"HTTP/1.1 200 OK\r\n{CHUNKED}\r\n{CHUNKED}\r\n\r\n" + LAST + STRAY, ""),
    ("te-identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 8\r\n\r\nfine one" + STRAY, "fine one"),
    ("te-spaced", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n" + LAST + STRAY, ""),
    ("te-folded", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n8\r\nfine one\r\n" + LAST + STRAY, "fine one"),
    ("chunks-bare-lf", f"HTTP/1.1 200 OK\r\n{CHUNKED}\r\n\r\n8\nfine one\n0\n\n" + STRAY, ""),
    ("chunks-broken", f"HTTP/1.1 200 OK\r\n{CHUNKED}\r\n\r\nZZ\r\nfine one\r\n0\r\n\r\n" + STRAY, ""),
    ("204-with-body", "HTTP/1.1 204 No Content\r\nContent-Length: 50\r\n\r\n" + STRAY, ""),
    ("204-chunked", f"HTTP/1.1 204 No Content\r\n{CHUNKED}\r\n\r\n" + LAST + STRAY, ""),
    ("205-with-body", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n" + STRAY, ""),
    ("304-with-body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n" + STRAY, ""),
    ("304-chunked", f"HTTP/1.1 304 Not Modified\r\n{CHUNKED}\r\n\r\n" + STRAY, ""),
    ("interim-before", "HTTP/1.1 100 Continue\r\n\r\n" + OK_BODY + "fine one" + STRAY, "fine one"),
    ("interim-with-length", "HTTP/1.1 103 Early Hints\r\nContent-Length: 50\r\n\r\n" + OK_BODY + "fine one" + STRAY, "fine one"),
    ("interim-unheard-of", "HTTP/1.1 199 Odd\r\n\r\n" + OK_BODY + "fine one" + STRAY, "fine one"),
    ("switch-unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n" + STRAY, ""),
    ("old-version", "HTTP/1.0 200 OK\r\n\r\nfine one", "fine one"),
    ("no-version", "fine one\r\n\r\n" + STRAY, ""),
    ("value-with-cr", "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 0\r\nContent-Length: 8\r\n\r\nfine one" + STRAY, "fine one"),
    ("value-with-nul", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 8\r\n\r\nfine one" + STRAY, "fine one"),
    ("value-folded", "HTTP/1.1 200 OK\r\nX: a\r\n Content-Length: 0\r\nContent-Length: 8\r\n\r\nfine one" + STRAY, "fine one"),
    ("reason-with-cr", "HTTP/1.1 200 OK\rContent-Length: 0\r\nContent-Length: 8\r\n\r\nfine one" + STRAY, "fine one"),
    (
        "trailing-length",
        f"HTTP/1.1 200 OK\r\n{CHUNKED}\r\n\r\n8\r\nfine one\r\n0\r\nContent-Length: 0\r\n\r\n" + STRAY,
        "fine one",
    ),
    ("garbage", "\x00\x01 no HTTP\r\n\r\n" + STRAY, ""),
]


@pytest.mark.parametrize(("answer", "body"), [pytest.param(answer, body, id=name) for name, answer, body in ANSWERS])
async def test_answers(answer: str, body: str, gateway: GatewayProcess) -> None:
    """No answer that was not asked for reaches the client, in the place of another one or behind its own."""
    second = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nfine two"
    async with RecordingOrigin((answer.encode("latin-1"), second)).running() as origin:
        head = b"GET http://ok.test:%d/%%s HTTP/1.1\r\nHost: ok.test:%d\r\n\r\n" % (origin.port, origin.port)
        flights = (Flight(head % b"one"), Flight(head % b"two"))
        ends, has_no_end, answered = (body.encode() or b"HTTP/", b"fine two", b" 502 "), answer.startswith("HTTP/1.0"), False

        def settled(said: bytes) -> bool:
            nonlocal answered
            if answered and has_no_end:  # it lasts as long as its connection, and no other one comes
                return True
            found = any(end in said for end in ends)
            answered |= found
            return found

        got = (await run_raw(gateway, Case("answer", flights), settled)).answers
    first, *rest = got
    assert b"stray one" not in b"".join(rest)
    assert b"stray one" not in first
    if body:
        assert body.encode() in first or b"502" in first[:16]
    for later in rest:
        assert later == b"" or b"fine two" in later or b" 502 " in later[:20]
    lines = first.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert not any(mark in line for line in lines for mark in (b"\r", b"\n", b"\0"))


PLAIN = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"ok.test"), (b":path", b"/one")]
POST_ONE = [(b":method", b"POST"), *PLAIN[1:]]
BODY = b"GET /hidden HTTP/1.1\r\nHost: ok.test\r\n\r\n"


def changed(name: bytes, value: bytes) -> list[tuple[bytes, bytes]]:
    """The plain request with another value of a pseudo-header."""
    return [(found, value if found == name else old) for found, old in PLAIN]


DOWNGRADES = [
    # Fields of an HTTP/2 request, its body, and what a server of HTTP/1 hears.
    ("plain", PLAIN, None, GET_ONE),
    ("body", POST_ONE, BODY, ONE),
    ("length", [*POST_ONE, (b"content-length", b"%d" % len(BODY))], BODY, ONE),
    ("length-too-short", [*POST_ONE, (b"content-length", b"0")], BODY, REFUSED),
    ("length-too-long", [*POST_ONE, (b"content-length", b"999")], BODY, AT_MOST_ONE),
    ("two-lengths", [*POST_ONE, (b"content-length", b"0"), (b"content-length", b"%d" % len(BODY))], BODY, REFUSED),
    ("te-chunked", [*POST_ONE, (b"transfer-encoding", b"chunked")], b"0\r\n\r\n" + BODY, REFUSED),
    ("connection", [*PLAIN, (b"connection", b"keep-alive")], None, REFUSED),
    ("upgrade", [*PLAIN, (b"upgrade", b"foo")], None, REFUSED),
    ("line-break-in-a-value", [*PLAIN, (b"x", b"a\r\nTransfer-Encoding: chunked")], None, REFUSED),
    ("lf-in-a-value", [*PLAIN, (b"x", b"a\nTransfer-Encoding: chunked")], None, REFUSED),
    ("nul-in-a-value", [*PLAIN, (b"x", b"a\0b")], None, REFUSED),
    ("line-break-in-a-name", [*PLAIN, (b"x: y\r\ntransfer-encoding", b"chunked")], None, REFUSED),
    ("colon-in-a-name", [*PLAIN, (b"transfer-encoding: chunked\r\nx", b"y")], None, REFUSED),
    ("space-in-a-name", [*PLAIN, (b"transfer-encoding ", b"chunked")], None, REFUSED),
    ("upper-case-name", [*PLAIN, (b"Transfer-Encoding", b"chunked")], None, REFUSED),
    ("empty-name", [*PLAIN, (b"", b"chunked")], None, REFUSED),
    ("line-break-in-the-path", changed(b":path", b"/one HTTP/1.1\r\nHost: ok.test\r\n\r\nGET /hidden"), None, REFUSED),
    ("space-in-the-path", changed(b":path", b"/one HTTP/1.1 x"), None, REFUSED),
    ("absolute-path", changed(b":path", b"https://blocked.test/one"), None, REFUSED),
    ("star-path", [(b":method", b"OPTIONS"), *changed(b":path", b"*")[1:]], None, [["OPTIONS *"]]),
    ("empty-path", changed(b":path", b""), None, REFUSED),
    ("line-break-in-the-method", changed(b":method", b"GET /hidden HTTP/1.1\r\nHost: ok.test\r\n\r\nGET"), None, REFUSED),
    ("space-in-the-method", changed(b":method", b"GET /hidden"), None, REFUSED),
    ("line-break-in-the-scheme", changed(b":scheme", b"https\r\nX: y"), None, REFUSED),
    ("line-break-in-the-authority", changed(b":authority", b"ok.test\r\nX: y"), None, REFUSED),
    ("another-authority", changed(b":authority", b"blocked.test"), None, REFUSED),
    ("two-authorities", [*PLAIN[:3], (b":authority", b"blocked.test"), PLAIN[3]], None, REFUSED),
    ("another-host", [*PLAIN, (b"host", b"blocked.test")], None, REFUSED),
    ("two-hosts", [*PLAIN, (b"host", b"ok.test"), (b"host", b"blocked.test")], None, REFUSED),
    ("two-paths", [*PLAIN, (b":path", b"/hidden")], None, REFUSED),
    ("pseudo-behind", [(b"x", b"y"), *PLAIN], None, REFUSED),
    ("pseudo-unheard-of", [*PLAIN[:3], (b":foo", b"bar"), PLAIN[3]], None, REFUSED),
    ("no-method", PLAIN[1:], None, REFUSED),
    ("no-path", PLAIN[:3], None, REFUSED),
    ("connect", [(b":method", b"CONNECT"), (b":authority", b"blocked.test:443")], BODY, REFUSED),
    ("extended-connect", [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *PLAIN[1:]], None, REFUSED),
]


def frames(fields: list[tuple[bytes, bytes]], body: bytes | None) -> bytes:
    """An HTTP/2 connection with one request."""
    block = hpack.Encoder().encode(fields)
    sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0).serialize()
    sent += HeadersFrame(1, block, flags=["END_HEADERS", *(["END_STREAM"] if body is None else [])]).serialize()
    return sent if body is None else sent + DataFrame(1, body, flags=["END_STREAM"]).serialize()


@pytest.mark.parametrize(
    ("fields", "body", "expected"), [pytest.param(fields, body, expected, id=name) for name, fields, body, expected in DOWNGRADES]
)
async def test_downgrades(
    fields: list[tuple[bytes, bytes]],
    body: bytes | None,
    expected: Ends,
    gateway: GatewayProcess,
    origin_tls: ssl.SSLContext,
) -> None:
    async with RecordingOrigin().running(origin_tls) as origin:
        connect = Flight(b"CONNECT ok.test:%d HTTP/1.1\r\nHost: ok.test:%d\r\n\r\n" % (origin.port, origin.port))
        case = Case("row", (Flight(frames(fields, body)),), connect, (Handshake("ok.test", ("h2",)),))
        outcome = await run_raw(gateway, case, lambda _: origin.reached() in expected)
        reached = origin.reached()
    assert outcome.certificates
    assert reached in expected
    for head in origin.heads():
        assert {value.partition(b":")[0] for value in head.values(b"host")} == {b"ok.test"}
