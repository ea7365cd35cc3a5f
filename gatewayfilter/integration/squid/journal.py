"""Memory that a helper process and the daemon share while the daemon reads squid's requests itself. The standard library alone.

A request stands in it from before it can be seen until its answer is with squid: the kernel copies requests of squid's socket
into it. So the helper knows, whenever the daemon ends, what was read and has no answer yet, and the daemon needs no second
process to pass requests on.

======  ==========================================================================================================
bytes   content
======  ==========================================================================================================
0 to 3  how many chunks were read, modulo 2³²; written by the daemon
4       1 when the helper has taken the requests back; written by the helper
5       1 while a long line is passed over; written by the daemon
6       1 while squid may have a part of an answer; written by the daemon
7       1 while requests may come into it; written by the daemon
16 on   requests without an answer, and the beginning of one that has not come whole; NUL behind them
======  ==========================================================================================================
"""

import fcntl
import mmap
import os
from typing import Final

_HEAD: Final = 16
_SIZE: Final = 2 * 65_536
"""Twice the longest line: a whole read fits behind the longest one that is not complete."""
_REVOKED: Final = 4
_DISCARDING: Final = 5
_CUT: Final = 6
_READING: Final = 7


class Journal:
    """The shared memory, opened.

    Args:
        descriptor: of the memory; it can be closed afterwards.
    """

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, _HEAD + _SIZE)
        self._view = memoryview(self._memory)
        self._chunks = 0

    @staticmethod
    def create() -> int:
        """Returns the descriptor of new memory, which nobody can shorten: an access behind its end would end the daemon."""
        descriptor = os.memfd_create("squid-requests", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, _HEAD + _SIZE)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def close(self) -> None:
        """Gives the memory back."""
        self._view.release()
        self._memory.close()

    def room(self, after: int) -> memoryview:
        """Returns where requests are to be read to, behind `after` bytes that are there already."""
        self._chunks = (self._chunks + 1) & 0xFFFFFFFF
        self._memory[0:4] = self._chunks.to_bytes(4, "little")
        return self._view[_HEAD + after :]

    def take(self, length: int) -> bytes:
        """Returns the first bytes."""
        return self._memory[_HEAD : _HEAD + length]

    def replace(self, length: int, rest: bytes) -> None:
        """Puts `rest` in the place of the first `length` bytes, which are at least as many."""
        self._memory[_HEAD : _HEAD + length] = rest.ljust(length, b"\0")

    def left(self) -> bytes:
        """Returns what is there, by its end in NUL bytes."""
        return self._memory[_HEAD:].rstrip(b"\0")

    @property
    def chunks(self) -> int:
        """How many chunks were read, as the daemon wrote it."""
        return int.from_bytes(self._memory[0:4], "little")

    @property
    def is_empty(self) -> bool:
        """Whether there is no request without an answer."""
        return self._memory[_HEAD] == 0

    @property
    def revoked(self) -> bool:
        """Whether the helper has taken the requests back."""
        return self._memory[_REVOKED] != 0

    def revoke(self) -> None:
        """Takes the requests back."""
        self._memory[_REVOKED] = 1

    @property
    def discarding(self) -> bool:
        """Whether a long line is passed over."""
        return self._memory[_DISCARDING] != 0

    @discarding.setter
    def discarding(self, value: bool) -> None:
        self._memory[_DISCARDING] = value

    @property
    def reading(self) -> bool:
        """Whether requests may come into it: set before a look at `revoked`, so that either end sees what the other one does."""
        return self._memory[_READING] != 0

    @reading.setter
    def reading(self, value: bool) -> None:
        self._memory[_READING] = value

    @property
    def cut(self) -> bool:
        """Whether squid may have a part of an answer; set before a look at `revoked`, as `reading` is."""
        return self._memory[_CUT] != 0

    @cut.setter
    def cut(self, value: bool) -> None:
        self._memory[_CUT] = value
