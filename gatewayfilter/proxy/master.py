"""A lean mitmproxy: its proxy core with only the addons that the filter needs, and a listener that several processes share."""

import asyncio
import logging
import os
import socket
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import certifi
from mitmproxy import certs, http, master, options
from mitmproxy.addons import block, disable_h2c, proxyserver, strip_dns_https_records, tlsconfig
from mitmproxy.proxy import mode_specs
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layer import Layer
from mitmproxy.proxy.mode_servers import AsyncioServerInstance, ProxyConnectionHandler, ServerInstance

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.auth.proxy_auth import ProxyLogin
from gatewayfilter.proxy.auth.upstream_auth import ParentLogin, parent_login
from gatewayfilter.proxy.listener.listener import Limits, Listener
from gatewayfilter.proxy.listener.services import ConnectionServices
from gatewayfilter.proxy.listener.tls_failures import TlsFailures
from gatewayfilter.proxy.mitm.early_response import open_streams, respond_early
from gatewayfilter.proxy.mitm.fastpath import http_layer, patches, tls_path
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectOrigins, read_directly
from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager, HookRunner
from gatewayfilter.proxy.mitm.origin_pool import FairSemaphore, LoopGuard, leads_back, limit_connecting
from gatewayfilter.proxy.tunnel.dialer import Dialer
from gatewayfilter.proxy.tunnel.reach_guard import ReachGuard
from gatewayfilter.proxy.tunnel.relay import RelayPool
from gatewayfilter.proxy.tunnel.resolver import Resolver

_log = logging.getLogger(__name__)

_RESOLVER_THREADS: Final = 32
"""The event loop's own pool has 6 on two cores; twelve dead names kept everybody waiting for 2.9 s."""
_MOST_CERTIFICATES: Final = 1000
_DRAIN_POLL_S: Final = 0.05


