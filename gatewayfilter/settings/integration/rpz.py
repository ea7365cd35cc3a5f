"""Settings of section `[rpz]`."""

import re
from base64 import b64decode
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from gatewayfilter.settings.base import Listen, Networks, Section, split_address

_ZONE = re.compile(r"(?=.{1,100}$)[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_-]{1,63})*")


class RpzSettings(Section):
    """A response policy zone of blocked hosts for resolvers."""

    listen: Listen = ""
    """Address from which resolvers transfer the zone, TCP and UDP, as `127.0.0.1:5353`; empty means that nothing listens."""
    zone: str = "gatewayfilter.rpz"
    """Name of the zone."""
    notify: tuple[str, ...] = ()
    """Resolvers that are told of changes (NOTIFY), as `127.0.0.1:53`."""
    allow_networks: Networks = ()
    """Networks of resolvers that may transfer the zone besides this machine, as `192.0.2.0/28`."""
    tsig_name: str = ""
    """Name of the TSIG key (hmac-sha256) that transfers have to be signed by; empty for none."""
    tsig_secret: SecretStr = SecretStr("")
    """The key, base64; given by the environment alone, or by `rpz.tsig_file`."""
    tsig_file: Path | None = None
    """File with the key, base64."""
    file: Path | None = None
    """File that the zone is written to, for resolvers that read one; empty for none."""
    reload: tuple[str, ...] = ()
    """Program with its arguments that is run, without a shell, when `rpz.file` was written."""
    file_every_s: float = Field(default=1.0, ge=0.2, le=3_600.0)
    """Shortest time between two writes of `rpz.file`, in seconds; a large zone takes longer."""

    @field_validator("zone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        value = value.rstrip(".").lower()
        if _ZONE.fullmatch(value) is None:
            raise ValueError("no name of a zone")
        return value

    @field_validator("notify")
    @classmethod
    def _are_resolvers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for resolver in value:
            split_address(resolver)
        return value

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        secret = self.tsig_secret.get_secret_value()
        if bool(self.tsig_name) != bool(secret or self.tsig_file):
            raise ValueError("rpz.tsig_name and rpz.tsig_secret, or rpz.tsig_file, belong together")
        b64decode(secret, validate=True)
        if self.reload and self.file is None:
            raise ValueError("rpz.reload needs rpz.file")
        return self
