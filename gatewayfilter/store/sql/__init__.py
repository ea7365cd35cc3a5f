"""SQLAlchemy: engine, schema, migrations' version, dialect differences."""
