"""The API of services. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class ServicePage(TypedDict):
    """A page of services, by id."""

    items: list[ServiceModel]
    next: str | None


class ServiceModel(TypedDict):
    """A service of the catalogue."""

    service_id: str
    name: str
    name_zh: str
    group: str
    hosts: list[str]
    ports: list[int]
    part_of: str
    own: bool


class ServicesApi:
    """Operations of services."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_services(
        self, *, after: str | None = None, limit: int | None = None, group: str | None = None
    ) -> Answer[ServicePage]:
        """Returns the services by id."""
        return self._transport.send(Call("GET", "/api/v1/services", query={"after": after, "limit": limit, "group": group}))

    def get_service(self, service_id: str) -> Answer[ServiceModel]:
        """Returns a service."""
        return self._transport.send(Call("GET", "/api/v1/services/{service_id}", parameters={"service_id": service_id}))

    def get_service_icon(self, service_id: str) -> Answer[bytes]:
        """Returns the icon of a service, as SVG."""
        return self._transport.send(Call("GET", "/api/v1/services/{service_id}/icon", parameters={"service_id": service_id}))
