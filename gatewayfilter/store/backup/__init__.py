"""Backup and restore of the tables, as rows that do not depend on the kind of database."""

from gatewayfilter.store.backup.sql_backup import RowSource, SqlBackup, TableChanges, TablesInSnapshot
from gatewayfilter.store.backup.tables import BACKED_UP, LEFT_OUT, BackedUpTable, Part

__all__ = ["BACKED_UP", "LEFT_OUT", "BackedUpTable", "Part", "RowSource", "SqlBackup", "TableChanges", "TablesInSnapshot"]
