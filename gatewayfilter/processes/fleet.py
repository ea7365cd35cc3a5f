"""The process of a fleet: keeps a publisher's export up to date and serves it, or follows a publisher. The proxy never waits."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError, StartupError
from gatewayfilter.processes.low_priority import low_priority
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters, StatusFile
from gatewayfilter.termination import calls_on_sigterm
from gatewayfilter.wiring import fleet_folder, open_store
from gatewayfilter.wiring.fleet import export_now, follower, members

if TYPE_CHECKING:
    from gatewayfilter.fleet.health import HealthBoard
    from gatewayfilter.web.connections import UnsignalledServer

_log = logging.getLogger(__name__)

EXPORT_EVERY_S: Final = 2.0
"""How often a publisher compares its export with what is in force."""
EXPORT_AGAIN_S: Final = 60.0
TICK_S: Final = 1.0
STORE_AGAIN_S: Final = 5.0


def run_fleet(settings: Settings) -> None:
    """Runs the process until SIGTERM. Exits with 2 when it cannot start."""
    begin_child(settings)
    with ending_with_a_sentence():
        asyncio.run(_Fleet(settings).run())


class _Fleet:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counters = Counters()
        self._status = StatusFile(settings.data_dir / "run", "fleet")
        self._stop = threading.Event()

    async def run(self) -> None:
        ended = asyncio.Event()

        def end() -> None:
            self._stop.set()
            ended.set()

        with calls_on_sigterm(end):
            await self._run(ended)

    async def _run(self, ended: asyncio.Event) -> None:
        server = self._server() if self._settings.fleet.listen else None

        threads = [threading.Thread(target=work, name=work.__name__, daemon=True) for work in self._works()]
        for thread in threads:
            thread.start()
        serving = asyncio.create_task(server.serve()) if server is not None else None
        try:
            while not ended.is_set():
                self._status.write(state=self._state(), listen=self._settings.fleet.listen, counters=self._counters.as_dict())
                if serving is not None and serving.done():
                    raise StartupError(f"cannot listen on fleet.listen {self._settings.fleet.listen}")
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), TICK_S)
        finally:
            self._stop.set()
            if server is not None and serving is not None:
                server.should_exit = True
                await asyncio.wait([serving], timeout=3)
            self._status.remove()

    def _state(self) -> str:
        return "following" if self._settings.fleet.follow else "publishing"

    def _works(self) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = []
        if self._settings.fleet.follow:
            found.append(self.follow)
        if self._settings.fleet.listen:
            found.append(self.export)
        return found

    def follow(self) -> None:
        """Polls the publisher until the process ends."""
        with closing(_opened_store(self._settings, self._stop)) as store, low_priority():
            following = follower(self._settings, store, self._counters)
            while not self._stop.is_set():
                try:
                    following.poll()
                except Exception:  # noqa: BLE001  this thread's outermost loop: the next poll may go well
                    _log.exception("following the fleet's publisher failed; trying again")
                self._stop.wait(following.wait_s())

    def export(self) -> None:
        """Keeps the export up to date until the process ends."""
        told = ""
        with closing(_opened_store(self._settings, self._stop)) as store, low_priority():
            while not self._stop.is_set():
                wait_s = EXPORT_EVERY_S
                try:
                    export_now(self._settings, store, self._counters)
                    told = ""
                except GatewayFilterError as error:
                    if str(error) != told:
                        _log.error("%s; followers keep the last export", error)
                    told, wait_s = str(error), EXPORT_AGAIN_S
                except Exception:  # noqa: BLE001  this thread's outermost loop
                    _log.exception("the export for followers failed; trying again")
                    wait_s = EXPORT_AGAIN_S
                self._stop.wait(wait_s)

    def _server(self) -> "UnsignalledServer":
        from gatewayfilter.fleet.endpoint import FleetEndpoint  # noqa: PLC0415  only on a publisher
        from gatewayfilter.fleet.health import HealthBoard  # noqa: PLC0415
        from gatewayfilter.processes.fleet_server import fleet_server  # noqa: PLC0415

        board = HealthBoard(fleet_folder(self._settings).health)
        endpoint = FleetEndpoint(fleet_folder(self._settings).export, members(self._settings), board, self._counters)
        threading.Thread(target=self._keep_board, args=(board,), name="fleet-board", daemon=True).start()
        return fleet_server(self._settings, endpoint)

    def _keep_board(self, board: "HealthBoard") -> None:
        while not self._stop.wait(TICK_S):
            try:
                board.write({member.name for member in members(self._settings).all()})
            except (OSError, GatewayFilterError) as error:
                _log.debug("the reports of followers were not written: %s", error)


def _opened_store(settings: Settings, stop: threading.Event) -> Store:
    """Returns the database, once it can be opened."""
    while True:
        try:
            return open_store(settings)
        except GatewayFilterError as error:
            if stop.wait(STORE_AGAIN_S):
                raise
            _log.warning("%s; trying again", error)
