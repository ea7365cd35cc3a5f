"""Settings of section `[metrics]`."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from gatewayfilter.settings.base import Listen, Section


class MetricsSettings(Section):
    """Where Prometheus reads the counters, and where they are sent."""

    listen: Listen = ""
    """Address of `GET /metrics`, as `127.0.0.1:9190`; empty means that nothing listens."""

    otlp: str = ""
    """OpenTelemetry collector that gets the counters by OTLP over HTTP, as `http://127.0.0.1:4318`; empty for none."""
    otlp_every_s: float = Field(default=30.0, ge=1.0, le=3_600.0)
    """Seconds between two exports to `metrics.otlp`."""
    trace_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the logged decisions that `metrics.otlp` gets as traces, as `0.01`; 0 for none."""

    @model_validator(mode="after")
    def _has_collector(self) -> Self:
        if self.trace_share and not self.otlp:
            raise ValueError("metrics.trace_share needs metrics.otlp")
        return self

    @field_validator("otlp")
    @classmethod
    def _is_endpoint(cls, value: str) -> str:
        if value:
            parts = urlsplit(value)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None or parts.query:
                raise ValueError("not a URL as http://127.0.0.1:4318, without a name, a password and a query")
            _ = parts.port  # ValueError: no number
        return value
