"""The API of audit. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class AuditPage(TypedDict):
    """A page of changes."""

    items: list[AuditModel]
    next: str | None


class AuditModel(TypedDict):
    """A change that was made."""

    id: int
    at: float
    who: str
    via: str
    via_detail: str
    action: str
    subject: str
    detail: str
    undoable: bool
    undone_at: float | None
    undone_by: str


class AuditApi:
    """Operations of audit."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_audit(
        self, *, after: int | None = None, limit: int | None = None, who: str | None = None, action: str | None = None
    ) -> Answer[AuditPage]:
        """Returns changes, the newest first."""
        return self._transport.send(
            Call("GET", "/api/v1/audit", query={"after": after, "limit": limit, "who": who, "action": action})
        )

    def list_undoable(self) -> Answer[AuditPage]:
        """Returns the last ten changes that the account may take back, the newest first."""
        return self._transport.send(Call("GET", "/api/v1/audit/undoable"))

    def undo_change(self, entry_id: int) -> Answer[AuditModel]:
        """Takes a change back. 409 where the same was changed since."""
        return self._transport.send(Call("POST", "/api/v1/audit/{entry_id}/undo", parameters={"entry_id": entry_id}))
