"""`/audit`: who changed what, and its undo."""

from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import RedirectResponse, Response

from gatewayfilter.web.access.changes import undo_url
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Approver
from gatewayfilter.web.access.redirects import own_path
from gatewayfilter.web.rendering.pages import is_partial, render
from gatewayfilter.web.routers import PageRouter

router = PageRouter()

_ROWS: Final = 50


@router.get("/audit")
def show(
    request: Request,
    services: Services,
    _: Admin,
    who: Annotated[str, Query(max_length=200)] = "",
    action: Annotated[str, Query(max_length=48)] = "",
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
) -> Response:
    """Shows the entries, the newest first."""
    found = services.store.audit.page(before=before, limit=_ROWS + 1, who=who, action=action)
    entries, older = found[:_ROWS], ""
    if len(found) > _ROWS:
        state = {"who": who, "action": action, "before": entries[-1].entry_id}
        older = f"/audit?{urlencode({key: value for key, value in state.items() if value})}"
    first = f"/audit?{urlencode({'who': who, 'action': action})}" if before else ""
    return render(
        request, "system/audit.html", active="audit", entries=entries, who=who, action=action, newer=first, older=older,
        undo_url=undo_url,
    )  # fmt: skip


@router.post("/audit/{entry_id}/undo")
def undo(request: Request, services: Services, identity: Approver, entry_id: int) -> Response:
    """Takes a change back. The answer offers to make it again."""
    entry = services.access.undo.undo(entry_id, identity.actor, identity.model_role)
    if not is_partial(request):
        return RedirectResponse(own_path(request.query_params.get("next", "/audit")), 303)
    answer = render(request, "system/_undone.html", entry=entry)
    answer.headers["hx-trigger"] = "undone"
    return answer
