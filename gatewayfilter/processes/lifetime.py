"""What every child process does about signals, logging and the end of its parent."""

import logging
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait

from gatewayfilter.config import Settings
from gatewayfilter.telemetry import set_up_logging

_log = logging.getLogger(__name__)


def begin_child(settings: Settings) -> None:
    """Sets a child process up: logging, Ctrl-C left to the supervisor, SIGTERM to itself when the supervisor is gone."""
    set_up_logging(settings.log.level)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow_parent, args=(parent.sentinel,), name="parent-watch", daemon=True).start()


def _follow_parent(sentinel: int) -> None:
    wait([sentinel])
    _log.warning("the supervisor is gone; stopping")
    os.kill(os.getpid(), signal.SIGTERM)
