"""`gatewayfilter run`: prepares the state folder, starts the processes, restarts what dies, drains on SIGTERM and Ctrl-C."""

import logging
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from operator import itemgetter
from pathlib import Path
from typing import IO

from gatewayfilter.certificates.authority import KeptCa, ensure_ca
from gatewayfilter.config import Loaded, Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.processes import entry_points
from gatewayfilter.processes.banner import banner
from gatewayfilter.processes.data_dir import prepare_lists
from gatewayfilter.processes.fork_server import WatchedForkServer
from gatewayfilter.processes.supervision.child import Child
from gatewayfilter.processes.supervision.port_reservation import reserve_address
from gatewayfilter.processes.supervision.run_lock import RunLock
from gatewayfilter.processes.supervision.systemd_notify import ServiceManager
from gatewayfilter.telemetry import StatusFile, set_up_logging
from gatewayfilter.web.lean_imports import run_lean
from gatewayfilter.wiring import on_read_only_disk, prepare_data_dir

_log = logging.getLogger(__name__)

DRAIN_S = 8.0
"""How long the children may take to drain before they are killed."""
LONGEST_WORKER_DELAY_S = 3.0
"""The longest delay of a worker's restart while others serve: with the start, it is back within five seconds."""
_FORK_SERVER_POLL_S = 0.1


def supervise(loaded: Loaded, context: ForkServerContext, say: Callable[[str], None]) -> int:
    """Prepares the state and runs the children until SIGTERM or Ctrl-C; as `gatewayfilter.processes.run`."""
    settings = loaded.settings
    set_up_logging(settings.log.level, settings.log.format)
    prepare_data_dir(settings)
    with RunLock(settings.data_dir), reserve_address(settings) as bound:
        if on_read_only_disk(bound):
            _log.warning("the state folder %s is read-only: filtering without learning or logging", bound.data_dir)
        ensure_ca(bound.data_dir / "ca")
        prepare_lists(bound)
        count = entry_points.worker_count(bound)
        proxies = [
            Child(
                f"proxy-{index}",
                entry_points.proxy_worker,
                (index, bound),
                context,
                beats=True,
                longest_delay_s=LONGEST_WORKER_DELAY_S,
            )
            for index in range(count)
        ]
        learner = Child("learner", entry_points.learner, (bound,), context)
        further = range(1, bound.crawl.workers if bound.learn.enabled else 1)
        crawlers = [Child(f"crawler-{index}", entry_points.crawler, (index, bound), context) for index in further]
        exporters = (
            [Child("metrics", entry_points.metrics, (bound,), context)] if bound.metrics.listen or bound.metrics.otlp else []
        )
        if bound.fleet.listen or bound.fleet.follow:
            exporters.append(Child("fleet", entry_points.fleet, (bound,), context))
        if bound.sync.url.get_secret_value():
            exporters.append(Child("sync", entry_points.sync, (bound,), context))
        if bound.kafka.decisions:
            exporters.append(Child("decisions", entry_points.decisions, (bound,), context))
        if entry_points.serves_others(bound):
            exporters.append(Child("integration", entry_points.integration, (bound,), context))
        # Not forked: it shares no module with the proxy, and would carry the memory of all of them.
        spawning = multiprocessing.get_context("spawn")
        served = pickle.dumps((entry_points.web, replace(loaded, settings=bound)))
        dashboards = [Child("web", run_lean, (served,), spawning)] if bound.web.listen else []
        fork_server = WatchedForkServer(context)
        kept_ca = KeptCa(bound.data_dir / "ca")
        return _Supervisor(bound, proxies, [learner, *crawlers, *exporters], dashboards, fork_server, kept_ca, say).run()


