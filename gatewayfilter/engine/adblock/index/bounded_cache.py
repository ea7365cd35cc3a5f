"""A bounded dictionary that works out what it does not hold, for keys that clients choose."""

from collections.abc import Callable

GENERATION = 8_192
"""Entries of a generation: hosts, pages, or pairs of both that a worker keeps at hand; 1 to 3 MB for each of the two."""


class BoundedCache[K, V](dict[K, V]):
    """Keeps what was asked for lately: `cache[key]` is one look-up in compiled code when the key is known.

    There are two generations: when the young one is full it becomes the old one, from which what is asked for comes back
    without being worked out. So nobody can drive out what is in use by flooding it with new keys, and a flood costs memory for
    twice `GENERATION` entries. Threads need no lock: a race can only lose entries.

    Args:
        find: works out the value for a key; it must not be `None`.
    """

    __slots__ = ("_find", "_old")

    def __init__(self, find: Callable[[K], V]) -> None:
        super().__init__()
        self._find = find
        self._old: dict[K, V] = {}

    def __missing__(self, key: K) -> V:
        found = self._old.get(key)
        if found is None:
            found = self._find(key)
        if len(self) >= GENERATION:
            self._old = dict(self)
            self.clear()
        self[key] = found
        return found

    def forget(self) -> None:
        """Empties both generations."""
        self._old = {}
        self.clear()
