"""What is noted on a connection to an origin, and which requests make it their client's."""

from mitmproxy import http
from mitmproxy.connection import Server

from gatewayfilter.proxy.mitm.sharing import Sharing, binds, note_sharing, sharing_of
from tests.case_tables import all_cases


@all_cases(
    ("fields", "bound"),
    [
        ((), False),
        (((b"Cookie", b"a=b"),), False),
        (((b"Authorization", b"Basic QTpC"),), False),
        (((b"authorization", b"BEARER x"),), False),
        (((b"Authorization", b"Digest"),), False),
        (((b"Authorization", b"NTLM x"),), True),
        (((b"Authorization", b"Negotiate"),), True),
        (((b"Authorization", b""),), True),
        (((b"Authorization", b"\xffbasic x"),), True),
        (((b"Authorization", b"Basic x"), (b"Authorization", b"NTLM x")), True),
        (((b"Upgrade", b"websocket"),), True),
        (((b"Upgrade", b""),), True),
    ],
)
def test_which_requests_bind_their_connection(fields: tuple[tuple[bytes, bytes], ...], *, bound: bool) -> None:
    request = http.Request.make("GET", "http://site.example/")
    request.headers = http.Headers(fields)
    assert binds(request) is bound


def test_what_is_noted_on_a_connection() -> None:
    server = Server(address=("site.example", 80))
    assert sharing_of(server) is sharing_of(None) is None
    note_sharing(server, noted := Sharing(None, may_adopt=True))
    assert sharing_of(server) is noted
    assert (noted.key, noted.bound, noted.adopted, noted.opened_at) == (None, False, None, 0.0)
