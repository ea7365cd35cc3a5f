"""Settings of section `[log]`."""

from enum import StrEnum

from pydantic import Field, field_validator

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import MatcherKind, parse_matcher
from gatewayfilter.settings.base import Section
from gatewayfilter.urls import canonical_host


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


class LogFormat(StrEnum):
    """How the processes write to standard error."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class LogSettings(Section):
    """What is written down."""

    level: LogLevel = LogLevel.INFO
    """How much the processes write to standard error."""
    format: LogFormat = LogFormat.AUTO
    """How they write it: `text`, `json` (one object a line), or `auto`: text on a terminal, JSON elsewhere."""
    privacy: LogPrivacy = LogPrivacy.NO_QUERY
    """What the decision log keeps of a URL: `full`, `no-query` (up to its `?`), `host` or `off` (nothing is logged)."""
    hash_clients: bool = False
    """Whether clients are logged as a keyed hash instead of their address."""
    ignored_clients: tuple[str, ...] = ()
    """Clients whose decisions are not logged: addresses, networks, and proxy users as `user:NAME`."""
    ignored_hosts: tuple[str, ...] = ()
    """Hosts about which no decisions are logged; the hosts below them count as well."""
    retention_days: float = Field(default=30.0, gt=0)
    """Decisions older than this many days are removed."""
    retention_mb: float = Field(default=500.0, gt=0)
    """The decision log is cut from its oldest end above this size, in MB on disk, indexes included."""

    @field_validator("ignored_clients")
    @classmethod
    def _are_matchers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                matcher = parse_matcher(text)
            except PolicyError as error:
                raise ValueError(str(error)) from error
            if matcher.kind is MatcherKind.MAC:
                raise ValueError(f"must be addresses, networks or user:NAME, not {text!r}")
        return value

    @field_validator("ignored_hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(canonical_host(text.removeprefix("*.")) for text in value)
