"""Settings of section `[store]`."""

from gatewayfilter.settings.base import Section


class StoreSettings(Section):
    """Where small, changing data lives."""

    url: str = ""
    """SQLAlchemy URL; empty means SQLite in the state folder; `postgresql+psycopg://…` needs the extra `postgres`."""
