"""The filter inside a stock mitmproxy: `mitmdump -s addons/gatewayfilter_addon.py`."""

import logging
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Final

from gatewayfilter.config import Settings, load
from gatewayfilter.errors import StartupError
from gatewayfilter.processes.data_dir import prepare_lists
from gatewayfilter.processes.fork_server import start_fork_server
from gatewayfilter.processes.learner import run_learner
from gatewayfilter.processes.proxy_worker import open_components
from gatewayfilter.processes.supervision.run_lock import RunLock
from gatewayfilter.wiring import prepare_data_dir

_log = logging.getLogger(__name__)
_DRAIN_S = 5.0
_PRELOAD: Final = ("mitmproxy.tools.main", "gatewayfilter.processes.learner", "gatewayfilter.processes.preload")
"""What the learner imports. The first because a child begins with importing its parent's program, which is mitmproxy's here."""


def standalone_addons() -> list[object]:
    """Returns the addons for a stock mitmproxy: the filter, and the learner's process beside it.

    The settings come from the file and the environment, as for `gatewayfilter run`; `proxy.listen`, `proxy.mode` and the CA are
    mitmproxy's own affair here.

    Raises:
        ConfigError, StartupError, StoreError, SnapshotError: it cannot start.
    """
    loaded = load()
    if loaded.warnings:
        _log.warning(loaded.warning)
    settings = loaded.settings
    prepare_data_dir(settings)
    context = start_fork_server(_PRELOAD)  # imports while mitmproxy starts
    prepare_lists(settings)
    return [open_components(settings, standalone=True).addon, LearnerCompanion(settings, context)]


class LearnerCompanion:
    """Runs the learner while mitmproxy runs, unless a `gatewayfilter run` on the same state folder already does."""

    def __init__(self, settings: Settings, context: ForkServerContext) -> None:
        self._settings = settings
        self._context = context
        self._lock: RunLock | None = None
        self._process: ForkServerProcess | None = None

    def running(self) -> None:
        """Starts the learner. A mitmproxy hook."""
        try:
            self._lock = RunLock(self._settings.data_dir).__enter__()
        except StartupError as error:
            _log.info("%s; that one learns", error)
            return
        self._process = self._context.Process(target=run_learner, args=(self._settings,))
        self._process.start()

    def done(self) -> None:
        """Ends the learner. A mitmproxy hook."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(_DRAIN_S)
            if self._process.is_alive():
                self._process.kill()
        if self._lock is not None:
            self._lock.__exit__()
