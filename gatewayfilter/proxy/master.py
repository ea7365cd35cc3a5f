"""A lean mitmproxy: its proxy core with only the addons that the filter needs, and a listener that several processes share."""

import asyncio
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import certifi
from mitmproxy import addonmanager, http, master, options
from mitmproxy.addons import strip_dns_https_records
from mitmproxy.proxy import mode_specs

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.private_files import replace_file
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.auth.proxy_auth import ProxyLogin
from gatewayfilter.proxy.auth.refused_networks import RefusedNetworks
from gatewayfilter.proxy.auth.upstream_auth import ParentLogin, parent_login
from gatewayfilter.proxy.listener.listener import Admission, Handlers, Limits, Listener
from gatewayfilter.proxy.listener.services import ConnectionServices
from gatewayfilter.proxy.listener.tls_failures import TlsFailures
from gatewayfilter.proxy.mitm.adoption import OriginAdoption
from gatewayfilter.proxy.mitm.early_response import open_streams, respond_early
from gatewayfilter.proxy.mitm.event_loop import limit_connecting, use_resolver
from gatewayfilter.proxy.mitm.fastpath.context import FastPath
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectOrigins
from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager
from gatewayfilter.proxy.mitm.http.upgrades import PlainRequests
from gatewayfilter.proxy.mitm.origin_pool import LoopGuard, leads_back
from gatewayfilter.proxy.mitm.server import GatewayProxyserver, GatewayServer
from gatewayfilter.proxy.mitm.shared_origins import SharedOrigins
from gatewayfilter.proxy.mitm.tls_config import GatewayTlsConfig
from gatewayfilter.proxy.open_connections import OpenConnections
from gatewayfilter.proxy.tunnel.dialer import Dialer
from gatewayfilter.proxy.tunnel.origin_handshakes import OriginHandshakes
from gatewayfilter.proxy.tunnel.reach_guard import ReachGuard
from gatewayfilter.proxy.tunnel.relay import RelayPool
from gatewayfilter.proxy.tunnel.resolver import Resolver

_log = logging.getLogger(__name__)

_RESOLVER_THREADS: Final = 32
"""The event loop's own pool has 6 on two cores; twelve dead names delayed all clients by 2.9 s."""
_DRAIN_POLL_S: Final = 0.05

_EVERYBODY: Final = Admission(user_of=lambda _: "", admits=lambda _authorization, _address: True)


