"""SIGTERM in processes with an event loop."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def calls_on_sigterm(callback: Callable[[], object]) -> Iterator[None]:
    """Calls `callback` in the running event loop at SIGTERM. After the block, while the loop is closed, SIGTERM is ignored.

    A loop closes the socket by which signals wake it before it removes its signal handlers: a signal in between would write to a
    closed descriptor, and the interpreter would print a traceback.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, callback)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the loop removes its own with its end
