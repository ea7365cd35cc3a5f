"""What all tables of the settings file have in common."""

from pydantic import BaseModel, ConfigDict


def split_address(value: str) -> tuple[str, int]:
    """Splits `HOST:PORT`; an IPv6 host stands in brackets.

    Raises:
        ValueError: not of that form.
    """
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535 or not host or (":" in host and not host.startswith("[")):
        raise ValueError(f"must be HOST:PORT, not {value!r}")
    return host.strip("[]"), int(port)


class Section(BaseModel):
    """A table of the settings file: frozen, and no other keys than these."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)
