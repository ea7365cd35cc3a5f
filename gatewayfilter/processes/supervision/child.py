"""A supervised child process: started, watched, restarted with back-off."""

import logging
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess, SpawnContext, SpawnProcess

from gatewayfilter.processes.supervision.heartbeat import heard

_log = logging.getLogger(__name__)

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 30.0
"""A child that lived this long starts again without delay the next time."""
HOPELESS_AFTER = 3
FIRST_BEAT_S = 120.0
"""How long a child may take until its event loop runs: it opens lists of millions of entries before."""


class Child:
    """One child process with its failures.

    Attributes:
        name: as in `run/<name>.json` and the log.
        restarts: how often it was started again.
        stalls: how often it was killed because heartbeats were missing.
        exit_code: of its last end, `None` while it never ended.

    Args:
        name: its name.
        target: its entry.
        args: what the entry takes.
        context: starts it.
        beats: whether the entry takes one more argument, the line for its heartbeats (`Heartbeat`).
    """

    def __init__(
        self,
        name: str,
        target: Callable[..., None],
        args: tuple[object, ...],
        context: ForkServerContext | SpawnContext,
        *,
        beats: bool = False,
    ) -> None:
        self.name = name
        self.restarts = 0
        self.stalls = 0
        self.exit_code: int | None = None
        self._target = target
        self._args = args
        self._context = context
        self._process: ForkServerProcess | SpawnProcess | None = None
        self._beats = beats
        self._line: Connection | None = None
        self._heard_at: float | None = None
        self._started_at = 0.0
        self._restart_at = 0.0
        self._delay_s = 0.0

    def start(self) -> None:
        """Starts the process."""
        further: tuple[object, ...] = ()
        if self._beats:
            self._line, theirs = self._context.Pipe(duplex=False)
            further = (theirs,)
        process = self._context.Process(target=self._target, args=(*self._args, *further), name=self.name)
        process.start()
        if self._beats:
            theirs.close()
        self._process = process
        self._started_at = time.monotonic()
        self._heard_at = None

    @property
    def sentinel(self) -> int | None:
        """A descriptor that is ready when the process ends; `None` while none runs."""
        return self._process.sentinel if self._process is not None else None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None else None

    @property
    def hopeless(self) -> bool:
        """Whether it ended with 2 (it cannot start), or failed again and again."""
        return self.exit_code == 2 or self.restarts >= HOPELESS_AFTER

    def reap(self) -> bool:
        """Takes note of an end and plans the restart. Returns whether it had ended."""
        if self._process is None or self._process.is_alive():
            return False
        self._forget()
        lived_s = time.monotonic() - self._started_at
        self._delay_s = (
            FIRST_DELAY_S if lived_s >= HEALTHY_AFTER_S or not self._delay_s else min(self._delay_s * 2, LONGEST_DELAY_S)
        )
        self._restart_at = time.monotonic() + self._delay_s
        _log.error(
            "%s ended with exit code %s after %.0f s; it starts again in %.1f s",
            self.name,
            self.exit_code,
            lived_s,
            self._delay_s,
        )
        return True

    def wait_s(self) -> float | None:
        """Returns the time until its restart is due, `None` while it runs."""
        return None if self._process is not None else max(0.0, self._restart_at - time.monotonic())

    def restart_if_due(self) -> bool:
        """Starts it again when the back-off is over. Returns whether it did."""
        if self._process is not None or time.monotonic() < self._restart_at:
            return False
        self.restarts += 1
        self.start()
        return True

    def terminate(self) -> None:
        """Signals the process to drain and end."""
        if self._process is not None and self._process.is_alive():
            self._process.terminate()

    def finish(self, deadline: float) -> None:
        """Waits for the end until `deadline` (monotonic seconds), then kills."""
        if self._process is None:
            return
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.is_alive():
            _log.error("%s did not end in time; killing it", self.name)
            self._process.kill()
            self._process.join(5)
        self._forget()

    def end_if_stalled(self, after_s: float) -> bool:
        """Kills the process when its event loop has sent no heartbeat for `after_s`. Returns whether it did.

        The kernel goes on accepting connections for a loop that hangs; they would never be answered.
        """
        if self._process is None or self._line is None:
            return False
        now = time.monotonic()
        if heard(self._line):
            self._heard_at = now
        since = self._heard_at if self._heard_at is not None else self._started_at + max(0.0, FIRST_BEAT_S - after_s)
        if now - since < after_s:
            return False
        _log.error("%s has not stirred for %.0f s: it is killed", self.name, now - (self._heard_at or self._started_at))
        self.stalls += 1
        self._process.kill()  # without SIGTERM: a loop that hangs cannot drain
        self._hang_up()
        return True

    def forgive_silence(self) -> None:
        """Begins to count the time without a heartbeat again: the supervisor itself was stopped."""
        if self._heard_at is not None:
            self._heard_at = time.monotonic()

    def _forget(self) -> None:
        assert self._process is not None
        self.exit_code = self._process.exitcode
        self._process.close()
        self._process = None
        self._hang_up()

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
