"""Changes that handlers make: each in one transaction and recorded, and refused when what it is based on has changed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import Header

from gatewayfilter.errors import ConflictError
from gatewayfilter.use_cases.access.audit_trail import Recording
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.services import WebServices

IfMatch = Annotated[
    str, Header(alias="if-match", description="ETag of what is edited; nothing is changed (412) where another one is in force.")
]
CHANGED_SINCE: Final = "somebody has changed this since: load it again"
_MOST_TAGS: Final = 1_000
_LONGEST_VERSION: Final = 9


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
    with services.access.trail.changing(identity.actor, action, subject, detail) as recording:
        yield recording


def record(
    services: WebServices, identity: Identity, action: str, subject: str, detail: str = "", undo: Mapping[str, Any] | None = None
) -> int:
    """Records a change that was made outside of lists and policies. Returns the number of the entry.

    Args:
        services: with the database.
        identity: who made it.
        action: as for `changing`.
        subject: what it was done to.
        detail: for people.
        undo: what takes it back (`use_cases.access.inverses`), `None` when nothing does.
    """
    return services.access.trail.record(identity.actor, action, subject, detail, undo)


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


def based_on(expected: str) -> int | None:
    """Returns the version number that an edit is based on, `None` for any.

    Args:
        expected: `If-Match`, or the version in a form; `""` or `*` for any.

    Raises:
        ConflictError: it is no number, so no such version is in force.
    """
    wanted = expected[:_MOST_TAGS].strip().removeprefix("W/").strip('"')
    if wanted in {"", "*"}:
        return None
    if not (wanted.isascii() and wanted.isdecimal()) or len(wanted) > _LONGEST_VERSION:
        raise ConflictError(CHANGED_SINCE)
    return int(wanted)
