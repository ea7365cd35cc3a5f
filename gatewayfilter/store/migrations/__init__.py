"""Alembic migrations, run by `schema_version.py` from wherever the package is installed; there is no alembic.ini."""
