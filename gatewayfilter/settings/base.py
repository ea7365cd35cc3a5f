"""What all tables of the settings file have in common."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


def split_address(value: str) -> tuple[str, int]:
    """Splits `HOST:PORT`; an IPv6 host stands in brackets.

    Raises:
        ValueError: not of that form.
    """
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535 or not host or (":" in host and not host.startswith("[")):
        raise ValueError(f"must be HOST:PORT, not {value!r}")
    return host.strip("[]"), int(port)


def _checked_listen(value: str) -> str:
    if value:
        split_address(value)
    return value


def _checked_networks(value: tuple[str, ...]) -> tuple[str, ...]:
    for network in value:
        ip_network(network)
    return value


Listen = Annotated[str, AfterValidator(_checked_listen)]
"""An address `HOST:PORT` to listen on; empty means that nothing listens."""
Networks = Annotated[tuple[str, ...], AfterValidator(_checked_networks)]
"""IP networks in CIDR notation; a single address is one of its own."""


class Section(BaseModel):
    """A table of the settings file: frozen, and no other keys than these."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)
