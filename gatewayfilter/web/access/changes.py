"""Changes that handlers make: each in one transaction, recorded, and refused when what it is based on has changed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Header, HTTPException

from gatewayfilter.model import Actor, Via
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.services import WebServices

IfMatch = Annotated[
    str, Header(alias="if-match", description="ETag of what is edited; with another one in force nothing is changed (412).")
]
CHANGED_SINCE: Final = "somebody has changed this since: load it again"


@dataclass(slots=True)
class Recorded:
    """A change as it was recorded.

    Attributes:
        undo_url: address that undoes it by POST, `""` when it cannot be undone.
    """

    undo_url: str = ""


@contextmanager
def changing(services: WebServices, identity: Identity, action: str, subject: str, detail: str = "") -> Iterator[Recorded]:
    """Makes the changes of the block in one transaction: all of them, or none when it raises.

    Args:
        services: with the database.
        identity: who makes it.
        action: what is done: noun, dot, verb in the past (`client.changed`).
        subject: what it is done to.
        detail: for people.
    """
    recorded = Recorded()
    with services.store.changing():
        yield recorded


def record(services: WebServices, identity: Identity, action: str, subject: str, detail: str = "") -> None:
    """Records a change that was made and cannot be undone; arguments as `changing`."""
    AuditTrail(services.store, services.clock).record(Actor(identity.name, Via.SESSION), action, subject, detail)


def etag(version: str) -> dict[str, str]:
    """Returns the header field with a version."""
    return {"etag": f'"{version}"'}


def check_version(expected: str, current: Callable[[], str]) -> None:
    """Checks what an edit is based on; to be called within `changing`.

    Args:
        expected: `If-Match`, or the version in a form; `""` or `*` for any.
        current: returns the version in force, `""` when there is no such thing.

    Raises:
        HTTPException: 412 where another version is in force.
    """
    wanted = {part.strip().removeprefix("W/").strip('"') for part in expected[:1000].split(",")}
    if expected and "*" not in wanted and current() not in wanted:
        raise HTTPException(412, CHANGED_SINCE)
