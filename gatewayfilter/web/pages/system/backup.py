"""`/backup`: everything into one file, and back."""

import time
from typing import Annotated

from fastapi import File, Form, Request, UploadFile
from fastapi.responses import Response, StreamingResponse

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.use_cases.backup import KindChanges, RestoreReport
from gatewayfilter.use_cases.backup.transfers import made_backup, restored, shown_changes
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter

router = PageRouter()


@router.get("/backup")
def page(request: Request, _: Admin) -> Response:
    """Shows the forms."""
    return _page(request)


@router.post("/backup/download")
def download(
    services: Services,
    identity: Admin,
    log: Annotated[bool, Form()] = False,  # noqa: FBT002  a checkbox
    passphrase: Annotated[str, Form(max_length=1000)] = "",
) -> StreamingResponse:
    """Sends a backup; with a passphrase the certificate authority is in it, encrypted."""
    made = made_backup(services.store, services.loaded, with_log=log, passphrase=passphrase)
    with_ca = "with the authority" if made.report.with_ca else ""
    record(services, identity, "backup.downloaded", f"{made.report.size_bytes} bytes", with_ca)
    name = f"gatewayfilter-{time.strftime('%Y%m%d-%H%M')}.gfbackup"
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(made.report.size_bytes)}
    return StreamingResponse(made.blocks(), media_type="application/octet-stream", headers=headers)


@router.post("/backup/restore")
def restore(
    request: Request,
    services: Services,
    identity: Admin,
    file: Annotated[UploadFile, File()],
    step: Annotated[str, Form(pattern="preview|restore")] = "preview",
) -> Response:
    """Shows what a backup would change, or restores it. The certificate authority is restored by the command alone."""
    try:
        if step == "preview":
            changes = shown_changes(services.store, services.loaded, file.file)
            return _page(request, changes=changes, name=file.filename or "")
        report = restored(services.store, services.loaded, file.file)
    except GatewayFilterError as error:
        return _page(request, status=422, error=str(error))
    record(services, identity, "backup.restored", (file.filename or "")[:100])
    return _page(request, changes=report.changes, report=report)


def _page(
    request: Request,
    *,
    status: int = 200,
    changes: list[KindChanges] | None = None,
    report: RestoreReport | None = None,
    name: str = "",
    error: str = "",
) -> Response:
    shown = None if changes is None else [one for one in changes if one.added or one.changed or one.removed]
    return render(request, "system/backup.html", status, active="backup", changes=shown, report=report, name=name, error=error)