class LeanMaster(master.Master):
    """Runs mitmproxy's proxy core for one worker. To be made inside the event loop that it runs on.

    Args:
        settings: `proxy`, and the state folder with `ca/`, mitmproxy's confdir.
        addon: the filter.
        services: how connections are decided; by default all of them are decrypted.

    Raises:
        StartupError: the certificate authority or `proxy.upstream_ca` cannot be used.
    """

    def __init__(self, settings: Settings, addon: GatewayAddon, services: ConnectionServices | None = None) -> None:
        super().__init__(options.Options())
        self._legacy_log_events.uninstall()  # mitmproxy's log events have no listener here
        confdir = settings.data_dir / "ca"
        ensure_ca(confdir)
        hooks = CachedAddonManager(self) if settings.proxy.fast_path else None
        self.addons: addonmanager.AddonManager = hooks if hooks is not None else self.addons
        self._proxyserver = GatewayProxyserver()
        self._settings = settings.proxy
        self._services = services = services or ConnectionServices()
        self._relays = RelayPool(asyncio.get_running_loop(), services.counters, idle_s=settings.proxy.idle_s)
        self._review: OpenConnections | None = None
        self._pages = addon.pages
        self._address = split_address(settings.proxy.listen)
        self._login = self._make_login(addon)
        self._parent_login = parent_login(settings.proxy.upstream_auth_file)
        self._guard = ReachGuard(
            settings.proxy,
            services.counters,
            self._proxyserver.connections,
            services.recorder,
            hosts=services.engine,
            logged_in=services.logged_in,
        )
        tls = GatewayTlsConfig(settings.proxy.http2_clients)
        self._shared = SharedOrigins(self._proxyserver.connections, tls, settings.proxy.shared_origins, services.counters)
        self.addons.add(
            RefusedNetworks(),
            strip_dns_https_records.StripDnsHttpsRecords(),
            PlainRequests(),
            self._proxyserver,
            tls,
            self._guard,
            self._shared,
            LoopGuard(self._proxyserver.connections, lambda: self.address),
            OriginHandshakes(self._proxyserver.connections),
            DirectOrigins(self._proxyserver.connections),
            *([self._login] if self._login is not None else []),
            TlsFailures(services, passes=settings.proxy.mode.startswith("upstream:https:")),
            addon,
            *([ParentLogin(self._parent_login)] if self._parent_login else []),
        )
        self.addons.lookup["nextlayer"] = addon  # its own is among its addons; mitmproxy would warn that there is none
        host, port = split_address(settings.proxy.listen)
        self.options.update(
            listen_host=host,
            listen_port=port,
            mode=[settings.proxy.mode],
            confdir=str(confdir),
            ssl_verify_upstream_trusted_ca=_trusted(settings.proxy.upstream_ca, confdir),
            connection_strategy="lazy",
            tcp_timeout=max(1, int(settings.proxy.idle_s)),
            # Clients of a gateway have global IPv6 addresses; who may reach it is for its firewall to say.
            block_global=settings.proxy.mode != "transparent",
        )
        fast_path = self._fast_path(hooks) if hooks is not None else None
        mode = mode_specs.ProxyMode.parse(settings.proxy.mode)
        self._instance = GatewayServer(mode, self._proxyserver, self._make_listener, fast_path)

    def _fast_path(self, hooks: CachedAddonManager) -> FastPath:
        adoption = OriginAdoption(self._shared, self._guard, hooks, self._proxyserver.connections)
        return FastPath.of(hooks, self.options, adoption)

    @property
    def address(self) -> tuple[str, int]:
        """The address that is really listened on; while connections are drained, the one that was."""
        if addresses := self._instance.listen_addrs:
            host, port, *_ = max(addresses, key=len)  # of both families IPv6 is the configured one
            self._address = host, port
        return self._address

    def _asyncio_exception_handler(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Logs what no task caught; a lack of memory in one sentence, because it fails in any place, as often as it lasts."""
        if isinstance(context.get("exception"), MemoryError):
            _log.error("no memory is left for a connection: it is closed")
        else:
            super()._asyncio_exception_handler(loop, context)

    async def start(self) -> None:
        """Starts to listen.

        Raises:
            StartupError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(_RESOLVER_THREADS, thread_name_prefix="resolver"))
        use_resolver(loop, Resolver(loop))
        limit_connecting(loop, self._guard.admitted_here, self._guard.led_to, self._shared.take)
        loop.set_exception_handler(self._asyncio_exception_handler)
        loop.set_task_factory(asyncio.eager_task_factory)
        try:
            await self._instance.start()
        except OSError as error:
            raise StartupError(str(error).partition("\n")[0]) from error
        self._proxyserver.register_server(self._instance)
        services = self._services
        if services.engine is not None:
            self._review = OpenConnections(
                services.engine,
                self._proxyserver.connections,
                self._relays,
                services.recorder,
                services.counters,
                services.logged_in,
                services.usage,
            )
            self._review.start()
        await self.running()

    async def stop(self, drain_s: float = 5.0) -> None:
        """Stops to listen, lets open requests and busy relays finish for up to `drain_s` seconds, closes all connections."""
        if not self._instance.is_running:
            return
        if self._review is not None:
            self._review.stop()
        await self._instance.stop()
        for _ in range(int(drain_s / _DRAIN_POLL_S)):
            if not self._busy() and not self._relays.busy():
                break
            await asyncio.sleep(_DRAIN_POLL_S)
        self._relays.close()
        self._shared.close()
        for connection in list(self._proxyserver.connections.values()):
            if (io := connection.transports.get(connection.client)) is not None and io.handler is not None:
                io.handler.cancel("the proxy stops")
        await asyncio.sleep(0)
        await self.done()

    def _busy(self) -> bool:
        # A tunnel or WebSocket never ends by itself and has a child layer: it is not waited for.
        return any(
            stream.child_layer is None
            for connection in self._proxyserver.connections.values()
            for stream in open_streams(connection.layer.context.layers)
        )

    def _make_login(self, addon: GatewayAddon) -> ProxyLogin | None:
        if self._services.users is None:
            return None
        return ProxyLogin(
            self._services.users,
            self._services.counters,
            self._respond_early,
            self._services.logged_in,
            loopback=self._settings.auth_loopback,
            free=addon.is_internal_page,
            recorder=self._services.recorder,
        )

    def _respond_early(self, flow: http.HTTPFlow) -> None:
        respond_early(flow, self._proxyserver.connections.get(flow.client_conn.id))

    def _make_listener(self, handlers: Handlers) -> Listener:
        login = self._login
        mode = self._instance.mode
        parent = mode.address if isinstance(mode, mode_specs.UpstreamMode) else None
        return Listener(
            self._settings.mode,
            handlers,
            self._services.policy,
            self._relays,
            Dialer(self._relays.loop, parent, authorization=self._parent_login, leads_back=self._is_self, guard=self._guard),
            admission=Admission(login.user_of, login.admits) if login is not None else _EVERYBODY,
            limits=Limits(self._settings.idle_s, self._settings.max_connections, self._settings.max_connections_per_client),
            pages=self._pages,
        )

    def _is_self(self, connected: socket.socket) -> bool:
        host, port = self.address
        theirs = connected.getpeername()
        return theirs[1] == port and leads_back(connected.getsockname()[0], theirs[0], host)


def _trusted(upstream_ca: Path | None, confdir: Path) -> str | None:
    """Returns a PEM file with the usual authorities and those of the settings; `None` when there are no others."""
    if upstream_ca is None:
        return None
    combined = confdir / "upstream-ca.pem"
    try:
        further = upstream_ca.read_bytes()
        if b"-----BEGIN CERTIFICATE-----" not in further:
            raise StartupError(f"proxy.upstream_ca {upstream_ca} has no certificate in PEM form")
        content = Path(certifi.where()).read_bytes() + b"\n" + further
        if not combined.exists() or combined.read_bytes() != content:
            replace_file(combined, content)  # the other workers write theirs at the same time
    except OSError as error:
        raise StartupError(f"cannot use proxy.upstream_ca {upstream_ca}: {error.strerror}") from error
    return str(combined)
