"""The channel that runs a program of the operator's."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gatewayfilter.errors import NotifyError
from gatewayfilter.notify.message import Message

_KEPT: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "HOME",
    "TZ",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
)
"""What the program gets of the environment: nothing of the filter's settings, which hold passwords."""


class CommandChannel:
    """Runs a program without a shell for each message, with event and title as further arguments and JSON on standard input.

    What users wrote never becomes an option of the program: both further arguments begin with a letter.

    Args:
        command: program and arguments.
        timeout_s: after which it is killed with all that it started.
    """

    name = "command"

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        self._command = list(command)
        self._timeout_s = timeout_s

    def send(self, message: Message) -> None:
        """Runs the program.

        Raises:
            NotifyError: it cannot be started, takes too long, or ends with another code than 0.
        """
        facts = {"id": message.number, "event": message.event, "title": message.title, "text": message.text}
        sent = json.dumps({**facts, "link": message.link, "events": list(message.events)}, ensure_ascii=True).encode()
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            process = subprocess.Popen(  # noqa: S603  the operator's own
                [*self._command, message.event, message.title],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NotifyError(f"{self._command[0]} cannot be run: {getattr(error, 'strerror', None) or error}") from error
        try:
            process.communicate(sent, timeout=self._timeout_s)
        except subprocess.TimeoutExpired as error:
            raise NotifyError(f"{self._command[0]} took longer than {self._timeout_s:g} s and was killed") from error
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode:
            raise NotifyError(f"{self._command[0]} ended with {process.returncode}")
