"""What a connection speaks, from its first bytes: cases, and that no cut changes an answer."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.proxy.listener.protocol_detection import Protocol, count_line_ends, detect
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import client_hello

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@all_cases(
    ("data", "want"),
    [
        (b"GET / HTTP/1.1\r\n", Protocol.HTTP1),
        (b"G", Protocol.HTTP1),
        (b"g\0", Protocol.HTTP1),
        (b"!", Protocol.HTTP1),
        (b"\r\n\r\nGET /", Protocol.HTTP1),
        (b"\n\r G", Protocol.HTTP1),
        (b"\x1f/", Protocol.NEITHER),
        (b"\x85GET /", Protocol.HTTP1),
        (b"\xa0", Protocol.UNDECIDED),
        (b"\r\n" * 32, Protocol.UNDECIDED),
        (b"\r\n" * 33, Protocol.HTTP1),
        (b"", Protocol.UNDECIDED),
        (b"P", Protocol.UNDECIDED),
        (b"POST / HTTP/1.1", Protocol.HTTP1),
        (b"PRI * HTTP/1.1\r\n", Protocol.HTTP1),
        (PREFACE[:-1], Protocol.UNDECIDED),
        (PREFACE, Protocol.HTTP2),
        (PREFACE + b"\0\0", Protocol.HTTP2),
        (b"\r\n" + PREFACE, Protocol.HTTP1),
        (client_hello("a.example"), Protocol.TLS),
        (b"\x16", Protocol.UNDECIDED),
        (b"\x16\x03\x01\x02", Protocol.UNDECIDED),
        (b"\x16\x03\x7f\0\0", Protocol.TLS),
        (b"\x16\xfe", Protocol.NEITHER),
        (b"\r\n" + client_hello("a.example"), Protocol.NEITHER),
        (b"\x80\x2e\x01\x03\x01", Protocol.TLS),
        (b"\x85\x0a\x01\x03", Protocol.TLS),
        (b"\x80\x2e", Protocol.UNDECIDED),
        (b"\x80\x2e\x01\x00", Protocol.NEITHER),
        (b"SSH-2.0-OpenSSH_9.6 Debian\r\n", Protocol.NEITHER),
        (b"SSH-1.99-x\n", Protocol.NEITHER),
        (b"SSH-2.0-OpenSSH", Protocol.UNDECIDED),
        (b"SSH-2.0-x / HTTP/1.1\r\n", Protocol.HTTP1),
        (b"SSH-2.0-x /\r\n", Protocol.HTTP1),
        (b"SSH-2.0-x http://a.example/\r\n", Protocol.HTTP1),
        (b"SSH-2.0-x y http/1.1\r\n", Protocol.HTTP1),
        (b"SSH-2.0-" + b"x" * 300, Protocol.HTTP1),
        (b"SSH-2.0-" + b"x" * 246, Protocol.UNDECIDED),
        (b"SSH-2.0-" + b"x" * 246 + b"\n", Protocol.NEITHER),
        (b"SSH-2.0-" + b"x" * 247, Protocol.HTTP1),
        (b"SSH-2.0-" + b"x" * 247 + b"\n", Protocol.HTTP1),
        (b"\x80\x2e\x01", Protocol.UNDECIDED),
        (b"\x80\x2e\x01\x03", Protocol.TLS),
        (b"SSH-3 x\n", Protocol.HTTP1),
        (b"\x00\x00\x00\x2a\x00\x03\x00\x00user", Protocol.NEITHER),
        (b"\x05\x01\x00", Protocol.NEITHER),
        (b"\x03\x00\x00\x13\x0e\xe0", Protocol.NEITHER),
        (b"{}", Protocol.NEITHER),
        (b"/", Protocol.NEITHER),
    ],
)
def test_cases(data: bytes, want: Protocol) -> None:
    assert detect(data) is want


starts = st.sampled_from([
    b"", b"\r\n", b"\n", b" ", b"\x85", b"\x16", b"\x16\x03\x01", b"\x80\x2e\x01\x03", b"PRI * HTTP/2.0\r\n\r\n", PREFACE,
    b"SSH-", b"SSH-2.0-x", b"SSH-2.0-x /", b"GET ", b"\0",
])  # fmt: skip


@given(start=starts, rest=st.binary(max_size=300))
@example(start=b"SSH-2.0-" + b"x" * 246, rest=b"\n")
@example(start=b"SSH-2.0-" + b"x" * 247, rest=b"\n")
def test_no_cut_changes_the_answer(start: bytes, rest: bytes) -> None:
    data = start + rest
    answer = detect(data)
    for cut in range(len(data)):
        assert detect(data[:cut]) in {Protocol.UNDECIDED, answer}
    assert answer is not Protocol.UNDECIDED or len(data) < 256


@settings(max_examples=30)
@given(blank=st.text("\r\n", max_size=8), rest=st.binary(max_size=8))
def test_line_ends_are_counted(blank: str, rest: bytes) -> None:
    data = blank.encode() + rest
    count = count_line_ends(data)
    assert data[:count].strip(b"\r\n") == b""
    assert data[count : count + 1] not in {b"\r", b"\n"}
