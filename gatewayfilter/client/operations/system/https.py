"""The API of https. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class AuthoritiesModel(TypedDict):
    """The authority in force, and the next one."""

    current: AuthorityModel
    waiting: AuthorityModel | None


class AuthorityModel(TypedDict):
    """A certificate authority."""

    name: str
    sha256: str
    expires_at: float
    days_left: int


class RenewalModel(TypedDict):
    """A renewal."""

    step: Literal["same-key", "new-key", "activate"]


class PinnedAppModel(TypedDict):
    """A name that passes unread for a device."""

    client: str
    host: str
    learned_at: float
    expires_at: float
    failures: int


class RemovedModel(TypedDict):
    """A number of items that were removed."""

    removed: int


class HttpsApi:
    """Operations of https."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_authority(self) -> Answer[AuthoritiesModel]:
        """Returns what identifies the certificate authority."""
        return self._transport.send(Call("GET", "/api/v1/https/authority"))

    def download_certificate(
        self, *, form: Literal["pem", "der", "p12", "mobileconfig"] | None = None, waiting: bool | None = None
    ) -> Answer[bytes]:
        """Returns the certificate that devices install, never the key."""
        return self._transport.send(Call("GET", "/api/v1/https/certificate", query={"form": form, "waiting": waiting}))

    def renew_authority(self, body: RenewalModel) -> Answer[AuthorityModel]:
        """Renews the certificate authority; running workers take it when they are started again."""
        return self._transport.send(Call("POST", "/api/v1/https/authority/renew", body=body))

    def list_pinned_apps(self) -> Answer[list[PinnedAppModel]]:
        """Returns the apps that accept no certificate of the filter, the newest first; at most 2,000."""
        return self._transport.send(Call("GET", "/api/v1/https/pinned-apps"))

    def remove_pinned_app(self, host: str, *, client: str | None = None) -> Answer[RemovedModel]:
        """Has connections to a name decrypted again."""
        return self._transport.send(
            Call("DELETE", "/api/v1/https/pinned-apps/{host}", parameters={"host": host}, query={"client": client})
        )
