"""The response policy zone in the process for other programs: server, notifications, and the process that reads the lists."""

import asyncio
import logging
import multiprocessing
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.integration.rpz.server import RpzServer
from gatewayfilter.processes.low_priority import low_priority
from gatewayfilter.processes.supervision.child_setup import begin_child
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring.rpz import base_file, rpz_keeper, rpz_server, write_base_names

_log = logging.getLogger(__name__)


async def serve_zone(stack: AsyncExitStack, settings: Settings, counters: Counters) -> None:
    """Keeps the zone, and serves it where an address is set, until the stack is unwound.

    Raises:
        StartupError: it cannot listen, or the key cannot be used.
    """
    keeper, history = await asyncio.to_thread(rpz_keeper, settings, counters, partial(_build, settings))
    if settings.rpz.listen:
        server = rpz_server(settings, history, counters)
        host, port = split_address(settings.rpz.listen)
        try:
            tcp, udp = await server.start(host, port)
        except OSError as error:
            raise StartupError(f"cannot listen on rpz.listen {settings.rpz.listen}: {error.strerror}") from error
        for close in (tcp.close, udp.close, server.close):
            stack.callback(close)
        notifier = _Notifier(server, [split_address(resolver) for resolver in settings.rpz.notify])
        stack.callback(notifier.stop)
        keeper.on_change = notifier.changed
        _log.info("the zone %s is served on %s", settings.rpz.zone, settings.rpz.listen)
    keeper.start()
    stack.push_async_callback(asyncio.to_thread, keeper.stop)


class _Notifier:
    """Sends NOTIFY to each resolver, one after the other for each."""

    def __init__(self, server: RpzServer, resolvers: list[tuple[str, int]]) -> None:
        self._server = server
        self._resolvers = resolvers
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[tuple[str, int], asyncio.Task[bool]] = {}

    def changed(self) -> None:
        """Tells all resolvers; to be called from any thread."""
        self._loop.call_soon_threadsafe(self._send)

    def _send(self) -> None:
        for resolver in self._resolvers:
            if (before := self._tasks.get(resolver)) is not None:
                before.cancel()
            self._tasks[resolver] = self._loop.create_task(self._server.notify(*resolver))

    def stop(self) -> None:
        """Gives up what is under way."""
        for task in self._tasks.values():
            task.cancel()


def _build(settings: Settings) -> None:
    """Reads the lists in another process, whose memory ends with it. Raises OSError where that failed."""
    process = multiprocessing.get_context("spawn").Process(
        target=_read_lists, args=(settings, base_file(settings)), name="rpz-names", daemon=True
    )
    process.start()
    process.join()
    if process.exitcode:
        raise OSError(f"reading the lists for the zone ended with {process.exitcode}")


def _read_lists(settings: Settings, path: Path) -> None:
    begin_child(settings)
    with low_priority():
        write_base_names(settings, path)
