"""How connections to clients and origins are set up, and whose sessions are resumed; no handshake is made."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import tls
from mitmproxy.connection import Client, Server
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import modes
from mitmproxy.test import taddons
from OpenSSL import SSL

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.config import Http2Clients
from gatewayfilter.proxy.mitm import tls_config
from gatewayfilter.proxy.mitm.sharing import Adopted, Sharing, note_sharing
from gatewayfilter.proxy.mitm.stale_retry import NO_PROTOCOL
from gatewayfilter.proxy.mitm.tls_config import SESSION_S, Bounded, GatewayTlsConfig, _Resumable, _verify

H2, H1 = b"h2", b"http/1.1"
AT = ("site.example", 443)


class Setup:
    """The addon, its options and a clock."""

    def __init__(self, context: Any, home: Path) -> None:
        self.context, self.home, self.now = context, home, 1_000.0
        self.addon = self.with_clients(Http2Clients.OFFERED)

    def with_clients(self, clients: Http2Clients) -> GatewayTlsConfig:
        self.addon = GatewayTlsConfig(clients, lambda: self.now)
        return self.set(confdir=str(self.home))

    def set(self, **options: Any) -> GatewayTlsConfig:
        self.context.options.update(**options)
        self.addon.configure(options)
        return self.addon

    def client(self, *offers: bytes, **more: Any) -> tls.TlsData:
        """Returns what a connection to a client is set up by; it is set up."""
        client = Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080))
        client.sni, client.alpn_offers = "site.example", list(offers)
        client.cipher_list = more.get("ciphers", [])
        context = Context(client, self.context.options)
        context.server.address = AT
        context.server.certificate_list = more.get("certificates", ())
        context.server.alpn = more.get("server_alpn")
        client.alpn = more.get("alpn")
        context.layers = more.get("layers", [])
        data = tls.TlsData(client, context, ssl_conn=more.get("ssl_conn"), is_dtls=more.get("dtls", False))
        self.addon.tls_start_client(data)
        return data

    def server(
        self, *offers: bytes, sni: str | None = None, client_sni: str | None = "named.example", **more: Any
    ) -> tls.TlsData:
        """Likewise for a connection to an origin."""
        client = Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080))
        client.sni, client.alpn_offers = client_sni, list(more.get("client_offers", ()))
        context = Context(client, self.context.options)
        server = context.server = Server(address=AT)
        server.sni, server.alpn_offers, server.tls = sni, offers, True
        server.cipher_list = more.get("ciphers", [])
        if "sharing" in more:
            note_sharing(server, more["sharing"])
        data = tls.TlsData(server, context, ssl_conn=more.get("ssl_conn"), is_dtls=more.get("dtls", False))
        self.addon.tls_start_server(data)
        return data


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("authority")
    ensure_ca(made)
    return made


@pytest.fixture
def setup(home: Path) -> Iterator[Setup]:
    with taddons.context(GatewayTlsConfig()) as context:
        yield Setup(context, home)


def context_of(data: tls.TlsData) -> SSL.Context:
    assert data.ssl_conn is not None
    return data.ssl_conn.get_context()


def facts(data: tls.TlsData) -> dict[str, object]:
    assert data.ssl_conn is not None
    return dict(data.ssl_conn.get_app_data())


def test_clients_share_a_context_of_the_first_one(setup: Setup) -> None:
    first, second, third = (setup.client(H2, H1) for _ in range(3))
    assert context_of(first) is context_of(second) is context_of(third)
    assert facts(second) == {"client_alpn": None, "server_alpn": None, "http2": True}
    chosen = facts(setup.client(H2, H1, alpn=H2, server_alpn=H1))
    assert (chosen["client_alpn"], chosen["server_alpn"]) == (H2, H1)
    for other in ({"ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"]}, {"dtls": True}):
        assert context_of(setup.client(H2, H1, **other)) is not context_of(first)
    assert context_of(setup.client(H2, H1)) is context_of(first)
    mine: Any = SSL.Connection(SSL.Context(SSL.TLS_METHOD))
    assert setup.client(H2, H1, ssl_conn=mine).ssl_conn is mine
    setup.server()
    again = setup.set(http2=True)
    assert (again._for_clients, again._for_origins) == (None, None)


def test_a_connection_to_the_proxy_itself_has_no_http2(setup: Setup) -> None:
    setup.client()
    proxy, other = object.__new__(modes.HttpProxy), object.__new__(modes.TransparentProxy)
    for layers, alpn in (([proxy, None], H1), ([proxy, None, None], H2), ([other, None], H2), ([proxy], H2)):
        assert facts(setup.client(H2, alpn=H2, layers=layers))["client_alpn"] == alpn


CIPHERS = "ECDHE-RSA-AES128-GCM-SHA256"


@pytest.mark.parametrize(
    "option",
    [
        {"http2": False},
        {"ssl_insecure": True},
        {"ciphers_client": CIPHERS},
        {"ciphers_server": CIPHERS},
        {"add_upstream_certs_to_client_chain": True},
    ],
)
def test_with_unusual_options_each_connection_is_set_up_by_mitmproxy(setup: Setup, option: dict[str, Any]) -> None:
    usual = setup.addon
    assert usual._is_usual()
    setup.set(**option)
    assert not usual._is_usual()
    setup.client(H1)
    setup.server()
    assert (usual._for_clients, usual._for_origins) == (None, None)


def test_http2_is_spared_where_a_client_has_another_protocol(setup: Setup) -> None:
    setup.with_clients(Http2Clients.NEEDED)
    for _ in range(2):  # the first is set up by mitmproxy
        for offers, kept in (((H2, H1), [H1]), ((H2,), [H2]), ((H1,), [H1]), ((H2, b"spdy"), [H2, b"spdy"])):
            data = setup.client(*offers)
            assert list(data.conn.alpn_offers) == kept
            assert facts(data)["http2"] == (kept != [H1] or offers == (H1,))


def test_origins_share_a_context_and_are_verified_by_their_name(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    first = setup.server()
    names: list[object] = []
    monkeypatch.setattr(tls_config, "_verify", lambda made, name: names.append(name))
    for sni, client_sni, name in (
        ("own.example", "named.example", "own.example"),
        (None, "named.example", "named.example"),
        (None, None, "site.example"),
        (None, "", "site.example"),
    ):
        data = setup.server(sni=sni, client_sni=client_sni)
        assert (context_of(data) is context_of(first), names.pop(), cast("Server", data.conn).sni) == (True, name, name)
    with pytest.raises(ValueError, match="no name to verify"):
        setup.server(sni="")
    for other in ({"ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"]}, {"dtls": True}):
        assert context_of(setup.server(**other)) is not context_of(first)
    mine: Any = SSL.Connection(SSL.Context(SSL.TLS_METHOD))
    assert setup.server(ssl_conn=mine).ssl_conn is mine
    assert context_of(setup.server()) is context_of(first)


def test_the_protocols_that_an_origin_is_offered(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.server()
    offered: list[object] = []
    expected: object
    monkeypatch.setattr(SSL.Connection, "set_alpn_protos", lambda made, protocols: offered.append(protocols))
    for own, of_client, expected in (
        ((H1,), (H2,), [H1]),
        ((), (H2, H1), [H2, H1]),
        ((), (), None),
    ):
        data = setup.server(*own, client_offers=of_client)
        assert (offered.pop() if offered else None) == expected
        assert list(data.conn.alpn_offers) == (expected or [])
    needed = setup.server(H1, sni="site.example").conn
    assert isinstance(needed, Server)
    setup.addon.http2_needed(needed)
    for sni, client_sni, expected in (
        ("site.example", None, (H2, H1)),
        (None, "site.example", (H2, H1)),
        (None, None, (H2, H1)),
        ("other.example", "site.example", (H1,)),
        (None, "other.example", (H1,)),
    ):
        assert tuple(setup.server(H1, sni=sni, client_sni=client_sni).conn.alpn_offers) == expected
    both = setup.server(H2, H1, sni="both.example").conn
    assert isinstance(both, Server)
    setup.addon.http2_needed(both)
    assert tuple(setup.server(H1, sni="both.example").conn.alpn_offers) == (H1,)


def test_a_connection_from_the_pool_has_its_handshake_behind_it(setup: Setup) -> None:
    made: Any = object()
    sharing = Sharing(
        None, may_adopt=True, key=(AT, "kept.example", (H1,)), adopted=Adopted(Server(address=AT), made, (), 5.0, 4.0)
    )
    data = setup.server(sni="x.example", sharing=sharing)
    assert (data.ssl_conn, cast("Server", data.conn).sni, tuple(data.conn.alpn_offers)) == (made, "kept.example", (H1,))
    fresh = setup.server(sni="x.example", sharing=Sharing(None, may_adopt=True))
    assert (fresh.ssl_conn is not None, cast("Server", fresh.conn).sni) == (True, "x.example")


class Made:
    """A connection of OpenSSL."""

    def __init__(self) -> None:
        self.session: object = object()
        self.shut = 0

    def get_session(self) -> object:
        return self.session

    def set_shutdown(self, state: int) -> None:
        self.shut = state


def established(setup: Setup, made: object, sharing: Sharing | None = None, **more: Any) -> Server:
    server = Server(address=AT)
    server.sni, server.alpn_offers = "site.example", (H1,)
    if "via" in more:
        server.via = more["via"]
    if sharing is not None:
        note_sharing(server, sharing)
    data: Any = SimpleNamespace(conn=more.get("conn", server), ssl_conn=made)
    setup.addon.tls_established_server(data)
    return server


def resumed(setup: Setup, monkeypatch: pytest.MonkeyPatch, **more: Any) -> object:
    """Returns the session that the next connection resumes."""
    given: list[object] = []
    monkeypatch.setattr(SSL.Connection, "set_session", lambda made, session: given.append(session))
    setup.server(H1, sni=more.get("sni", "site.example"))
    return given[0] if given else None


PEER = (AT, "site.example", (H1,))


def test_a_session_is_resumed_for_an_hour(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_config, "_ssl", lambda made: made)
    reused = [False]
    monkeypatch.setattr(tls_config, "_lib", SimpleNamespace(SSL_session_reused=lambda made: reused[0]))
    monkeypatch.setattr(tls_config, "_verify", lambda made, name: None)
    first, second = Made(), Made()
    early = established(setup, first)
    assert setup.addon._open == {}, "nothing is set up as yet"
    setup.server()
    early = established(setup, first)
    assert resumed(setup, monkeypatch) is first.session
    assert resumed(setup, monkeypatch, sni="other.example") is None
    first.session = "ticket"
    assert resumed(setup, monkeypatch) == "ticket", "tickets come later"
    setup.addon.server_disconnected(cast("Any", SimpleNamespace(server=early)))
    assert first.shut == SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN
    first.session = "later"
    assert resumed(setup, monkeypatch) == "ticket", "what it had at its end"
    setup.addon.server_disconnected(cast("Any", SimpleNamespace(server=early)))
    setup.now += 600.0
    reused[0] = True
    later = established(setup, second)
    setup.now += SESSION_S - 601.0
    assert resumed(setup, monkeypatch) is second.session
    setup.now += 1.0
    assert resumed(setup, monkeypatch) is None, "a resumed session does not make the check of the certificate younger"
    reused[0] = False
    established(setup, Made())
    assert resumed(setup, monkeypatch) is not None
    second.session = "of the one before"
    setup.addon.server_disconnected(cast("Any", SimpleNamespace(server=later)))
    assert resumed(setup, monkeypatch) != "of the one before", "a later connection has its own"
    setup.addon.tls_failed_server(cast("Any", SimpleNamespace(conn=later)))
    assert resumed(setup, monkeypatch) is None
    setup.addon.tls_failed_server(cast("Any", SimpleNamespace(conn=Client(peername=AT, sockname=AT))))
    established(setup, Made())
    assert resumed(setup, monkeypatch) is not None
    setup.set(http2=True)
    setup.server()
    assert resumed(setup, monkeypatch) is None, "it may have been verified by other options"


def test_whose_sessions_are_not_kept(setup: Setup) -> None:
    setup.server()
    established(setup, None)
    established(setup, Made(), via=("http", ("parent.example", 1)))
    established(setup, Made(), conn=Client(peername=AT, sockname=AT))
    assert (setup.addon._open, dict(setup.addon._sessions)) == ({}, {})
    adopted = Adopted(Server(address=AT), None, (), 5.0, 4.0)
    made = Made()
    server = established(setup, made, Sharing(None, may_adopt=True, adopted=adopted))
    assert setup.addon._sessions[PEER] == _Resumable(5.0, cast("Any", made))
    assert dict[str, object](setup.addon._open) == {server.id: (PEER, made, 5.0)}


def test_a_connection_is_left_to_the_pool_once(setup: Setup) -> None:
    setup.server()
    made: Any = Made()
    server = established(setup, made, Sharing(None, may_adopt=True))
    assert setup.addon.release(server, cast("Any", Made())) is None
    assert setup.addon.release(server, made) == (PEER, 1_000.0)
    assert setup.addon.release(server, made) is None
    setup.addon.end(PEER, made)
    assert setup.addon._sessions[PEER].session is made.session
    assert setup.addon._sessions[PEER].open_on is None
    setup.addon.end(("nobody",), made)
    setup.addon._sessions.clear()
    other = established(setup, made, Sharing(None, may_adopt=True))
    setup.addon._usual = False
    assert setup.addon.release(other, made) is None


def test_an_origin_that_has_http2_alone_is_noted_by_its_failure(setup: Setup) -> None:
    for error, noted in ((None, False), ("certificate verify failed", False), (f"x {NO_PROTOCOL} y", True)):
        server = Server(address=AT)
        server.sni, server.alpn_offers, server.error = "site.example", (H1,), error
        setup.addon.tls_failed_server(cast("Any", SimpleNamespace(conn=server)))
        assert ((AT, "site.example") in setup.addon._http2_alone) == noted


@pytest.mark.parametrize(
    ("name", "sent"),
    [("site.example", b"site.example"), ("bücher.example", b"xn--bcher-kva.example"), ("192.0.2.1", None), ("::1", None)],
)
def test_the_name_that_is_verified(name: str, sent: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    context = SSL.Context(SSL.TLS_METHOD)
    asked: list[tuple[str, int]] = []

    def accept(kind: str, size: int) -> int:
        asked.append((kind, size))
        return 1

    lib = SimpleNamespace(
        SSL_get0_param=tls_config._lib.SSL_get0_param,
        X509_VERIFY_PARAM_set_hostflags=lambda param, flags: accept("flags", flags),
        X509_VERIFY_PARAM_set1_host=lambda param, encoded, size: accept("host", size),
        X509_VERIFY_PARAM_set1_ip=lambda param, packed, size: accept("ip", size),
    )
    monkeypatch.setattr(tls_config, "_lib", lib)
    made = SSL.Connection(context)
    _verify(made, name)
    kind, size = asked[1]
    assert (asked[0][0], made.get_servername()) == ("flags", sent)
    assert (kind, size) == (("host", len(sent)) if sent else ("ip", 4 if "." in name else 16))
    lib.X509_VERIFY_PARAM_set1_host = lib.X509_VERIFY_PARAM_set1_ip = lambda *_: 0
    with pytest.raises(RuntimeError, match="does not accept the name"):
        _verify(made, name)


def test_a_table_is_bounded_at_its_edge() -> None:
    table: Bounded[int, int] = Bounded(5)
    sizes = []
    for number in range(7):
        table[number] = number
        sizes.append(len(table))
    assert (sizes, list(table)) == ([1, 2, 3, 4, 5, 4, 5], [2, 3, 4, 5, 6])
    table[3] = 9
    assert list(table.values()) == [2, 9, 4, 5, 6]


def test_a_client_without_a_name_gets_the_certificate_of_where_it_connects_to(setup: Setup) -> None:
    def leaf(sni: str | None, ours: str, address: tuple[str, int] | None) -> object:
        made = Context(Client(peername=("10.0.0.2", 5), sockname=(ours, 8080), sni=sni), setup.context.options)
        made.server.address = address
        return setup.addon._leaf(made)

    first = leaf(None, "10.0.0.1", AT)
    assert leaf(None, "10.0.0.1", AT) is first
    assert leaf("named.example", "10.0.0.1", AT) is leaf("named.example", "10.0.0.9", AT)
    for ours, address in (("10.0.0.9", AT), ("10.0.0.1", ("other.example", 443)), ("10.0.0.1", None)):
        assert leaf(None, ours, address) is not first


def test_a_certificate_that_is_forgotten_is_kept_nowhere(setup: Setup) -> None:
    store: Any = setup.addon.certstore
    first, second = store.get_cert("first.example", []), store.get_cert("second.example", [])
    store.forget(first)
    assert (first in store.expire_queue, first in store.certs.values()) == (False, False)
    assert (second in store.expire_queue, second in store.certs.values()) == (True, True)
    queue, known = list(store.expire_queue), dict(store.certs)
    store.forget(first)
    assert (store.expire_queue, store.certs) == (queue, known)
    assert store.get_cert("second.example", []) is second
    assert store.get_cert("first.example", []) is not first
