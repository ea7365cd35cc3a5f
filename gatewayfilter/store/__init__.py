"""The database of small, changing data. SQLite in WAL mode by default, PostgreSQL by its URL, the same code for both.

The only package that imports SQLAlchemy and alembic. Every database error is raised as a `StoreError` with one sentence.
"""

from gatewayfilter.store.backup.upgrade_copies import go_back, newest_usable_copy
from gatewayfilter.store.repositories.crawling.frontier_holds import host_of_queued
from gatewayfilter.store.sql.schema_version import SchemaStatus, faults_of, schema_status, upgrade
from gatewayfilter.store.store import Store

__all__ = ["SchemaStatus", "Store", "faults_of", "go_back", "host_of_queued", "newest_usable_copy", "schema_status", "upgrade"]
