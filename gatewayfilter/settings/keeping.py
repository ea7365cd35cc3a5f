"""Settings of what is filtered, where lists come from, and what is kept."""

from enum import StrEnum

from pydantic import Field, field_validator

from gatewayfilter.settings.base import Section


class CosmeticScope(StrEnum):
    """What is hidden on pages."""

    OFF = "off"
    SPECIFIC = "specific"
    ALL = "all"


class LogPrivacy(StrEnum):
    """What the decision log keeps of a URL."""

    FULL = "full"
    NO_QUERY = "no-query"
    HOST = "host"
    OFF = "off"


class LogLevel(StrEnum):
    """How much the processes write to standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class StoreSettings(Section):
    """Where small, changing data lives."""

    url: str = ""
    """SQLAlchemy URL; empty means SQLite in the state folder; `postgresql+psycopg://…` needs the extra `postgres`."""


class FilterSettings(Section):
    """What is blocked."""

    disabled_categories: tuple[str, ...] = ()
    """Categories that do not block, although a list or the classifier names them."""
    cosmetic: CosmeticScope = CosmeticScope.SPECIFIC
    """What Adblock rules hide on pages: nothing, what names the site or is of a short list, or all (EasyList: +212 kB)."""
    replace: bool = True
    """Whether Adblock rules may change the text of responses (`$replace`) and take elements out of the HTML (`##^`)."""

    @field_validator("cosmetic", mode="before")
    @classmethod
    def _was_a_switch(cls, value: object) -> object:
        """Takes the words of earlier releases: on for all rules, off for none."""
        return {"true": CosmeticScope.ALL, "false": CosmeticScope.OFF}.get(str(value).lower(), value)


class SourceSettings(Section):
    """Lists from outside."""

    bundled: bool = True
    """Whether the starter lists that come with the program are active."""
    max_bytes: int = Field(default=256_000_000, ge=1_000)
    """Largest list accepted, decompressed, in bytes."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Longest time for one download, in seconds."""
    interval_h: float = Field(default=24.0, gt=0)
    """How often a subscription is fetched unless it has an interval of its own, in hours."""


class LogSettings(Section):
    """What is written down."""

    level: LogLevel = LogLevel.INFO
    """How much the processes write to standard error."""
    privacy: LogPrivacy = LogPrivacy.FULL
    """What the decision log keeps of a URL: `full`, `no-query`, `host` or `off` (nothing is logged)."""
    hash_clients: bool = False
    """Whether clients are logged as a keyed hash instead of their address."""
    retention_days: float = Field(default=30.0, gt=0)
    """Decisions older than this many days are removed."""
    retention_mb: float = Field(default=500.0, gt=0)
    """The decision log is cut from its oldest end above this size, in MB on disk, indexes included."""
