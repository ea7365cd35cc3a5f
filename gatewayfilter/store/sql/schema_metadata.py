"""What all tables of the schema share: their metadata, and the type of numbers that the database counts."""

from sqlalchemy import BigInteger, Integer, MetaData

SERIAL = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in an INTEGER primary key."""

METADATA = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"})
