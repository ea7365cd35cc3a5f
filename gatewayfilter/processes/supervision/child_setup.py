"""The set-up of every child process: signals, logging, the end of its parent."""

import faulthandler
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.telemetry import set_up_logging

_log = logging.getLogger(__name__)

_STANDARD_ERROR: Final = 2
_NO_THREAD: Final = "can't start new thread"
"""Of a RuntimeError: asyncio needs one more thread even to end."""


def begin_child(settings: Settings) -> None:
    """Sets a child process up: logging, Ctrl-C left to the supervisor, SIGTERM to itself when the supervisor has ended.

    A crash in compiled code leaves the functions of all threads in the log, without arguments.
    """
    set_up_logging(settings.log.level, settings.log.format)
    faulthandler.enable(_STANDARD_ERROR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow_parent, args=(parent.sentinel,), name="parent-watch", daemon=True).start()


@contextmanager
def ending_with_a_sentence() -> Iterator[None]:
    """Ends the process with code 2 on errors of the program's own, each printed as one sentence, and where memory has run out.

    Those of an exception group are printed too; any other exception is raised unchanged.
    """
    try:
        yield
    except (GatewayFilterError, ExceptionGroup) as error:
        ours, others = ExceptionGroup("", [error]).split(GatewayFilterError)
        if ours is None or others is not None:
            raise
        for one in _leaves(ours):
            _log.error("%s", one)
        sys.exit(2)
    except MemoryError:
        _log.error("memory has run out")
        sys.exit(2)
    except RuntimeError as error:
        if str(error) != _NO_THREAD:
            raise
        _log.error("no further thread can be started: memory or processes have run out")
        sys.exit(2)


def _leaves(group: ExceptionGroup) -> Iterator[Exception]:
    for one in group.exceptions:
        if isinstance(one, ExceptionGroup):
            yield from _leaves(one)
        else:
            yield one


def _follow_parent(sentinel: int) -> None:
    wait([sentinel])
    _log.warning("the supervisor has ended; stopping")
    os.kill(os.getpid(), signal.SIGTERM)
