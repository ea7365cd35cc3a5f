"""A bounded dictionary that computes missing values, for keys that clients choose."""

from collections.abc import Callable

GENERATION = 8_192
"""Entries of a generation (hosts, pages, or pairs of both); 1 to 3 MB for each of the two generations."""


class BoundedCache[K, V](dict[K, V]):
    """A cache of recently used values: `cache[key]` is one dictionary look-up in C when the key is present.

    There are two generations. A full young generation becomes the old one; a hit in the old one moves the entry back without
    computing it again. A flood of new keys cannot evict entries in use, and costs memory for twice `GENERATION` entries at most.
    Threads need no lock: a race can only lose entries.

    Args:
        find: computes the value of a key; it must not be `None`.
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
