"""The user of the machine who runs a command, for histories and the audit log."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatewayfilter.model import Actor
    from gatewayfilter.store import Store


def user_name() -> str:
    """Returns the name of the user, behind `sudo` of the one who called it."""
    if name := os.environ.get("SUDO_USER"):
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        return f"user {os.getuid()}"


def command_actor() -> Actor:
    """Returns who makes the changes of a command."""
    from gatewayfilter.model import Actor, Via

    return Actor(user_name(), Via.COMMAND)


def record(store: Store, action: str, subject: object, detail: str = "", undo: Mapping[str, object] | None = None) -> None:
    """Records a change that a command has made in the audit log; see `AuditTrail.record`."""
    from gatewayfilter.use_cases.access.audit_trail import AuditTrail

    AuditTrail(store).record(command_actor(), action, str(subject), detail, undo)
