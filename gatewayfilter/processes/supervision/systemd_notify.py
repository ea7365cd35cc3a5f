"""Notifications to systemd, sd_notify(3): datagrams to the socket that the manager names; nothing without one."""

import os
import socket
from collections.abc import Mapping
from typing import Final

_MILLION: Final = 1_000_000


class ServiceManager:
    """The service manager that started this process, if one did.

    Args:
        environ: stands in for `os.environ`.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        watched = environ.get("WATCHDOG_USEC", "")
        ours = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.ping_every_s = int(watched) / _MILLION / 2 if ours and self._address and watched.isdigit() else None
        """How often `alive` has to be called; `None` for never."""

    def ready(self, status: str) -> None:
        """Notifies that clients are served."""
        self._say(f"READY=1\nSTATUS={status}\n")

    def alive(self) -> None:
        """Feeds the watchdog."""
        self._say("WATCHDOG=1\n")

    def stopping(self) -> None:
        """Notifies that no more clients are taken."""
        self._say("STOPPING=1\nSTATUS=draining\n")

    def _say(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.connect(self._address)
                channel.sendall(text.encode())
        except OSError:  # the manager ended; notifications are optional
            return
