"""The API of proxy-users. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class ProxyUserList(TypedDict):
    """The users of the proxy."""

    items: list[str]


class ProxyPassword(TypedDict):
    """A new password."""

    password: str


class ProxyUsersApi:
    """Operations of proxy-users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_proxy_users(self) -> Answer[ProxyUserList]:
        """Returns the names of the users."""
        return self._transport.send(Call("GET", "/api/v1/proxy-users"))

    def put_proxy_user(self, name: str, body: ProxyPassword) -> Answer[bytes]:
        """Adds a user, or changes the password of one. A running filter applies it within a second."""
        return self._transport.send(Call("PUT", "/api/v1/proxy-users/{name}", parameters={"name": name}, body=body))

    def remove_proxy_user(self, name: str) -> Answer[bytes]:
        """Removes a user."""
        return self._transport.send(Call("DELETE", "/api/v1/proxy-users/{name}", parameters={"name": name}))
