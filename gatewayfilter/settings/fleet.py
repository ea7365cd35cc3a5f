"""Settings of section `[fleet]`."""

from enum import StrEnum
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from gatewayfilter.settings.base import Listen, Section
from gatewayfilter.settings.web import is_provider_url


class Shared(StrEnum):
    """What travels from a publisher to its followers besides the lists."""

    RULES = "rules"
    """Manual rules."""
    POLICIES = "policies"
    """Groups, policies, schedules and quotas, which refer to each other."""
    CLIENTS = "clients"
    LEARNED = "learned"
    """Learned entries with their evidence: addresses that people at the publisher visited."""


class FleetSettings(Section):
    """A fleet of gateways: one publishes snapshots, others follow it."""

    listen: Listen = ""
    """Publisher: address for followers, as `0.0.0.0:8443`; empty means that nothing listens."""
    certificate: Path | None = None
    """Publisher: certificate of `fleet.listen` with its chain, PEM; empty means one by the filter's authority."""
    certificate_key: Path | None = None
    """Publisher: key of `fleet.certificate`, PEM."""
    names: tuple[str, ...] = ()
    """Publisher: host names and addresses that followers reach it by, for the certificate of the filter's authority."""
    share: tuple[Shared, ...] = (Shared.RULES, Shared.POLICIES)
    """Publisher: what travels besides the lists: `rules`, `policies`, `clients`, `learned`."""
    locked_groups: tuple[str, ...] = ()
    """Publisher: groups of manual rules that outrank rules of followers; `*` for all."""
    locked_policies: tuple[str, ...] = ()
    """Publisher: names of policies and groups that followers cannot change; `*` for all."""
    valid_h: float = Field(default=0.0, ge=0.0, le=8_760.0)
    """Publisher: hours after which followers refuse a manifest; it is renewed at half of them. 0 for never."""
    follow: str = ""
    """Follower: address of the publisher, as `https://filter.example:8443`; empty means that it follows none."""
    key: str = ""
    """Follower: public key of the publisher, as `fleet key` prints it there."""
    token: SecretStr = SecretStr("")
    """Follower: token by `fleet follower add` on the publisher; given by the environment alone, or by `fleet.token_file`."""
    token_file: Path | None = None
    """Follower: file with the token."""
    ca_file: Path | None = None
    """Follower: certificates, PEM, that the publisher's is checked with; empty means those of the system."""
    poll_s: float = Field(default=60.0, ge=1.0, le=86_400.0)
    """Follower: seconds between two polls, a quarter more or less; longer after failures."""
    max_mb: int = Field(default=2_048, ge=1, le=65_536)
    """Follower: largest snapshot accepted, in megabytes."""

    @field_validator("follow")
    @classmethod
    def _is_publisher(cls, value: str) -> str:
        if value and (not is_provider_url(value) or urlsplit(value).query or urlsplit(value).fragment):
            raise ValueError("must be an address with https://, on loopback also http://, without a name, a query and a fragment")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if self.follow and not self.key:
            raise ValueError("fleet.follow needs fleet.key, the public key of the publisher")
        if self.follow and self.listen:
            raise ValueError("fleet.listen and fleet.follow exclude each other: a follower does not publish again")
        if (self.certificate is None) != (self.certificate_key is None):
            raise ValueError("fleet.certificate and fleet.certificate_key belong together")
        return self
