"""Backup and restore of everything that people decided and that was learned."""

from gatewayfilter.use_cases.backup.archive_reader import Archive
from gatewayfilter.use_cases.backup.backing_up import BackupReport, Wanted, back_up
from gatewayfilter.use_cases.backup.restore_plan import KindChanges
from gatewayfilter.use_cases.backup.restoring import Restore, RestoreReport, finish_interrupted

__all__ = [
    "Archive",
    "BackupReport",
    "KindChanges",
    "Restore",
    "RestoreReport",
    "Wanted",
    "back_up",
    "finish_interrupted",
]
