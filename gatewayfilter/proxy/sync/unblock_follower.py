"""The unblock follower keeps a worker's view of requests and bypass links up to date."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import UnblockChanges
from gatewayfilter.proxy.pages.own_requests import OwnRequests

_log = logging.getLogger(__name__)

_EVERY_S: Final = 0.5


class UnblockFollower:
    """Polls the store in a thread of its own.

    Args:
        read: returns the changes after a version; may raise `StoreError`: the view stays as it is.
        view: takes them in.
    """

    def __init__(self, read: Callable[[int], UnblockChanges], view: OwnRequests) -> None:
        self._read = read
        self._view = view
        self._version = -1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="unblock-follower", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def follow_once(self) -> None:
        """Takes in what has changed.

        Raises:
            StoreError: the database refuses.
        """
        changes = self._read(self._version)
        self._view.take_in(changes)
        self._version = changes.version

    def _run(self) -> None:
        while True:
            try:
                self.follow_once()
            except StoreError:  # the feed's follower logs that the database is away
                pass
            except Exception:  # noqa: BLE001  the thread must go on: there is no other one
                _log.exception("following the requests failed; trying again")
            if self._stop.wait(_EVERY_S):
                return
