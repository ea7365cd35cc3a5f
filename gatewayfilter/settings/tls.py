"""Settings of section `[tls]`."""

from enum import StrEnum

from pydantic import Field

from gatewayfilter.settings.base import Section


class DenyRule(StrEnum):
    """How an HTTPS connection to a blocked host is refused."""

    PAGE = "page"
    ALERT = "alert"


class TlsSettings(Section):
    """Which HTTPS connections are opened, passed through unread, or refused."""

    deny: DenyRule = DenyRule.PAGE
    """A blocked host: open the connection and show the block `page`, or end it with a TLS `alert`."""
    splice: bool = True
    """Whether the hosts of splice lists and of your own splice entries pass through unread."""
    pinned_apps: bool = True
    """Whether apps that accept no other certificate than their maker's are noticed and passed through unread."""
    pinned_apps_after: int = Field(default=3, ge=2, le=100)
    """After how many broken-off connections of one device to one name, within ten minutes."""
    pinned_apps_days: float = Field(default=7.0, gt=0, le=365)
    """How long that lasts, in days."""
    pinned_apps_per_client: int = Field(default=100, ge=1, le=1000)
    """For how many names at once a device can have that."""
