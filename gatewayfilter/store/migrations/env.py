"""Run by alembic: migrates over the connection, and in the transaction, that `schema_version.py` hands over."""

from alembic import context

from gatewayfilter.store.sql.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite alters a table by copying it
)
context.run_migrations()
