"""The database: what is small and changes. SQLite in WAL mode by default, PostgreSQL by its URL, the same code for both.

Alone imports SQLAlchemy and alembic. Every failure of the database leaves this room as a `StoreError` with one sentence.
"""

from gatewayfilter.store.sql.schema_version import SchemaStatus, schema_status, upgrade
from gatewayfilter.store.store import Store

__all__ = ["SchemaStatus", "Store", "schema_status", "upgrade"]
