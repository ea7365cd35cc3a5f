"""One proxy worker: the lean mitmproxy with the filter, until SIGTERM."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from gatewayfilter.config import LogLevel, Settings
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.proxy.components import WorkerComponents
from gatewayfilter.proxy.file_limit import raise_file_limit
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.tunnel.poller import new_loop
from gatewayfilter.telemetry import StatusFile
from gatewayfilter.termination import calls_on_sigterm

_log = logging.getLogger(__name__)

_STATUS_EVERY_S: Final = 1.0
_SWITCH_INTERVAL_S: Final = 0.001
"""How long a thread that computes may keep the event loop waiting; Python's own 5 ms would be felt while snapshots swap."""
_BEAT_EVERY_S: Final = 1.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class ReportsLife(Protocol):
    """Reports to the process that supervises."""

    def beat(self) -> None:
        """Reports that the event loop runs."""
        ...

    def serving(self) -> None:
        """Reports that the worker listens."""
        ...


def run_worker(
    index: int, settings: Settings, build: Callable[[Settings], WorkerComponents], heart: ReportsLife | None = None
) -> None:
    """Runs a worker until SIGTERM: the entry of its process. Exits with 2 when it cannot start.

    Several workers share one address (SO_REUSEPORT), so its port must be a real one; port 0 gives each worker its own.

    Args:
        index: which worker; its status is `run/proxy-<index>.json`.
        settings: with the port that is really to be used.
        build: makes the components, in this process.
        heart: sends a heartbeat every second from the event loop, and when the worker serves.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    raise_file_limit()
    if settings.log.level is LogLevel.DEBUG:
        logging.getLogger("mitmproxy").setLevel(logging.INFO)
    else:
        _silence_mitmproxy()
    status = StatusFile(settings.data_dir / "run", f"proxy-{index}")
    status.write(state="starting")
    try:
        asyncio.run(_run_until_terminated(settings, build(settings), status, heart), loop_factory=new_loop)
    except GatewayFilterError as error:
        _log.error("%s", error)  # one sentence, no traceback: the operator can correct it
        sys.exit(2)
    finally:
        status.remove()


def _silence_mitmproxy() -> None:
    """Leaves out of the log what clients and origins cause at will: lines for each request at INFO, for each fault at WARNING."""
    logging.getLogger("mitmproxy").setLevel(logging.ERROR)
    logging.getLogger().addFilter(_is_by_name_or_error)


def _is_by_name_or_error(record: logging.LogRecord) -> bool:
    # Some addons log by the root logger: the one that removes h2c, a line for each such request.
    return record.name != "root" or record.levelno >= logging.ERROR


async def _run_until_terminated(
    settings: Settings, components: WorkerComponents, status: StatusFile, heart: ReportsLife | None
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if heart is not None:
        _beat_regularly(loop, heart.beat)
    with calls_on_sigterm(stop.set):
        await serve(settings, components, stop, status, heart)


def _beat_regularly(loop: asyncio.AbstractEventLoop, beat: Callable[[], None]) -> None:
    beat()
    loop.call_later(_BEAT_EVERY_S, _beat_regularly, loop, beat)


async def serve(
    settings: Settings,
    components: WorkerComponents,
    stop: asyncio.Event,
    status: StatusFile,
    heart: ReportsLife | None = None,
) -> None:
    """Serves until `stop` is set, then drains: no new connections, open requests finish, the queues are written.

    Raises:
        StartupError: it cannot listen, or has no usable certificate authority.
    """
    master = LeanMaster(settings, components.addon, components.services)
    components.start()
    try:
        await master.start()
        host, port = master.address
        listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if heart is not None:
            heart.serving()
        while not stop.is_set():
            await asyncio.to_thread(_write_status, status, "serving", listen, components)
            try:
                await asyncio.wait_for(stop.wait(), _STATUS_EVERY_S)
            except TimeoutError:
                continue
        _write_status(status, "draining", listen, components)
        await master.stop()
    finally:
        await asyncio.to_thread(components.stop)


def _write_status(status: StatusFile, state: str, listen: str, components: WorkerComponents) -> None:
    components.services.refresh()
    status.write(
        state=state,
        listen=listen,
        **components.facts(),
        counters=components.counters.as_dict(),
        decision_us=components.counters.decision_times.collect(),
        rss_bytes=_rss_bytes(),
    )


def _rss_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):  # no Linux
        return 0
