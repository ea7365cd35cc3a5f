"""Settings of section `[helper]`: squid's helpers."""

import re
from pathlib import Path

from pydantic import Field, field_validator

from gatewayfilter.settings.base import Section

_PAGE = re.compile(r"https?://[\x21\x23-\x5b\x5d-\x7e]+")
_LONGEST_PATH = 100
"""A Unix socket's address has room for 107 bytes."""


class HelperSettings(Section):
    """Decisions for squid by its helper protocols."""

    socket: Path | None = None
    """Unix socket over which helper processes ask for decisions, as `/run/gatewayfilter/squid/helper.sock`; empty for none."""
    group: str = ""
    """Group whose members may use `helper.socket`, as squid's `proxy`; empty means the filter's own user alone."""
    ttl_s: int = Field(default=0, ge=0, le=3_600)
    """Seconds for which a helper process may reuse an answer; answers that are reused are not logged. 0 for none."""
    timeout_ms: int = Field(default=2_000, ge=50, le=60_000)
    """How long a request may wait for its decision, in milliseconds; then `proxy.on_error` decides."""
    block_url: str = ""
    """Block page of url_rewrite, as `http://filter.example/blocked`; `url`, `reason`, `category` and `client` are added."""

    @field_validator("socket", mode="before")
    @classmethod
    def _may_be_empty(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("socket")
    @classmethod
    def _fits(cls, value: Path | None) -> Path | None:
        if value is not None and (not value.is_absolute() or len(str(value).encode()) > _LONGEST_PATH):
            raise ValueError(f"must be an absolute path of at most {_LONGEST_PATH} bytes")
        return value

    @field_validator("block_url")
    @classmethod
    def _is_page(cls, value: str) -> str:
        if value and _PAGE.fullmatch(value) is None:
            raise ValueError("must be an address with http:// or https://, without blanks and quotation marks")
        return value
