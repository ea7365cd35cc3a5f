"""A bounded cache whose keys clients choose."""

GENERATION = 4096
"""Entries of a generation: about 3 MB for each of the two when all hosts are different."""


class HostCache[T]:
    """Keeps what was asked for lately, in two generations: when the young one is full it becomes the old one.

    An entry that is asked for at least once in every `GENERATION` new ones stays. A hit in the young generation is one
    dictionary look-up. Readers and writers of several threads need no lock: a race can only lose entries.
    """

    __slots__ = ("_old", "_young")

    def __init__(self) -> None:
        self._young: dict[str, T] = {}
        self._old: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        """Returns what is kept, `None` for nothing."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: str, value: T) -> None:
        """Keeps a value."""
        if len(self._young) >= GENERATION:
            self._old = self._young
            self._young = {}
        self._young[key] = value

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())
