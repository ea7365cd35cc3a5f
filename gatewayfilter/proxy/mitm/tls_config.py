"""TLS configuration of connections to clients and origins: certificates, contexts, ALPN, resumed sessions.

mitmproxy reads a dozen options, each by a deep copy, and converts certificate and key through DER for every connection. Here the
first connection of each side is configured by mitmproxy; further ones take its context, a certificate that was converted before,
and for an origin the session of an earlier connection to it (RFC 8446 §2.2), which saves the check of its certificates.
"""

import time
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, cast

from mitmproxy import certs, connection, ctx, http, tls
from mitmproxy.addons import tlsconfig
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import modes
from mitmproxy.proxy.layers.tls import HTTP1_ALPNS, HTTP2_ALPN
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from OpenSSL import SSL, crypto

from gatewayfilter.config import Http2Clients
from gatewayfilter.proxy.mitm.sharing import sharing_of
from gatewayfilter.proxy.mitm.stale_retry import NO_PROTOCOL

MOST_CERTIFICATES: Final = 1000
"""Certificates that a worker keeps; mitmproxy keeps 100."""
_MOST_SESSIONS: Final = 1000
SESSION_S: Final = 3600.0
"""How long after a full handshake an origin's session is resumed: its certificates are checked again after that."""

_lib: Final = cast("Any", SSL)._lib  # noqa: SLF001  pyOpenSSL has no public way to set the name that is verified


