"""`/rules/files`: import of own rules with a preview, and their export."""

from typing import Annotated, Any, Final

from fastapi import File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse

from gatewayfilter.errors import GatewayFilterError, ListError
from gatewayfilter.model import ListAction
from gatewayfilter.use_cases.lists.rule_editing import RuleValues, rule_groups
from gatewayfilter.use_cases.lists.rule_transfer import (
    LARGEST_SMALL_FILE,
    exported_file,
    import_rules,
    preview_import,
    read_small_file,
    text_of,
)
from gatewayfilter.web.access.changes import changing
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.rendering.pages import render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()
_SHOWN: Final = 20
_TEMPLATE: Final = "lists/rule_files.html"
_EMPTY: Final[dict[str, Any]] = {"text": "", "action": ListAction.BLOCK, "group": "", "force": False, "error": "", "found": None}


@router.get("/rules/files")
def show(request: Request, services: Services, _: Admin) -> Response:
    """Shows the forms of import and export."""
    return render_early(request, _TEMPLATE, lambda: {"groups": _groups(services)}, active="rules", **_EMPTY)


@router.post("/rules/import")
def import_file(  # noqa: PLR0913, PLR0917  the fields of the form
    request: Request,
    services: Services,
    identity: Admin,
    file: Annotated[UploadFile | None, File()] = None,
    text: Annotated[str, Form()] = "",
    action: Annotated[ListAction, Form()] = ListAction.BLOCK,
    group: Annotated[str, Form(max_length=100)] = "",
    force: Annotated[str, Form(max_length=10)] = "",
    store: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Shows what an import would do, or does it."""
    context: dict[str, Any] = {"text": text, "action": action, "group": group, "force": bool(force)}
    try:
        if file is not None and file.filename:
            context["text"] = text = text_of(file.file, "the file", LARGEST_SMALL_FILE)
        if not text.strip():
            raise ListError("choose a file, or paste its text")
        found = read_small_file(text, RuleValues(action, group=group.strip()), force=bool(force))
        if store:
            with changing(services, identity, "rule.imported", f"{len(found.rules):,}"):
                import_rules(services.store, found.rules)
            return RedirectResponse("/rules", 303)
    except GatewayFilterError as error:
        return _page(request, services, 422, **context, error=str(error))
    preview = preview_import(services.store, found.rules)
    sample = {"shown": found.rules[:_SHOWN], "rejected": found.rejected[:_SHOWN]}
    return _page(request, services, **context, found=found, preview=preview, sample=sample)


@router.get("/rules/export")
def export(
    services: Services,
    _: Viewer,
    file_format: Annotated[str, Query(max_length=20)] = "json",
    action: Annotated[str, Query(max_length=10)] = "",
    group: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Returns rules as a file."""
    chosen = ListAction(action) if action in ListAction else None
    made = exported_file(services.store, file_format, chosen, group or None, services.clock())
    return Response(made.text, media_type=made.media_type, headers={"content-disposition": f'attachment; filename="{made.name}"'})


def _page(request: Request, services: WebServices, status: int = 200, **context: Any) -> Response:
    return render(request, _TEMPLATE, status, active="rules", groups=_groups(services), **{**_EMPTY, **context})


def _groups(services: WebServices) -> list[str]:
    return [group.group for group in rule_groups(services.store)]
