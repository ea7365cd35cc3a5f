"""The process that serves `GET /metrics` for Prometheus, and exports to OpenTelemetry. It reads the workers' status files."""

import asyncio
import ipaddress
import logging
import socket
from contextlib import AsyncExitStack, suppress
from typing import Final

import h11

from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.processes.metrics.otlp import OtlpExporter
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.termination import calls_on_sigterm
from gatewayfilter.use_cases.metrics.exposition import CONTENT_TYPE, StatusCollector, exposition

_log = logging.getLogger(__name__)

PATH: Final = "/metrics"
MAX_CONNECTIONS: Final = 16
HEAD_TIMEOUT_S: Final = 5.0
_MAX_HEAD: Final = 8192
_POLL_S: Final = 1.0


class MetricsEndpoint:
    """Answers one request per connection.

    Args:
        collector: of the metrics.
        host: that it listens on; also accepted as the name in a request.
    """

    def __init__(self, collector: StatusCollector, host: str) -> None:
        self._collector = collector
        self._names = frozenset({host.lower(), "localhost", socket.gethostname().lower()})
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection; a slow or malformed client is cut off, and so are too many at once."""
        if self._open >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open += 1
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                await self._answer(reader, writer)
        except (TimeoutError, OSError, h11.ProtocolError):
            writer.transport.abort()
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        try:
            request = await _request(connection, reader)
        except h11.RemoteProtocolError:
            status, body = 400, b"bad request\n"
        else:
            if request is None:
                return
            status, body = self._response(request)
        headers = [
            ("Content-Type", CONTENT_TYPE),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ]
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            writer.write(connection.send(event) or b"")
        await writer.drain()

    def _response(self, request: h11.Request) -> tuple[int, bytes]:
        host = next((value.decode("latin-1") for name, value in request.headers if name == b"host"), "")
        if not self._is_own(host):
            return 421, b"unknown host\n"  # a page of a stranger whose name has this address
        if request.target.partition(b"?")[0] != PATH.encode():
            return 404, b"not found\n"
        if request.method != b"GET":
            return 405, b"GET only\n"
        return 200, exposition(self._collector)

    def _is_own(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name.lower() in self._names
        return True


async def _request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        connection.receive_data(await reader.read(_MAX_HEAD))


def run_metrics(settings: Settings) -> None:
    """Runs the process until SIGTERM."""
    begin_child(settings)
    with ending_with_a_sentence():
        asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    collector = StatusCollector(settings.data_dir / "run")
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        stack.enter_context(calls_on_sigterm(stop.set))
        if settings.metrics.listen:
            await stack.enter_async_context(await _listening(settings.metrics.listen, collector))
        exporting = None
        if settings.metrics.otlp:
            exporter = OtlpExporter(StatusCollector(settings.data_dir / "run"), settings.metrics.otlp)
            exporting = asyncio.create_task(_export_regularly(exporter, settings.metrics.otlp_every_s))
        while not stop.is_set():
            collector.poll()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _POLL_S)
        if exporting is not None:
            exporting.cancel()


async def _listening(listen: str, collector: StatusCollector) -> asyncio.Server:
    host, port = split_address(listen)
    try:
        server = await asyncio.start_server(MetricsEndpoint(collector, host).serve, host, port, limit=_MAX_HEAD)
    except OSError as error:
        raise StartupError(f"cannot listen on metrics.listen {listen}: {error.strerror}") from error
    _log.info("metrics on http://%s%s", listen, PATH)
    return server


async def _export_regularly(exporter: OtlpExporter, every_s: float) -> None:
    """Exports in a thread: a collector that hangs delays the next export only."""
    while True:
        await asyncio.to_thread(exporter.export)
        await asyncio.sleep(every_s)
