"""`/api/v1/backup` and `/api/v1/restore`: everything into one file, and back."""

from typing import Annotated

from fastapi import File, Response, UploadFile
from pydantic import BaseModel, Field

from gatewayfilter.use_cases.backup import KindChanges
from gatewayfilter.use_cases.backup.transfers import made_backup, restored, shown_changes
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter(tags=["backup"])


class BackupModel(BaseModel):
    """What a backup holds."""

    log: Annotated[bool, Field(description="With the log of decisions.")] = False
    passphrase: Annotated[
        str, Field(max_length=1000, description="Encrypts the certificate authority, which is left out without one.")
    ] = ""


class KindModel(BaseModel):
    """Changes of one kind."""

    kind: Annotated[str, Field(description="What was changed.")]
    added: Annotated[int, Field(description="Added.")]
    changed: Annotated[int, Field(description="Changed.")]
    removed: Annotated[int, Field(description="Removed.")]


class RestoredModel(BaseModel):
    """What a restore has changed, or would change."""

    changes: Annotated[list[KindModel], Field(description="By kind.")]
    safety_copy: Annotated[str, Field(description="Path of the backup of the state before; empty for a preview.")]


@router.post("/backup", operation_id="make_backup", response_class=Response)
def backup(services: Services, identity: Admin, body: BackupModel) -> Response:
    """Returns a backup of everything, made while the filter runs."""
    made = made_backup(services.store, services.loaded, with_log=body.log, passphrase=body.passphrase)
    record(services, identity, "backup.downloaded", f"{made.report.size_bytes} bytes")
    with made:
        return Response(made.file.read(), media_type="application/octet-stream")


@router.post("/restore/preview", operation_id="preview_restore")
def preview(services: Services, _: Admin, file: Annotated[UploadFile, File(description="A backup.")]) -> RestoredModel:
    """Returns what a restore would change."""
    return _model(shown_changes(services.store, services.loaded, file.file), "")


@router.post("/restore", operation_id="restore_backup")
def restore(services: Services, identity: Admin, file: Annotated[UploadFile, File(description="A backup.")]) -> RestoredModel:
    """Restores a backup: all of it, or nothing. The certificate authority is restored by the command alone."""
    report = restored(services.store, services.loaded, file.file)
    record(services, identity, "backup.restored", (file.filename or "")[:100])
    return _model(report.changes, str(report.safety_copy))


def _model(changes: list[KindChanges], safety_copy: str) -> RestoredModel:
    kinds = [KindModel(kind=one.kind, added=one.added, changed=one.changed, removed=one.removed) for one in changes]
    return RestoredModel(changes=kinds, safety_copy=safety_copy)
