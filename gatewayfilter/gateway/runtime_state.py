"""The runtime state of the gateway, stored by `up` for `down` and `status`: in /run, so a restart removes it with the rules."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Final

from gatewayfilter.errors import GatewayError

RUN_FOLDER: Final = Path("/run/gatewayfilter")
_SWITCH_VALUES: Final = frozenset("012")


@dataclass(frozen=True, slots=True)
class RuntimeState:
    """The stored state.

    Attributes:
        digest: of the ruleset that was loaded.
        listing: the table right after loading, without counters.
        switches: sysctl → value before.
        fail_open: whether traffic bypasses the filter while no worker listens or answers.
        opened: whether it does now.
        quic_rejected, dot_rejected: shown on the set-up page.
        lan: the interfaces.
    """

    digest: str = ""
    listing: str = ""
    switches: dict[str, str] = field(default_factory=dict)
    fail_open: bool = False
    opened: bool = False
    quic_rejected: bool = False
    dot_rejected: bool = False
    lan: tuple[str, ...] = ()


class RuntimeStateFile:
    """The state file, one per network namespace.

    Args:
        folder: of the file; writable by root only, readable by all, for the set-up page.
    """

    def __init__(self, folder: Path = RUN_FOLDER) -> None:
        try:
            namespace = Path("/proc/self/ns/net").stat().st_ino
        except OSError:  # not Linux: no gateway
            namespace = 0
        self.path = folder / f"gateway-{namespace}.json"
        self._lock = folder / f"gateway-{namespace}.lock"
        self._watchdog = folder / f"watchdog-{namespace}.lock"

    def read(self) -> RuntimeState | None:
        """Returns the stored state; `None` when there is none that can be read."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            switches = {str(name): str(value) for name, value in found["switches"].items()}
            return RuntimeState(
                digest=str(found["digest"]),
                listing=str(found["listing"]),
                switches={name: value for name, value in switches.items() if _is_ours(name, value)},
                fail_open=found["fail_open"] is True,
                opened=found["opened"] is True,
                quic_rejected=found["quic_rejected"] is True,
                dot_rejected=found["dot_rejected"] is True,
                lan=tuple(str(name) for name in found["lan"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, memory: RuntimeState) -> None:
        """Writes the state atomically.

        Raises:
            GatewayError: it cannot be written.
        """
        try:
            self.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, prefix=".", delete=False, encoding="utf-8") as file:
                json.dump(asdict(memory), file)
                os.fchmod(file.fileno(), 0o644)
            Path(file.name).replace(self.path)
        except OSError as error:
            raise GatewayError(f"cannot write {self.path}: {error.strerror}") from error

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Holds the lock of the gateway: one process at a time changes it.

        Raises:
            GatewayError: not allowed.
        """
        with self._open(self._lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def watching(self) -> Iterator[bool]:
        """Yields whether this process is the watchdog; there is one at a time."""
        with self._open(self._watchdog) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def is_watched(self) -> bool:
        """Returns whether a watchdog runs."""
        try:
            with self._watchdog.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _open(self, path: Path) -> IO[bytes]:
        try:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            return path.open("ab")
        except OSError as error:
            raise GatewayError(f"cannot write {path}: {error.strerror}; run this as root") from error

    def forget(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


def _is_ours(name: str, value: str) -> bool:
    return value in _SWITCH_VALUES and name.startswith(("net/ipv4/", "net/ipv6/")) and ".." not in name
