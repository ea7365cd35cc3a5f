"""Settings of section `[metrics]`."""

from pydantic import field_validator

from gatewayfilter.settings.base import Section, split_address


class MetricsSettings(Section):
    """Where Prometheus reads the counters."""

    listen: str = ""
    """Address of `GET /metrics`, as `127.0.0.1:9190`; empty means that nothing listens."""

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value
