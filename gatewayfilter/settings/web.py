"""Settings of section `[web]`."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import Field, field_validator, model_validator

from gatewayfilter.settings.base import Section, split_address

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1", ""})


class WebTls(StrEnum):
    """Whether the dashboard is served with TLS."""

    AUTO = "auto"
    """Without on loopback, with anywhere else."""
    ON = "on"
    OFF = "off"


class WebSettings(Section):
    """The dashboard and its API."""

    listen: str = "127.0.0.1:8081"
    """Address of the dashboard at `/` and the API below `/api/v1`; empty means that nothing listens."""
    names: tuple[str, ...] = ()
    """Further host names under which the dashboard may be opened; addresses, `localhost` and this machine's name always may."""
    tls: WebTls = WebTls.AUTO
    """`auto` (TLS unless it listens on loopback), `on` or `off`."""
    certificate: Path | None = None
    """Certificate chain (PEM) for TLS; without one the filter's own authority issues one."""
    key: Path | None = None
    """Private key (PEM) of `web.certificate`."""
    session_hours: int = Field(default=168, ge=1, le=720)
    """How long a log-in lasts without a request."""

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value

    @field_validator("names")
    @classmethod
    def _are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name):
                raise ValueError(f"must be host names in lower case without port, not {name!r}")
        return value

    @model_validator(mode="after")
    def _has_both_files(self) -> "WebSettings":
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together")
        return self

    @property
    def uses_tls(self) -> bool:
        """Whether the dashboard is served with TLS."""
        host = split_address(self.listen)[0] if self.listen else ""
        return self.tls is WebTls.ON or (self.tls is WebTls.AUTO and host not in _LOOPBACK)
