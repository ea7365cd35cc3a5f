"""A bounded cache of recently used entries, for keys that clients choose."""

GENERATION = 4096
"""Entries of a generation: about 3 MB for each of the two when they are facts about hosts."""


class LruCache[K, V]:
    """A cache of recently used entries in two generations: when the young one is full it becomes the old one.

    An entry that is used at least once per `GENERATION` new ones stays. A hit in the young generation is one
    dictionary look-up. Readers and writers of several threads need no lock: a race can only lose entries.

    Attributes:
        young: the young generation. `young.get` finds most entries in use; `get` finds all, at the cost of a call.
    """

    __slots__ = ("_old", "young")

    def __init__(self) -> None:
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Returns the cached value, `None` without one."""
        found = self.young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> None:
        """Stores a value."""
        if len(self.young) >= GENERATION:
            self._old = self.young
            self.young = {}
        self.young[key] = value

    def __len__(self) -> int:
        return len(self.young.keys() | self._old.keys())
