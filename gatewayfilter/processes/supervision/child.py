"""A supervised child process: started, watched, restarted with back-off."""

import logging
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Final

from gatewayfilter.processes.supervision.heartbeat import SERVING, heard
from gatewayfilter.processes.supervision.process_handle import ProcessHandle

_log = logging.getLogger(__name__)

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 30.0
NEEDED_DELAY_S: Final = 1.0
"""The longest delay of a worker while no other one serves."""
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
        exit_code: of its last end, `None` while it never ended, or when it is not known.
        serving: whether the process that runs has reported that it serves.
        is_forked: whether a fork server starts it.

    Args:
        name: its name.
        target: its entry.
        args: what the entry takes.
        context: starts it.
        beats: whether the entry takes one more argument, the line for its heartbeats (`Heartbeat`).
        longest_delay_s: the longest delay of a restart.
    """

    def __init__(
        self,
        name: str,
        target: Callable[..., None],
        args: tuple[object, ...],
        context: ForkServerContext | SpawnContext,
        *,
        beats: bool = False,
        longest_delay_s: float = LONGEST_DELAY_S,
    ) -> None:
        self.name = name
        self.serving = False
        self.is_forked = isinstance(context, ForkServerContext)
        self.restarts = 0
        self.stalls = 0
        self.exit_code: int | None = None
        self._target = target
        self._args = args
        self._context = context
        self._process: ProcessHandle | None = None
        self._beats = beats
        self._longest_delay_s = longest_delay_s
        self._line: Connection | None = None
        self._heard_at: float | None = None
        self._started_at = 0.0
        self._restart_at = 0.0
        self._delay_s = 0.0

    def start(self) -> bool:
        """Starts the process. Returns whether it runs; if not, the fork server ended meanwhile, and a restart is planned."""
        try:
            self._start()
        except (OSError, EOFError) as error:
            self._plan(self._delay_s)
            _log.error("%s could not be started: %s; trying again in %.1f s", self.name, error, self._delay_s)
            return False
        return True

    @property
    def sentinels(self) -> tuple[int | Connection, ...]:
        """What is ready when the process ends, and when it begins to serve; empty while none runs."""
        if self._process is None:
            return ()
        if self._line is None or self.serving:
            return (self._process.sentinel,)
        return (self._process.sentinel, self._line)

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
        self._plan(0.0 if lived_s >= HEALTHY_AFTER_S else self._delay_s)
        _log.error(
            "%s ended with exit code %s after %.0f s; it starts again in %.1f s",
            self.name,
            self.exit_code if self.exit_code is not None else "unknown",
            lived_s,
            self._delay_s,
        )
        return True

    def hasten(self) -> None:
        """Brings a planned restart forward: no other worker serves."""
        self._restart_at = min(self._restart_at, time.monotonic() + NEEDED_DELAY_S)

    def hear(self) -> None:
        """Takes the heartbeats that came."""
        if self._line is not None and (came := heard(self._line)):
            self._heard_at = time.monotonic()
            self.serving = self.serving or SERVING in came

    def wait_s(self) -> float | None:
        """Returns the time until its restart is due, `None` while it runs."""
        return None if self._process is not None else max(0.0, self._restart_at - time.monotonic())

    def restart_if_due(self) -> bool:
        """Starts it again when the back-off is over. Returns whether it did."""
        if self._process is not None or time.monotonic() < self._restart_at:
            return False
        if not self.start():
            return False
        self.restarts += 1
        _log.info("%s was started again as process %s", self.name, self.pid)
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
        self.hear()
        now = time.monotonic()
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

    def _start(self) -> None:
        further: tuple[object, ...] = ()
        if self._beats:
            self._line, theirs = self._context.Pipe(duplex=False)
            further = (theirs,)
        try:
            self._process = ProcessHandle(
                self._context.Process(target=self._target, args=(*self._args, *further), name=self.name)
            )
        except BaseException:
            self._hang_up()
            raise
        finally:
            if self._beats:
                theirs.close()
        self._started_at = time.monotonic()
        self._heard_at = None
        self.serving = False

    def _forget(self) -> None:
        assert self._process is not None
        self.exit_code = self._process.close()
        self._process = None
        self.serving = False
        self._hang_up()

    def _plan(self, last_delay_s: float) -> None:
        self._delay_s = min(last_delay_s * 2, self._longest_delay_s) if last_delay_s else FIRST_DELAY_S
        self._restart_at = time.monotonic() + self._delay_s

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
