"""The process that decides for other proxies, by squid's helpers and ICAP, and keeps the zone of resolvers."""

import asyncio
import logging
import signal
import socket
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from gatewayfilter.config import OnError, Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.integration.squid.daemon import SquidHelpers, open_socket
from gatewayfilter.processes.inspection.client import InspectionPool
from gatewayfilter.processes.integration.zone import serve_zone
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.proxy.file_limit import raise_file_limit
from gatewayfilter.telemetry import StatusFile, set_up_logging
from gatewayfilter.wiring.integration import Deciding, decide_endpoint, deciding, icap_server

_log = logging.getLogger(__name__)

_STATUS_EVERY_S: Final = 1.0
_SWITCH_INTERVAL_S: Final = 0.001
"""As in a proxy worker: a thread that computes keeps no request waiting for long."""


def run_integration(settings: Settings) -> None:
    """Runs the process until SIGTERM, as a child of `run`. Exits with 2 when it cannot start."""
    begin_child(settings)
    with ending_with_a_sentence():
        asyncio.run(_run(settings, (signal.SIGTERM,)))


def run_daemon(settings: Settings) -> None:
    """Runs the same without `run`, until SIGTERM or Ctrl-C.

    Raises:
        SnapshotError, StartupError: it cannot start, or `run` serves other proxies on this state folder already.
    """
    set_up_logging(settings.log.level, settings.log.format)
    asyncio.run(_run(settings, (signal.SIGTERM, signal.SIGINT)))


async def _run(settings: Settings, ending: tuple[signal.Signals, ...]) -> None:
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    raise_file_limit()
    stop = asyncio.Event()
    for number in ending:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    status = StatusFile(settings.data_dir / "run", "integration")
    parts = await asyncio.to_thread(deciding, settings)
    async with AsyncExitStack() as stack:
        stack.callback(status.remove)
        await asyncio.to_thread(parts.start)
        stack.push_async_callback(asyncio.to_thread, parts.stop)
        if settings.helper.socket is not None:
            await _serve_squid(stack, settings, parts, settings.helper.socket)
        if settings.icap.listen:
            await _serve_icap(stack, settings, parts)
        if settings.decide.listen:
            await _serve_http(stack, settings, parts)
        if settings.rpz.listen or settings.rpz.file is not None:
            await serve_zone(stack, settings, parts.counters)
        while not stop.is_set():
            await asyncio.to_thread(_write_status, status, settings, parts)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _STATUS_EVERY_S)


async def _serve_squid(stack: AsyncExitStack, settings: Settings, parts: Deciding, path: Path) -> None:
    allows = settings.proxy.on_error is OnError.ALLOW
    helpers = SquidHelpers(parts.decider, parts.counters, settings.helper.block_url, allows_failures=allows)
    listener = open_socket(path, settings.helper.group)
    server = await asyncio.get_running_loop().create_unix_server(helpers.connection, sock=listener)
    stack.push_async_callback(_close, server, helpers, path)
    _log.info("squid's helpers are served on %s", path)


async def _serve_icap(stack: AsyncExitStack, settings: Settings, parts: Deciding) -> None:
    inspector = InspectionPool(settings)
    inspector.start()
    stack.push_async_callback(asyncio.to_thread, inspector.stop)
    served = icap_server(settings, parts, inspector)
    host, port = split_address(settings.icap.listen)
    try:
        server = await served.start(host, port)
    except OSError as error:
        raise StartupError(f"cannot listen on icap.listen {settings.icap.listen}: {error.strerror}") from error
    stack.callback(served.close)
    stack.callback(server.close)
    _log.info("ICAP on icap://%s/reqmod and /respmod", settings.icap.listen)


async def _serve_http(stack: AsyncExitStack, settings: Settings, parts: Deciding) -> None:
    from gatewayfilter.web.connections import UnsignalledServer, bounded_config  # noqa: PLC0415  imports uvicorn

    host, port = split_address(settings.decide.listen)
    endpoint = decide_endpoint(settings, parts)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=128)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does not see that it is TCP
    except OSError as error:
        raise StartupError(f"cannot listen on decide.listen {settings.decide.listen}: {error.strerror}") from error
    config = bounded_config(endpoint, head_bytes=65_536, connections=256, log_level="error")
    config.load()
    server = UnsignalledServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))

    async def end() -> None:
        server.should_exit = True
        await asyncio.wait([serving], timeout=3)

    stack.push_async_callback(end)
    _log.info("decisions on http://%s/decide", settings.decide.listen)


async def _close(server: asyncio.Server, helpers: SquidHelpers, path: Path) -> None:
    server.close()
    for transport in list(helpers.connections):
        transport.close()
    await asyncio.sleep(0)
    await asyncio.to_thread(path.unlink, missing_ok=True)


def _write_status(status: StatusFile, settings: Settings, parts: Deciding) -> None:
    status.write(
        state="serving",
        listen=str(settings.helper.socket or ""),
        counters=parts.counters.as_dict(),
        decision_us=parts.counters.decision_times.collect(),
        **parts.facts(),
    )


def usable_socket(settings: Settings) -> Path:
    """Returns the socket of the settings.

    Raises:
        StartupError: none is set.
    """
    if settings.helper.socket is None:
        raise StartupError("helper.socket is not set: give the path of a Unix socket, as /run/gatewayfilter/squid/helper.sock")
    return settings.helper.socket