class LeanMaster(master.Master):
    """Runs mitmproxy's proxy core for one worker. To be made inside the event loop that it runs on.

    Args:
        settings: `proxy` and the state folder, whose `ca/` is mitmproxy's confdir.
        addon: the filter.
        services: how connections are decided; by default the addon looks at all of them.

    Raises:
        StartupError: the certificate authority or `proxy.upstream_ca` cannot be used.
    """

    def __init__(self, settings: Settings, addon: GatewayAddon, services: ConnectionServices | None = None) -> None:
        super().__init__(options.Options())
        self._legacy_log_events.uninstall()  # nobody listens to mitmproxy's log events here
        confdir = settings.data_dir / "ca"
        ensure_ca(confdir)
        self.cached_addons = CachedAddonManager(self)
        self.addons = self.cached_addons
        self._proxyserver = proxyserver.Proxyserver()  # type: ignore[no-untyped-call]
        tls = tlsconfig.TlsConfig()
        self._settings = settings.proxy
        self._services = services = services or ConnectionServices()
        self._relays = RelayPool(asyncio.get_running_loop(), services.counters, idle_s=settings.proxy.idle_s)
        self._pages = addon.pages
        self._login = self._make_login(addon)
        self._parent_login = parent_login(settings.proxy.upstream_auth_file)
        self._guard = ReachGuard(settings.proxy, services.counters, self._proxyserver.connections, services.recorder)
        self.addons.add(
            block.Block(),
            strip_dns_https_records.StripDnsHttpsRecords(),
            disable_h2c.DisableH2C(),
            self._proxyserver,
            tls,
            self._guard,
            LoopGuard(self._proxyserver.connections, lambda: self.address),
            DirectOrigins(self._proxyserver.connections),
            *([self._login] if self._login is not None else []),
            TlsFailures(services, passes=settings.proxy.mode.startswith("upstream:https:")),
            addon,
            *([ParentLogin(self._parent_login)] if self._parent_login else []),
        )
        self.addons.lookup["nextlayer"] = addon  # its own is among its addons; mitmproxy would warn that there is none
        host, port = split_address(settings.proxy.listen)
        self.options.update(  # type: ignore[no-untyped-call]
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
        _widen(tls.certstore)
        patches.install()
        http_layer.install()
        tls_path.install()
        self._frozen_options = cast(
            "options.Options",
            patches.frozen_options(self.options, run_hook=self.cached_addons.run_or_defer, hooks=self.cached_addons),
        )
        self._instance = self._make_instance(settings.proxy.mode)

    @property
    def address(self) -> tuple[str, int]:
        """The address that is really listened on."""
        host, port, *_ = max(self._instance.listen_addrs, key=len)  # of both families it is IPv6 that was asked for
        return host, port

    async def start(self) -> None:
        """Starts to listen.

        Raises:
            StartupError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(_RESOLVER_THREADS, thread_name_prefix="resolver"))
        Resolver(loop).install()
        limit_connecting(loop, self._guard.admitted_here)
        loop.set_exception_handler(self._asyncio_exception_handler)
        loop.set_task_factory(asyncio.eager_task_factory)
        try:
            await self._instance.start()
        except OSError as error:
            raise StartupError(str(error).partition("\n")[0]) from error
        self._proxyserver.servers._instances[self._instance.mode] = self._instance  # noqa: SLF001  its guard against loops asks there
        await self.running()

    async def stop(self, drain_s: float = 5.0) -> None:
        """Stops to listen, lets open requests and busy relays finish for up to `drain_s` seconds, closes all connections."""
        if not self._instance.is_running:
            return
        await self._instance.stop()
        for _ in range(int(drain_s / _DRAIN_POLL_S)):
            if not self._busy() and not self._relays.busy():
                break
            await asyncio.sleep(_DRAIN_POLL_S)
        self._relays.close()
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

    @contextmanager
    def _register_patient(self, connection_id: tuple[Any, ...] | str, handler: ProxyConnectionHandler) -> Iterator[None]:
        handler.max_conns = defaultdict(FairSemaphore)  # type: ignore[arg-type]  # only `async with` is needed
        read_directly(handler, handler.client)
        with proxyserver.Proxyserver.register_connection(self._proxyserver, connection_id, handler):
            yield

    def _make_login(self, addon: GatewayAddon) -> ProxyLogin | None:
        if self._services.users is None:
            return None
        return ProxyLogin(
            self._services.users,
            self._services.counters,
            self._respond_early,
            loopback=self._settings.auth_loopback,
            free=addon.is_internal_page,
        )

    def _respond_early(self, flow: http.HTTPFlow) -> None:
        respond_early(flow, self._proxyserver.connections.get(flow.client_conn.id))

    def _make_door(self, instance: AsyncioServerInstance[Any]) -> Listener:
        login = self._login
        parent = None
        if isinstance(instance.mode, mode_specs.UpstreamMode):
            parent = instance.mode.address
        return Listener(
            self._settings.mode,
            instance.handle_stream,
            self._services.policy,
            self._relays,
            Dialer(self._relays.loop, parent, authorization=self._parent_login, leads_back=self._is_self, guard=self._guard),
            admits=lambda authorization, address: login is None or login.admits(authorization, address),
            limits=Limits(self._settings.idle_s, self._settings.max_connections, self._settings.max_connections_per_client),
            pages=self._pages,
        )

    def _is_self(self, connected: socket.socket) -> bool:
        host, port = self.address
        theirs = connected.getpeername()
        return theirs[1] == port and leads_back(connected.getsockname()[0], theirs[0], host)

    def _make_instance(self, mode: str) -> AsyncioServerInstance[Any]:
        instance = cast("AsyncioServerInstance[Any]", ServerInstance.make(mode_specs.ProxyMode.parse(mode), self._proxyserver))
        make_top_layer = instance.make_top_layer

        async def listen(host: str, port: int) -> list[Listener]:
            listener = self._make_door(instance)
            listener.listen(host, port)
            return [listener]

        def make_hooked_layer(context: Context) -> Layer:
            context.options = self._frozen_options
            return cast("Layer", HookRunner(make_top_layer(context), self.cached_addons))

        self._proxyserver.register_connection = self._register_patient  # type: ignore[method-assign]
        instance.listen = listen  # type: ignore[method-assign, assignment]
        instance.make_top_layer = make_hooked_layer  # type: ignore[method-assign]
        return instance


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
            aside = combined.with_suffix(f".{os.getpid()}")  # the other workers write theirs at the same time
            aside.write_bytes(content)
            aside.replace(combined)
    except OSError as error:
        raise StartupError(f"cannot use proxy.upstream_ca {upstream_ca}: {error.strerror}") from error
    return str(combined)


def _widen(store: certs.CertStore) -> None:
    """Lets the store keep more certificates than mitmproxy's 100, and drop old ones by the half instead of one by one.

    mitmproxy rebuilds the whole table for each certificate above the limit.
    """

    def expire(entry: certs.CertStoreEntry) -> None:
        queue = store.expire_queue
        queue.append(entry)
        if len(queue) > _MOST_CERTIFICATES:
            old = {id(dropped) for dropped in queue[: _MOST_CERTIFICATES // 2]}
            del queue[: _MOST_CERTIFICATES // 2]
            store.certs = {name: kept for name, kept in store.certs.items() if id(kept) not in old}

    store.expire = expire  # type: ignore[method-assign]
