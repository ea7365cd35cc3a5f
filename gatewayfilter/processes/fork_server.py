"""The process that imports mitmproxy and the rest once, and from which the children are forked.

See docs/decisions/0002-forkserver.md.
"""

import multiprocessing
import signal
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext

from gatewayfilter.processes.entry_points import PRELOAD


def start_fork_server(preload: Sequence[str] = PRELOAD) -> ForkServerContext:
    """Starts the fork server, which imports what the children need while this process goes on.

    Args:
        preload: the modules that it imports, in this order.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: Ctrl-C is the supervisor's alone to answer
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, interrupt)
    return context
