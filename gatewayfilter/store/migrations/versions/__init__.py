"""One module a schema version, named for its number."""
