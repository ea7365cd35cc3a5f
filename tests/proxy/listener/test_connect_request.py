from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.net.http.http1 import read_request_head

from gatewayfilter.proxy.listener.connect_request import ConnectRequest, read_connect
from tests.case_tables import all_cases


@all_cases(
    ("head", "want"),
    [
        (b"CONNECT Shop.Example.:443 HTTP/1.1\r\nHost: x\r\n\r\n", ConnectRequest("shop.example", 443)),
        (b"CONNECT shop.example:443 HTTP/1.0\r\n\r\n", ConnectRequest("shop.example", 443)),
        (b"CONNECT [2001:DB8::1]:8443 HTTP/1.1\r\n\r\n", ConnectRequest("[2001:db8::1]", 8443)),
        (b"CONNECT 192.0.2.1:443 HTTP/1.1\r\n\r\n", ConnectRequest("192.0.2.1", 443, verbatim=True)),
        (
            b"CONNECT a.example:443 HTTP/1.1\r\nproxy-authorization:  Basic eA==\r\nAccept-Language: zh\r\n\r\n",
            ConnectRequest("a.example", 443, "Basic eA==", "zh", verbatim=True),
        ),
        (b"CONNECT a.example HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:0 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:1 HTTP/1.1\r\n\r\n", ConnectRequest("a.example", 1, verbatim=True)),
        (b"CONNECT a.example:65535 HTTP/1.1\r\n\r\n", ConnectRequest("a.example", 65_535, verbatim=True)),
        (b"CONNECT a.example:65536 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:443 HTTP/2.0\r\n\r\n", None),
        (b"CONNECT  a.example:443 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:443 HTTP/1.1\nHost: x\r\n\r\n", None),
        (b"CONNECT u@a.example:443 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example/x:443 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", None),
        (b"CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"CONNECT a.example:443 HTTP/1.1\r\n folded: x\r\n\r\n", None),
        (b"CONNECT a.example:443 HTTP/1.1\r\nA : x\r\n\r\n", None),
        (b"GET http://a.example/ HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:443 HTTP/1.1\r\nX: \0\r\n\r\n", None),
        (b"", None),
    ],
)
def test_cases(head: bytes, want: ConnectRequest | None) -> None:
    assert read_connect(head) == want


def test_the_first_of_two_equal_fields_counts() -> None:
    head = b"CONNECT a.example:443 HTTP/1.1\r\nAccept-Language: zh \r\naccept-language: en\r\n\r\n"
    assert read_connect(head) == ConnectRequest("a.example", 443, accept_language="zh", verbatim=True)


def test_short_heads_are_remembered() -> None:
    head = b"CONNECT a.example:443 HTTP/1.1\r\nX: %b\r\n\r\n"
    for length, remembered in ((1_024, True), (1_025, False)):
        sent = head % (b"x" * (length - len(head) + 2))
        assert len(sent) == length
        assert (read_connect(sent) is read_connect(sent)) is remembered


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    for head in (data, b"CONNECT " + data + b"\r\n\r\n", b"CONNECT a.example:443 HTTP/1.1\r\n" + data + b"\r\n\r\n"):
        found = read_connect(head)
        assert found is None or 0 < found.port < 65536


@all_cases(
    ("host", "verbatim"),
    [
        (b"shop.example", True),
        (b"localhost", True),
        (b"127.0.0.1", True),
        (b"Shop.example", False),
        (b"shop.example.", False),
        (b"xn--bcher-kva.example", False),
        (b"[::1]", False),
        (b"127.1", False),
        (b"2130706433", False),
        (b"a" * 64 + b".example", False),
        (b".".join([b"a" * 63] * 3) + b"." + b"a" * 61, True),  # 253 characters, the most that a name has
        (b".".join([b"a" * 63] * 3) + b"." + b"a" * 62, False),
    ],
)
def test_a_host_is_read_as_mitmproxy_reads_it_or_left_to_it(host: bytes, verbatim: bool) -> None:  # noqa: FBT001  a column
    head = b"CONNECT %b:8443 HTTP/1.1\r\nHost: x\r\n\r\n" % host
    found = read_connect(head)
    assert (found is not None and found.verbatim) is verbatim
    if verbatim:
        assert found is not None
        theirs = read_request_head(head[:-4].split(b"\r\n"))
        assert (theirs.host, theirs.port, theirs.method) == (found.host, found.port, "CONNECT")
