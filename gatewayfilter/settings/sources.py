"""Settings of section `[sources]`."""

from pydantic import Field

from gatewayfilter.settings.base import Section


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
