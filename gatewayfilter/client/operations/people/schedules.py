"""The API of schedules. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class SchedulePage(TypedDict):
    """A page of schedules, by name."""

    items: list[ScheduleModel]
    next: str | None


class ScheduleModel(TypedDict):
    """A schedule."""

    name: str
    policy: str
    effect: Literal["block-all", "block-category", "allow-category", "use-policy", "block-service", "allow-service"]
    target: str
    windows: list[WindowModel]
    timezone: str


class WindowModel(TypedDict):
    """A daily window in wall-clock time. It belongs to the day on which it begins."""

    begin: str
    end: str
    days: list[str]


class NewSchedule(TypedDict):
    """A schedule to add."""

    policy: str
    effect: Literal["block-all", "block-category", "allow-category", "use-policy", "block-service", "allow-service"]
    target: NotRequired[str]
    windows: list[WindowModel]
    timezone: NotRequired[str]
    name: str


class ScheduleBody(TypedDict):
    """What a schedule does, and when."""

    policy: str
    effect: Literal["block-all", "block-category", "allow-category", "use-policy", "block-service", "allow-service"]
    target: NotRequired[str]
    windows: list[WindowModel]
    timezone: NotRequired[str]


class SchedulesApi:
    """Operations of schedules."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_schedules(
        self, *, after: str | None = None, limit: int | None = None, policy: str | None = None
    ) -> Answer[SchedulePage]:
        """Returns the schedules by name."""
        return self._transport.send(Call("GET", "/api/v1/schedules", query={"after": after, "limit": limit, "policy": policy}))

    def add_schedule(self, body: NewSchedule) -> Answer[ScheduleModel]:
        """Adds a schedule. 409 when the name is taken."""
        return self._transport.send(Call("POST", "/api/v1/schedules", body=body))

    def get_schedule(self, name: str) -> Answer[ScheduleModel]:
        """Returns a schedule."""
        return self._transport.send(Call("GET", "/api/v1/schedules/{name}", parameters={"name": name}))

    def replace_schedule(self, name: str, body: ScheduleBody, *, if_match: str = "") -> Answer[ScheduleModel]:
        """Puts a schedule in place of the one of its name."""
        return self._transport.send(
            Call("PUT", "/api/v1/schedules/{name}", parameters={"name": name}, headers={"if-match": if_match}, body=body)
        )

    def remove_schedule(self, name: str, *, if_match: str = "") -> Answer[bytes]:
        """Removes a schedule."""
        return self._transport.send(
            Call("DELETE", "/api/v1/schedules/{name}", parameters={"name": name}, headers={"if-match": if_match})
        )
