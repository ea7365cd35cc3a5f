"""Changes that handlers make: each in one transaction and recorded, and refused when what it is based on has changed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

from fastapi import Header

from gatewayfilter.errors import ConflictError
from gatewayfilter.model import Actor, Via
from gatewayfilter.use_cases.access.audit_trail import AuditTrail, Recording
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.services import WebServices

IfMatch = Annotated[
    str, Header(alias="if-match", description="ETag of what is edited; nothing is changed (412) where another one is in force.")
]
CHANGED_SINCE: Final = "somebody has changed this since: load it again"
_MOST_TAGS: Final = 1_000


def actor_of(identity: Identity) -> Actor:
    """Returns who makes a change, for the audit log."""
    return Actor(identity.name, Via.SESSION if identity.csrf else Via.TOKEN)


@contextmanager
def changing(services: WebServices, identity: Identity, action: str, subject: str, detail: str = "") -> Iterator[Recording]:
    """Makes the changes of the block in one transaction and records them: all of them, or none when it raises.

    Args:
        services: with the database.
        identity: who makes it.
        action: what is done: noun, dot, verb in the past (`client.changed`).
        subject: what it is done to.
        detail: for people.
    """
    with AuditTrail(services.store, services.clock).changing(actor_of(identity), action, subject, detail) as recording:
        yield recording


def record(services: WebServices, identity: Identity, action: str, subject: str, detail: str = "") -> None:
    """Records a change that was made and cannot be undone; arguments as `changing`."""
    AuditTrail(services.store, services.clock).record(actor_of(identity), action, subject, detail)


def undo_url(entry_id: int) -> str:
    """Returns the address that takes a recorded change back by POST, `""` for none."""
    return f"/audit/{entry_id}/undo" if entry_id else ""


def etag(version: str) -> dict[str, str]:
    """Returns the header field with a version."""
    return {"etag": f'"{version}"'}


def check_version(expected: str, current: Callable[[], str]) -> None:
    """Checks what an edit is based on; to be called within `changing`.

    Args:
        expected: `If-Match`, or the version in a form; `""` or `*` for any.
        current: returns the version in force, `""` when there is no such thing.

    Raises:
        ConflictError: another version is in force.
    """
    wanted = {part.strip().removeprefix("W/").strip('"') for part in expected[:_MOST_TAGS].split(",")}
    if expected and "*" not in wanted and current() not in wanted:
        raise ConflictError(CHANGED_SINCE)
