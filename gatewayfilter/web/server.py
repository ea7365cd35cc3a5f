"""The process that serves the dashboard. The proxy never waits for it; its failure affects no request."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Final

import uvicorn
from anyio.to_thread import current_default_thread_limiter

from gatewayfilter import wiring
from gatewayfilter.config import Loaded, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.store import Store
from gatewayfilter.telemetry import StatusFile
from gatewayfilter.web.access.authenticator import AccountAuthenticator
from gatewayfilter.web.app import create_app
from gatewayfilter.web.child_warmer import ChildWarmer, WakingAuthenticator
from gatewayfilter.web.connections import bounded_config
from gatewayfilter.web.memory import ReleaseTimes, keep_imported, limit_heaps, release_memory
from gatewayfilter.web.rendering.pages import pages_of_process
from gatewayfilter.web.services import WebServices

_log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 256
"""Connections at once, live logs included; further ones get 503."""
THREADS: Final = 8
"""Requests that are worked on at once; further ones wait."""
STREAM_THREADS: Final = 2
"""Threads that read for live logs."""
_DATABASE_BYTES: Final = 3_000_000
"""Of SQLite, all connections together; without a limit 6 MB and more after all pages."""
_TICK_S: Final = 5.0
_LOOK_S: Final = 1.0
"""Between two looks at the memory in use."""
_DRAIN_S: Final = 2


class _Server(uvicorn.Server):
    """Ends on SIGTERM only: the supervisor answers Ctrl-C."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        signal.signal(signal.SIGTERM, self._end)
        yield

    def _end(self, _number: int, _frame: object) -> None:
        self.should_exit = True


def serve(loaded: Loaded) -> None:
    """Serves the dashboard until SIGTERM.

    Args:
        loaded: the settings with their origins.

    Raises:
        StartupError: the address is in use, or certificate and key, or the key of the dashboard, cannot be used.
        StoreError: the database cannot be opened.
    """
    settings = loaded.settings
    limit_heaps()
    with listening(settings.web.listen) as listener, closing(wiring.open_store(settings)) as store:
        store.limit_memory(_DATABASE_BYTES)
        tls = settings.web.uses_tls
        services = WebServices(loaded, store)
        warmer = ChildWarmer(services)
        authenticator = WakingAuthenticator(AccountAuthenticator(services.access), warmer)
        app = create_app(services, authenticator, tls=tls)
        cache = settings.data_dir / "cache"
        cache.mkdir(mode=0o700, exist_ok=True)
        pages_of_process().keep_small(cache / "templates")
        server = _Server(bounded_config(app, head_bytes=32_768, connections=MAX_CONNECTIONS, drain_s=_DRAIN_S))
        server.config.load()
        if tls:
            from gatewayfilter.web.tls import server_context  # noqa: PLC0415  7 MB that loopback does without

            server.config.ssl = server_context(settings)
        keep_imported()  # before threads work: what they hold then would never be collected
        warmer.begin(app)
        asyncio.run(_run(server, listener, StatusFile(settings.data_dir / "run", "web"), store, tls=tls))


async def _run(server: _Server, listener: socket.socket, status: StatusFile, store: Store, *, tls: bool) -> None:
    host, port = listener.getsockname()[:2]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    url = f"{'https' if tls else 'http'}://{address}/"
    _log.info("the dashboard is on %s", url)
    current_default_thread_limiter().total_tokens = THREADS
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(STREAM_THREADS))
    serving = asyncio.create_task(server.serve([listener]))
    written_at, times = -_TICK_S, ReleaseTimes()
    try:
        while not serving.done():
            if time.monotonic() >= written_at + _TICK_S:
                status.write(state="serving", listen=address, url=url)
                written_at = time.monotonic()
            await asyncio.wait([serving], timeout=_LOOK_S)
            if times.due:
                await asyncio.to_thread(_release, store)
                times.released()
        await serving
    finally:
        status.remove()


def _release(store: Store) -> None:
    store.close_idle()
    release_memory()


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    """Yields a socket that is bound; connections to it do not wait for acknowledgements. Raises `StartupError`."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)) as listener:  # asyncio asks for the protocol
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise StartupError(f"cannot listen on web.listen {address}: {error.strerror}") from error
        listener.set_inheritable(False)
        yield listener
