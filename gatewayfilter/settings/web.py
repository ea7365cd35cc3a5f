"""Settings of sections `[web]` and `[web.oidc]`."""

import re
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from gatewayfilter.settings.base import Listen, Section, split_address

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1", ""})


def is_provider_url(text: str) -> bool:
    """Returns whether an address may be one of a provider: with TLS, on loopback also without."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    return secure and bool(parts.hostname) and "@" not in parts.netloc and is_plain(text) and len(text) <= 2_000


def is_loopback(host: str) -> bool:
    """Returns whether a host is this machine by its name or address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_plain(text: str) -> bool:
    """Returns whether a text consists of printable ASCII without spaces."""
    return text.isascii() and text.isprintable() and " " not in text


class WebTls(StrEnum):
    """Whether the dashboard is served with TLS."""

    AUTO = "auto"
    """Without on loopback, with anywhere else."""
    ON = "on"
    OFF = "off"


class PasswordUse(StrEnum):
    """Who may log in with a password where there is single sign-on."""

    EVERYONE = "everyone"
    ADMINS = "admins"
    """Admins alone: they get in when the provider is down."""


class OidcSettings(Section):
    """Single sign-on by OpenID Connect. It is off without an issuer."""

    issuer: str = ""
    """The provider's issuer, as its discovery document names it; empty for no single sign-on."""
    client_id: str = ""
    """Identifier of the dashboard at the provider."""
    client_secret: SecretStr = SecretStr("")
    """Secret of the dashboard at the provider, by the environment alone; a public client has none."""
    client_secret_file: Path | None = None
    """File with that secret in its first line, in place of `web.oidc.client_secret`."""
    name: str = Field(default="", max_length=40)
    """Name of the provider on the log-in page."""
    base_url: str = ""
    """Address of the dashboard in browsers, as `https://filter.lan:8081`; without one that of the request."""
    ca: Path | None = None
    """Certificates (PEM) that are trusted for the provider, in place of the system's."""
    scopes: tuple[str, ...] = ("profile",)
    """What is requested of the provider beside `openid`."""
    claim: str = "groups"
    """The claim that decides about roles; a dot leads into an object (`realm_access.roles`)."""
    admin_values: tuple[str, ...] = ()
    """Values of the claim that make an admin."""
    approver_values: tuple[str, ...] = ()
    """Values of the claim that make an approver."""
    viewer_values: tuple[str, ...] = ()
    """Values of the claim that make a viewer."""
    new_accounts: bool = False
    """Whether people without an account get one at their first log-in, if a value of the claim gives a role."""
    passwords: PasswordUse = PasswordUse.EVERYONE
    """Who may log in with a password, too: `everyone` or `admins`."""

    @property
    def is_on(self) -> bool:
        """Whether there is single sign-on."""
        return bool(self.issuer)

    @property
    def maps_roles(self) -> bool:
        """Whether the provider decides about roles."""
        return bool(self.admin_values or self.approver_values or self.viewer_values)

    @field_validator("issuer")
    @classmethod
    def _is_issuer(cls, value: str) -> str:
        if value and (not is_provider_url(value) or set(value) & set("?#")):
            raise ValueError("must be an address that begins with https:// (http:// on loopback alone), without a query")
        return value

    @field_validator("base_url")
    @classmethod
    def _is_base(cls, value: str) -> str:
        parts = urlsplit(value)
        wrong = parts.scheme not in {"http", "https"} or not parts.netloc or parts.path.strip("/") or "@" in parts.netloc
        if value and (wrong or parts.query or parts.fragment or not is_plain(value)):
            raise ValueError("must be an address without a path, as https://filter.lan:8081")
        return value.rstrip("/")

    @field_validator("scopes")
    @classmethod
    def _are_scopes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(scope and is_plain(scope) and not set(scope) & set('"\\') for scope in value):
            raise ValueError("must be names of scopes")
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> "OidcSettings":
        if self.issuer and not self.client_id:
            raise ValueError("an issuer needs a client_id")
        if self.client_secret.get_secret_value() and self.client_secret_file is not None:
            raise ValueError("client_secret and client_secret_file exclude each other")
        if self.new_accounts and not self.maps_roles:
            raise ValueError("new_accounts needs admin_values, approver_values or viewer_values")
        return self


class WebSettings(Section):
    """The dashboard and its API."""

    listen: Listen = "127.0.0.1:8081"
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
    oidc: OidcSettings = OidcSettings()
    """Single sign-on by OpenID Connect."""

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
