"""Entries of the audit log: who changed what, by which way, and what takes it back."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Via(StrEnum):
    """The way by which a change was made."""

    SESSION = "session"
    """The dashboard, after a log-in."""
    TOKEN = "token"  # noqa: S105  a word
    """The API, with a token."""
    COMMAND = "command"
    """A command on the machine of the filter."""
    SYSTEM = "system"
    """The program itself."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change.

    Attributes:
        name: of the account; for a command, of the user of the machine.
        detail: name of the token or network of the session, `""` for neither.
    """

    name: str
    via: Via
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A change that was made.

    Attributes:
        at: Unix seconds.
        action: a code, as `rule.added`.
        subject: what was changed.
        undo: kind and state before and after, which `use_cases.access.undo` reads; `None` when it cannot be taken back.
        undone_at: Unix seconds, `None` while it stands.
        undone_by: name of the account that took it back.
    """

    entry_id: int
    at: float
    actor: Actor
    action: str
    subject: str
    detail: str = ""
    undo: Mapping[str, Any] | None = None
    undone_at: float | None = None
    undone_by: str = ""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer to a request with an idempotency key.

    Attributes:
        request_digest: SHA-256 of method, path and body.
        status: of the answer, 0 while the first request is being answered.
        headers: those that a repetition gets again.
        body: of the answer; `None` when it was too large to keep.
    """

    request_digest: bytes
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = b""
