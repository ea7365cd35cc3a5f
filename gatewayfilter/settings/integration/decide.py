"""Settings of section `[decide]`."""

from pathlib import Path
from typing import Self

from pydantic import SecretStr, model_validator

from gatewayfilter.settings.base import Listen, Section, split_address
from gatewayfilter.settings.web import is_loopback


class DecideSettings(Section):
    """Decisions over HTTP, for other proxies and for Envoy."""

    listen: Listen = ""
    """Address of `/decide` and `/authz/`, as `127.0.0.1:8082`; empty means that nothing listens."""
    token: SecretStr = SecretStr("")
    """What requests have to hold as `Authorization: Bearer`; needed beyond loopback; by the environment alone, or a file."""
    token_file: Path | None = None
    """File with the token."""

    @model_validator(mode="after")
    def _is_guarded(self) -> Self:
        if self.listen and not (self.token.get_secret_value() or self.token_file or is_loopback(split_address(self.listen)[0])):
            raise ValueError("decide.listen beyond loopback needs decide.token or decide.token_file")
        return self