class _Supervisor:
    def __init__(
        self,
        settings: Settings,
        proxies: list[Child],
        others: list[Child],
        later: list[Child],
        fork_server: WatchedForkServer,
        ca: KeptCa,
        say: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._proxies = proxies
        self._later = later  # started when the proxy serves, so that they do not slow its start
        self._children = [*proxies, *others]
        self._fork_server = fork_server
        self._ca = ca
        self._say = say
        self._run_folder = settings.data_dir / "run"
        self._status = StatusFile(self._run_folder, "supervisor")
        self._manager = ServiceManager()
        self._stopping = False
        self._ready = False
        self._looked_at = time.monotonic()
        self._started_at = round(time.time(), 3)

    def run(self) -> int:
        for pattern in ("proxy-*.json", "crawler-*.json", "web.json"):
            for stale in self._run_folder.glob(pattern):
                with suppress(OSError):  # a read-only disk
                    stale.unlink(missing_ok=True)
        waker, wakened = socket.socketpair()
        with waker, wakened:
            waker.setblocking(False)
            wakened.setblocking(False)
            previous_fd = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
            previous = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
            try:
                for child in self._children:
                    child.start()
                while not self._stopping:
                    self._wait(wakened)
                    if self._manager.ping_every_s is not None:
                        self._manager.alive()
                    self._end_stalled()
                    self._restart()
                    self._announce()
            finally:
                self._drain()
                for number, handler in previous.items():
                    signal.signal(number, handler)
                signal.set_wakeup_fd(previous_fd)
        return 0

    def _stop(self, _number: int, _frame: object) -> None:
        self._stopping = True

    def _wait(self, wakened: socket.socket) -> None:
        waits = [seconds for child in self._children if self._can_start(child) and (seconds := child.wait_s()) is not None]
        timeout_s = min([*waits, self._manager.ping_every_s or 5.0, 5.0, self._settings.proxy.stall_s / 4 or 5.0])
        if not self._fork_server.ready:
            timeout_s = min(timeout_s, _FORK_SERVER_POLL_S)
        wait(
            [wakened, *self._fork_server.sentinels, *(sentinel for child in self._children for sentinel in child.sentinels)],
            timeout_s,
        )
        try:
            wakened.recv(4096)
        except BlockingIOError:
            return

    def _end_stalled(self) -> None:
        after_s, before = self._settings.proxy.stall_s, self._looked_at
        self._looked_at = time.monotonic()
        if not after_s or self._stopping:
            return
        if self._looked_at - before > after_s / 2:
            # The supervisor itself was stopped: by Ctrl-Z with all its children, or with the whole machine.
            for child in self._proxies:
                child.forgive_silence()
        for child in self._proxies:
            child.end_if_stalled(after_s)

    def _can_start(self, child: Child) -> bool:
        return self._fork_server.ready or not child.is_forked

    def _restart(self) -> None:
        for child in self._proxies:
            child.hear()
        if self._fork_server.replace_if_ended():
            _log.error("the fork server has ended; its processes go on, and another one is started")
        ended = [child for child in self._children if child.reap()]
        changed = bool(ended)
        self._hasten_one()
        if ended:
            self._put_ca_back()
        for child in self._children:
            if self._stopping:
                return
            if self._can_start(child):
                changed |= child.restart_if_due()
        if not self._ready and all(child.hopeless for child in self._proxies):
            raise StartupError("no proxy worker could start; the log has the reason")
        if changed or not self._ready or self._status.failed:
            self._write_status()

    def _put_ca_back(self) -> None:
        """Writes the CA again where it was removed: a worker that starts would find none, and clients trust no other."""
        try:
            if self._ca.put_back():
                _log.warning("the certificate authority was removed while the filter runs; it was put back")
        except StartupError as error:
            _log.error("%s", error)

    def _hasten_one(self) -> None:
        """Shortens the back-off of the worker that is due first, where no other one serves."""
        waiting = [(wait_s, child) for child in self._proxies if (wait_s := child.wait_s()) is not None]
        if waiting and not any(child.serving for child in self._proxies):
            min(waiting, key=itemgetter(0))[1].hasten()

    def _write_status(self) -> None:
        self._status.write(
            state="running" if self._ready else "starting",
            listen=self._settings.proxy.listen,
            started_at=self._started_at,
            children={
                child.name: {"pid": child.pid, "restarts": child.restarts, "stalls": child.stalls} for child in self._children
            },
        )

    def _announce(self) -> None:
        if self._ready:
            return
        if all(child.serving for child in self._proxies):
            self._ready = True
            for child in self._later:
                child.start()
            self._children += self._later
            self._write_status()
            self._manager.ready(f"filtering on {self._settings.proxy.listen}")
            try:
                for line in banner(self._settings, workers=len(self._proxies)):
                    self._say(line)
                sys.stdout.flush()
            except (OSError, ValueError):  # the reader may have closed (`run | head -1`): the filter continues
                _log.info("standard output is closed; the filter continues")
                _silence(sys.stdout)

    def _drain(self) -> None:
        self._manager.stopping()
        for child in self._children:
            child.terminate()
        deadline = time.monotonic() + DRAIN_S
        for child in self._children:
            child.finish(deadline)
        self._status.remove()


def _silence(stream: IO[str]) -> None:
    """Points a stream nowhere, so that what is left in its buffer does no harm when the process ends."""
    with suppress(OSError, ValueError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
