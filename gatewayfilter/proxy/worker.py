"""One proxy worker: the lean mitmproxy with the filter, until SIGTERM."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.config import LogLevel, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot_folder import SnapshotFolder
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.interfaces import ChangeFeed, DecisionLog, Frontier
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.offers import StoreWriter
from gatewayfilter.proxy.privacy import DecisionRecorder
from gatewayfilter.proxy.responses import CategoryTitle
from gatewayfilter.proxy.updates import EngineFollower
from gatewayfilter.telemetry import Counters, StatusFile

_log = logging.getLogger(__name__)

_STATUS_EVERY_S: Final = 1.0
_SWITCH_INTERVAL_S: Final = 0.001
"""How long a thread that computes may keep the event loop waiting; Python's own 5 ms would be felt while snapshots swap."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What a worker runs.

    Attributes:
        addon: the filter.
        counters: shown in the status file.
        start, stop: begin and end what runs beside the event loop; `stop` writes out what is queued.
        facts: what the status file says of the lists in use.
    """

    addon: GatewayAddon
    counters: Counters
    start: Callable[[], None]
    stop: Callable[[], None]
    facts: Callable[[], Mapping[str, object]]


def assemble_parts(
    settings: Settings,
    engine: FilterEngine,
    folder: SnapshotFolder,
    *,
    feed: ChangeFeed | None = None,
    frontier: Frontier | None = None,
    log: DecisionLog | None = None,
    client_key: bytes = b"",
    title_of: CategoryTitle | None = None,
    standalone: bool = False,
) -> WorkerParts:
    """Joins an engine and the stores to what a worker runs.

    Args:
        settings: `proxy`, `log` and `learn` count here.
        engine: the decision.
        folder: where new snapshots appear.
        feed: list changes; `None` when there is no database: then neither are offers or logs written.
        frontier: takes unknown URLs.
        log: takes decisions.
        client_key: the secret for hashed clients, of 16 to 64 bytes.
        title_of: names a category for people.
        standalone: the addon starts and stops the rest itself, as under mitmdump.
    """
    counters = Counters()
    writer = StoreWriter(
        frontier.add if frontier is not None and settings.learn.enabled else lambda _offers, _now: 0,
        log.write if log is not None else lambda _records: None,
        counters,
    )
    follower = EngineFollower(engine, folder, feed, counters)

    def start() -> None:
        writer.start()
        follower.start()

    def stop() -> None:
        follower.stop()
        writer.stop()

    def facts() -> Mapping[str, object]:
        info = engine.snapshot.info
        return {
            "snapshot": {"created_at": info.created_at, "feed_seq": info.feed_seq, "version": info.version},
            "feed_seq": engine.feed_seq,
        }

    addon = GatewayAddon(
        engine,
        writer.offers,
        DecisionRecorder(writer.log.write, settings.log.privacy, client_key if settings.log.hash_clients else None),
        settings.proxy,
        counters,
        title_of=title_of or (lambda category, _language: category),
        on_start=start if standalone else None,
        on_stop=stop if standalone else None,
    )
    return WorkerParts(addon, counters, start, stop, facts)


def run_worker(index: int, settings: Settings, build: Callable[[Settings], WorkerParts]) -> None:
    """Runs a worker until SIGTERM: the entry of its process. Exits with 2 when it cannot start.

    Several workers share one address (SO_REUSEPORT), so its port must be a real one; port 0 gives each worker its own.

    Args:
        index: which worker; its status is `run/proxy-<index>.json`.
        settings: with the port that is really to be used.
        build: makes the parts, in this process.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # mitmproxy says several things about every request at INFO.
    logging.getLogger("mitmproxy").setLevel(logging.INFO if settings.log.level is LogLevel.DEBUG else logging.WARNING)
    status = StatusFile(settings.data_dir / "run", f"proxy-{index}")
    status.write(state="starting")
    try:
        asyncio.run(_run_until_terminated(settings, build(settings), status))
    except GatewayFilterError as error:
        _log.error("%s", error)  # noqa: TRY400  one sentence, no traceback: it is the operator's to mend
        sys.exit(2)
    finally:
        status.remove()


async def _run_until_terminated(settings: Settings, parts: WorkerParts, status: StatusFile) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve(settings, parts, stop, status)


async def serve(settings: Settings, parts: WorkerParts, stop: asyncio.Event, status: StatusFile) -> None:
    """Serves until `stop` is set, then drains: no new connections, open requests finish, the queues are written.

    Raises:
        StartupError: it cannot listen, or has no usable certificate authority.
    """
    master = LeanMaster(settings, parts.addon)
    parts.start()
    try:
        await master.start()
        host, port = master.address
        listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        while not stop.is_set():
            await asyncio.to_thread(_write_status, status, "serving", listen, parts)
            try:
                await asyncio.wait_for(stop.wait(), _STATUS_EVERY_S)
            except TimeoutError:
                continue
        _write_status(status, "draining", listen, parts)
        await master.stop()
    finally:
        await asyncio.to_thread(parts.stop)


def _write_status(status: StatusFile, state: str, listen: str, parts: WorkerParts) -> None:
    status.write(state=state, listen=listen, **parts.facts(), counters=parts.counters.as_dict(), rss_bytes=_rss_bytes())


def _rss_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):  # no Linux
        return 0
