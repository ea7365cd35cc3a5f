"""The neighbour follower keeps a worker's engine up to date on the devices on the links, for clients recognized by their MAC."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from gatewayfilter.addresses.neighbours import read_neighbours
from gatewayfilter.engine.filter_engine import FilterEngine

_log = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_SHARE: Final = 50
"""The table is read in at most a fiftieth of the time: one of 100,000 neighbours every ten seconds or so."""


class NeighbourFollower:
    """Reads the neighbour table in a thread of its own while any client is recognized by its MAC.

    Args:
        engine: takes in the neighbours.
        read: returns them (address → MAC); may raise `OSError`, which is logged once.
    """

    def __init__(self, engine: FilterEngine, read: Callable[[], Mapping[str, str]] = read_neighbours) -> None:
        self._engine = engine
        self._read = read
        self._complained = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="neighbour-follower", daemon=True)

    def start(self) -> None:
        """Reads the table once, and starts the thread."""
        self.follow_once()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def follow_once(self) -> float:
        """Reads the table where it is needed. Returns the seconds that this took."""
        policies = self._engine.state.policies
        if policies is None or not policies.macs:
            return 0.0
        began = time.monotonic()
        try:
            self._engine.set_neighbours(self._read())
        except OSError as error:
            if not self._complained:
                self._complained = True
                _log.warning("the neighbour table cannot be read (%s): no client is recognized by its MAC", error)
        return time.monotonic() - began

    def _run(self) -> None:
        took = 0.0
        while not self._stop.wait(max(_EVERY_S, _SHARE * took)):
            try:
                took = self.follow_once()
            except Exception:  # noqa: BLE001  the thread must go on: there is no other one
                _log.exception("following the neighbours failed; trying again")
