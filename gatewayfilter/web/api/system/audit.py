"""`/api/v1/audit`: who changed what, and its undo."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, Field

from gatewayfilter.model import AuditEntry
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Approver
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/audit", tags=["audit"])


class AuditModel(BaseModel):
    """A change that was made."""

    id: Annotated[int, Field(description="Its number.")]
    at: Annotated[float, Field(description="Unix seconds.")]
    who: Annotated[str, Field(description="Name of the account, or of the machine's user.")]
    via: Annotated[str, Field(description="session, token, command or system.")]
    via_detail: Annotated[str, Field(description="Network of the session, or name of the token.")]
    action: Annotated[str, Field(description="A code, as rule.added.")]
    subject: Annotated[str, Field(description="What was changed.")]
    detail: Annotated[str, Field(description="For people.")]
    undoable: Annotated[bool, Field(description="Whether it can be taken back.")]
    undone_at: Annotated[float | None, Field(description="Unix seconds, null while it stands.")]
    undone_by: Annotated[str, Field(description="Who took it back.")]


class AuditPage(BaseModel):
    """A page of changes."""

    items: Annotated[list[AuditModel], Field(description="The newest first.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


@router.get("", operation_id="list_audit")
def show(
    services: Services,
    _: Admin,
    after: Annotated[int | None, Query(description="`next` of the page before.", ge=1, le=2**62)] = None,
    limit: Annotated[int, Query(description="Most entries.", ge=1, le=500)] = 100,
    who: Annotated[str, Query(description="Only of this name.", max_length=200)] = "",
    action: Annotated[str, Query(description="Only this code, or all that begin so if it ends in a dot.", max_length=48)] = "",
) -> AuditPage:
    """Returns changes, the newest first."""
    found = services.store.audit.page(before=after, limit=limit + 1, who=who, action=action)
    more = str(found[limit - 1].entry_id) if len(found) > limit else None
    return AuditPage(items=[_model(entry) for entry in found[:limit]], next=more)


@router.get("/undoable", operation_id="list_undoable")
def undoable(services: Services, identity: Approver) -> AuditPage:
    """Returns the last ten changes that the account may take back, the newest first."""
    return AuditPage(items=[_model(entry) for entry in services.access.undo.offered(identity.model_role)], next=None)


@router.post("/{entry_id}/undo", operation_id="undo_change")
def undo(
    services: Services, identity: Approver, entry_id: Annotated[int, Path(description="Number of the change.", ge=1, le=2**62)]
) -> AuditModel:
    """Takes a change back. 409 where the same was changed since."""
    return _model(services.access.undo.undo(entry_id, identity.actor, identity.model_role))


def _model(entry: AuditEntry) -> AuditModel:
    return AuditModel(
        id=entry.entry_id,
        at=entry.at,
        who=entry.actor.name,
        via=entry.actor.via.value,
        via_detail=entry.actor.detail,
        action=entry.action,
        subject=entry.subject,
        detail=entry.detail,
        undoable=entry.undo is not None and entry.undone_at is None,
        undone_at=entry.undone_at,
        undone_by=entry.undone_by,
    )
