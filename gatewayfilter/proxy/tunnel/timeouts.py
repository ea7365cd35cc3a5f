"""Deadlines of one length on one timer: what was added first is due first, and nearly all are cancelled before."""

import asyncio
from collections.abc import Callable, Hashable


class Deadlines[T: Hashable]:
    """Items with a deadline, and the action on those that reach it.

    Args:
        loop: the event loop that provides the clock and the timer.
        delay_s: how long an item has from when it is added.
        act: called with an item that is due, after the item was removed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, delay_s: float, act: Callable[[T], None]) -> None:
        self.delay_s = delay_s
        self._loop = loop
        self._act = act
        self._due: dict[T, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, item: T) -> bool:
        return item in self._due

    def add(self, item: T) -> None:
        """Gives an item its time, from now; one that is there starts again."""
        self._due.pop(item, None)
        self._due[item] = due = self._loop.time() + self.delay_s
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._look)

    def remove(self, item: T) -> None:
        """Lifts the limit of an item, if it has one."""
        self._due.pop(item, None)

    def close(self) -> None:
        """Lifts all limits."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        over = []
        for item, due in self._due.items():
            if due > now:
                self._timer = self._loop.call_at(due, self._look)
                break
            over.append(item)
        for item in over:
            if self._due.pop(item, None) is not None:  # one that went before may have lifted it
                self._act(item)
