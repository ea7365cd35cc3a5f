"""The API of backup. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class BackupModel(TypedDict):
    """What a backup holds."""

    log: NotRequired[bool]
    passphrase: NotRequired[str]


class RestoredModel(TypedDict):
    """What a restore has changed, or would change."""

    changes: list[KindModel]
    safety_copy: str


class KindModel(TypedDict):
    """Changes of one kind."""

    kind: str
    added: int
    changed: int
    removed: int


class BackupApi:
    """Operations of backup."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def make_backup(self, body: BackupModel) -> Answer[bytes]:
        """Returns a backup of everything, made while the filter runs."""
        return self._transport.send(Call("POST", "/api/v1/backup", body=body))

    def preview_restore(self, body: bytes) -> Answer[RestoredModel]:
        """Returns what a restore would change."""
        return self._transport.send(Call("POST", "/api/v1/restore/preview", body=body, upload="file"))

    def restore_backup(self, body: bytes) -> Answer[RestoredModel]:
        """Restores a backup: all of it, or nothing. The certificate authority is restored by the command alone."""
        return self._transport.send(Call("POST", "/api/v1/restore", body=body, upload="file"))