class GatewayCertStore(certs.CertStore):
    """A certificate store that drops old certificates by the half. mitmproxy builds its table again for each one."""

    @classmethod
    def of(cls, store: certs.CertStore) -> "GatewayCertStore":
        """Returns a store with the authority and the certificates of another one."""
        made = cls(store.default_privatekey, store.default_ca, store.default_chain_file, store.default_crl, store.dhparams)
        made.certs, made.expire_queue = store.certs, store.expire_queue
        return made

    def expire(self, entry: certs.CertStoreEntry) -> None:
        """Notes a certificate that was made; drops the older half where there are too many."""
        queue = self.expire_queue
        queue.append(entry)
        if len(queue) > MOST_CERTIFICATES:
            old = {id(dropped) for dropped in queue[: MOST_CERTIFICATES // 2]}
            del queue[: MOST_CERTIFICATES // 2]
            self.certs = {name: kept for name, kept in self.certs.items() if id(kept) not in old}

    def forget(self, entry: certs.CertStoreEntry) -> None:
        """Drops a certificate that was made: the next one for its name is made again. Others are kept."""
        if entry in self.expire_queue:
            self.expire_queue.remove(entry)
            self.certs = {name: kept for name, kept in self.certs.items() if kept is not entry}


class Bounded[K: Hashable, V](dict[K, V]):
    """A table that drops its older half when it is full.

    Args:
        most: entries that it keeps.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._most and key not in self:
            for old in list(self)[: self._most // 2]:
                del self[old]
        super().__setitem__(key, value)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A certificate and its key as OpenSSL takes them, and when it is valid (Unix seconds)."""

    entry: certs.CertStoreEntry
    certificate: crypto.X509
    key: crypto.PKey
    begins: float
    ends: float

    @classmethod
    def of(cls, entry: certs.CertStoreEntry) -> "_Leaf":
        found = entry.cert.to_cryptography()
        key = crypto.PKey.from_cryptography_key(entry.privatekey)
        begins, ends = found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()
        return cls(entry, crypto.X509.from_cryptography(found), key, begins, ends)


type _Peer = tuple[object, ...]
"""To whom a session belongs: address, verified name, offered protocols."""


@dataclass(slots=True)
class _Resumable:
    """An origin's session.

    Attributes:
        verified_at: when its certificates were checked (monotonic seconds).
        open_on: the connection that has it, while that is open: tickets come after the handshake.
        session: what a closed connection had.
    """

    verified_at: float
    open_on: SSL.Connection | None
    session: SSL.Session | None = None

    def current(self) -> SSL.Session | None:
        return self.session if self.open_on is None else self.open_on.get_session()


class GatewayTlsConfig(tlsconfig.TlsConfig):
    """The addon that configures TLS.

    Args:
        http2_clients: which clients get HTTP/2.
        clock: monotonic seconds.
        now: Unix seconds.
    """

    name = "tlsconfig"

    def __init__(
        self,
        http2_clients: Http2Clients = Http2Clients.OFFERED,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._spares_http2 = http2_clients is Http2Clients.NEEDED
        self._clock = clock
        self._now = now
        self._for_clients: SSL.Context | None = None
        self._for_origins: SSL.Context | None = None
        self._usual: bool | None = None
        self._leaves: Bounded[tuple[object, ...], _Leaf] = Bounded(MOST_CERTIFICATES)
        self._sessions: Bounded[_Peer, _Resumable] = Bounded(_MOST_SESSIONS)
        self._http2_alone: Bounded[tuple[object, ...], None] = Bounded(_MOST_SESSIONS)
        self._open: dict[str, tuple[_Peer, SSL.Connection, float]] = {}

    def configure(self, updated: Collection[str]) -> None:
        """Takes options over; those of the certificate authority make another store."""
        before = getattr(self, "certstore", None)
        super().configure(updated)  # type: ignore[no-untyped-call]
        if self.certstore is not before:
            self.certstore = GatewayCertStore.of(self.certstore)
        self._for_clients = self._for_origins = None
        self._usual = None
        self._leaves.clear()
        self._sessions.clear()

    def request(self, flow: http.HTTPFlow) -> None:
        """Answers a request for the list of revoked certificates; mitmproxy writes its number down for each request."""
        if flow.request.data.path.endswith(b".crl"):
            super().request(flow)

    def tls_start_client(self, tls_start: tls.TlsData) -> None:
        """Prepares a connection to a client."""
        client = tls_start.conn
        assert isinstance(client, connection.Client)
        offers = client.alpn_offers
        spared = self._spares_http2 and HTTP2_ALPN in offers and any(one in HTTP1_ALPNS for one in offers)
        if spared:
            client.alpn_offers = [one for one in offers if one != HTTP2_ALPN]  # the origin is offered the same
        server = tls_start.context.server
        context = self._for_clients
        if (
            context is None
            or tls_start.ssl_conn is not None
            or tls_start.is_dtls
            or client.cipher_list
            or server.certificate_list
        ):
            super().tls_start_client(tls_start)
            if self._for_clients is None and tls_start.ssl_conn is not None and not tls_start.is_dtls:
                self._for_clients = tls_start.ssl_conn.get_context() if self._is_usual() else None
            if spared and tls_start.ssl_conn is not None and (data := tls_start.ssl_conn.get_app_data()) is not None:
                data["http2"] = False
            return
        leaf = self._leaf(tls_start.context)
        made = tls_start.ssl_conn = SSL.Connection(context)
        used = _lib.SSL_use_certificate(made._ssl, leaf.certificate._x509)  # noqa: SLF001
        used &= _lib.SSL_use_PrivateKey(made._ssl, leaf.key._pkey)  # noqa: SLF001
        if used != 1:
            raise RuntimeError("OpenSSL does not accept the certificate")
        layers = tls_start.context.layers
        to_the_proxy = len(layers) == 2 and isinstance(layers[0], modes.HttpProxy)
        made.set_app_data(
            tlsconfig.AppData(client_alpn=b"http/1.1" if to_the_proxy else client.alpn, server_alpn=server.alpn, http2=not spared)
        )
        made.set_accept_state()

    def tls_start_server(self, tls_start: tls.TlsData) -> None:
        """Prepares a connection to an origin."""
        server = tls_start.conn
        assert isinstance(server, connection.Server)
        context = self._for_origins
        sharing = sharing_of(server)
        if sharing is not None and sharing.adopted is not None and tls_start.ssl_conn is None:
            assert sharing.key is not None
            _, server.sni, server.alpn_offers = sharing.key
            tls_start.ssl_conn = sharing.adopted.made  # its handshake is done: it was verified for that name
            return
        if self._http2_alone and (server.address, _name_of(server, tls_start.context.client)) in self._http2_alone:
            server.alpn_offers = (HTTP2_ALPN, *HTTP1_ALPNS[:1])
        if context is None or tls_start.ssl_conn is not None or tls_start.is_dtls or server.cipher_list:
            super().tls_start_server(tls_start)
            if self._for_origins is None and tls_start.ssl_conn is not None and not tls_start.is_dtls:
                self._for_origins = tls_start.ssl_conn.get_context() if self._is_usual() else None
            return
        client = tls_start.context.client
        if server.sni is None:
            assert server.address is not None
            server.sni = client.sni or server.address[0]
        if not server.alpn_offers:
            server.alpn_offers = tuple(client.alpn_offers) if client.alpn_offers else []
        if not server.sni:
            raise ValueError("there is no name to verify the origin's certificate by")
        made = tls_start.ssl_conn = SSL.Connection(context)
        _verify(made, server.sni)
        if server.alpn_offers:
            made.set_alpn_protos(list(server.alpn_offers))
        made.set_connect_state()
        known = self._sessions.get(_peer(server)) if server.via is None else None
        if known is not None and self._clock() - known.verified_at < SESSION_S and (session := known.current()) is not None:
            made.set_session(session)

    def tls_established_server(self, data: tls.TlsData) -> None:
        """Keeps the session of an origin for the next connection.

        Not behind a parent proxy: connections inside its tunnels end without a hook, and users may have different parents.
        """
        server, made = data.conn, data.ssl_conn
        if made is None or self._for_origins is None or not isinstance(server, connection.Server) or server.via is not None:
            return
        peer = _peer(server)
        known, sharing = self._sessions.get(peer), sharing_of(server)
        if sharing is not None and sharing.adopted is not None:
            verified_at = sharing.adopted.verified_at
        else:
            verified_at = known.verified_at if known is not None and _lib.SSL_session_reused(_ssl(made)) else self._clock()
        self._sessions[peer] = _Resumable(verified_at, made)
        self._open[server.id] = (peer, made, verified_at)

    def tls_failed_server(self, data: tls.TlsData) -> None:
        """Forgets the session: the next handshake is a full one. An origin that has HTTP/2 alone is offered it from then on."""
        if isinstance(data.conn, connection.Server):
            self._sessions.pop(_peer(data.conn), None)
            if data.conn.error and NO_PROTOCOL in data.conn.error:
                self.http2_needed(data.conn)

    def http2_needed(self, server: connection.Server) -> None:
        """Notes an origin that has HTTP/2 alone: it is offered to it, whatever its clients use."""
        if HTTP2_ALPN not in server.alpn_offers:
            self._http2_alone[server.address, server.sni] = None

    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        """Takes the session from a connection that ends."""
        found = self._open.pop(data.server.id, None)
        if found is not None:
            self.end(found[0], found[1])

    def release(self, server: connection.Server, made: SSL.Connection) -> tuple[_Peer, float] | None:
        """Leaves an open connection to the keep-alive pool, which calls `end` or hands it to another client's connection.

        Returns:
            Whose certificate was checked and when (monotonic seconds), `None` when the connection must not be shared.
        """
        found = self._open.get(server.id)
        if found is None or found[1] is not made or not self._is_usual():
            return None
        del self._open[server.id]
        return found[0], found[2]

    def end(self, peer: _Peer, made: SSL.Connection) -> None:
        """Takes the session from a connection that ends."""
        known = self._sessions.get(peer)
        if known is not None and known.open_on is made:
            known.session, known.open_on = made.get_session(), None
        # OpenSSL takes a session that ends without it for broken, as SSL 3 wanted it; TLS does not (RFC 5246 §7.2.1).
        made.set_shutdown(SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN)

    def _leaf(self, context: Context) -> _Leaf:
        client, server = context.client, context.server
        key = (client.sni or client.sockname[0], server.address[0] if server.address else None)
        leaf = self._leaves.get(key)
        if leaf is None:
            leaf = self._leaves[key] = _Leaf.of(self.get_cert(context))
        if not leaf.begins <= self._now() < leaf.ends and isinstance(self.certstore, GatewayCertStore):
            # It is old, or was made while the clock was wrong.
            self.certstore.forget(leaf.entry)
            leaf = self._leaves[key] = _Leaf.of(self.get_cert(context))
        return leaf

    def _is_usual(self) -> bool:
        """Returns whether options differ in nothing that depends on the connection."""
        if self._usual is None:
            found: Any = ctx.options
            self._usual = found.http2 and not (
                found.client_certs
                or found.ssl_insecure
                or found.add_upstream_certs_to_client_chain
                or found.ciphers_client
                or found.ciphers_server
            )
        return self._usual


def _ssl(made: SSL.Connection) -> Any:
    return made._ssl  # noqa: SLF001


def _name_of(server: connection.Server, client: connection.Client) -> str | None:
    return server.sni if server.sni is not None or server.address is None else client.sni or server.address[0]


def _peer(server: connection.Server) -> _Peer:
    return (server.address, server.sni, tuple(server.alpn_offers))


def _verify(made: SSL.Connection, name: str) -> None:
    """Lets a handshake fail unless the certificate is for a name. Common names do not count, as in browsers."""
    param = _lib.SSL_get0_param(_ssl(made))
    _lib.X509_VERIFY_PARAM_set_hostflags(param, tlsconfig.DEFAULT_HOSTFLAGS)
    try:
        packed = ip_address(name).packed
    except ValueError:
        encoded = name.encode("idna")
        made.set_tlsext_host_name(encoded)
        accepted = _lib.X509_VERIFY_PARAM_set1_host(param, encoded, len(encoded))
    else:
        accepted = _lib.X509_VERIFY_PARAM_set1_ip(param, packed, len(packed))
    if accepted != 1:
        raise RuntimeError(f"OpenSSL does not accept the name {name!r}")
