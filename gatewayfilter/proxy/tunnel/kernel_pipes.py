"""Kernel pipes for `os.splice`: bulk transfers between two sockets, without a copy to user space."""

import fcntl
import os
from typing import Final

_PIPE_BYTES: Final = 1_048_576
"""What the kernel gives without privileges; where it gives less, the pipe is smaller and costs more calls."""
_SMALLEST_PIPE: Final = 131_072
"""Below this a copy through a buffer is the faster way."""
_MOST_PIPES: Final = 64


class Pipe:
    """A pipe, empty whenever it is lent out.

    Attributes:
        reading, writing: descriptors of its ends.
        filled: bytes in it.
        size: how many it holds.
    """

    __slots__ = ("filled", "reading", "size", "writing")

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.filled = 0
        try:
            self.size = fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:  # the user's share of pipe memory is used up
            self.size = fcntl.fcntl(self.writing, fcntl.F_GETPIPE_SZ)

    def close(self) -> None:
        """Closes both ends."""
        os.close(self.reading)
        os.close(self.writing)


class PipePool:
    """The pipes of a worker.

    Args:
        in_kernel: whether there may be any.
    """

    def __init__(self, *, in_kernel: bool) -> None:
        self.lent = 0
        self.idle: list[Pipe] = []
        self._in_kernel = in_kernel

    def lend(self) -> Pipe | None:
        """Returns an empty pipe, `None` when a copy through a buffer is the better way or there are no more."""
        if not self._in_kernel or self.lent >= _MOST_PIPES:
            return None
        try:
            pipe = self.idle.pop() if self.idle else Pipe()
        except OSError:  # no file descriptors left
            return None
        if pipe.size < _SMALLEST_PIPE:
            pipe.close()
            self._in_kernel = False
            return None
        self.lent += 1
        return pipe

    def take_back(self, pipe: Pipe) -> None:
        """Keeps an empty pipe for the next; closes one with something in it."""
        self.lent -= 1
        if pipe.filled:
            pipe.close()
        else:
            self.idle.append(pipe)

    def close(self) -> None:
        """Closes the pipes that are not in use."""
        for pipe in self.idle:
            pipe.close()
        self.idle.clear()
