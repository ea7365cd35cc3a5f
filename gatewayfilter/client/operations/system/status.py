"""The API of status. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class FleetModel(TypedDict):
    """The state of a fleet as this machine sees it."""

    publishes: bool
    sequence: int
    exported_at: float
    followers: list[FollowerModel]
    follow: str
    in_force: int
    made_at: float
    contact_at: float
    fault: str
    trouble: str
    exceptions: list[str]


class FollowerModel(TypedDict):
    """A follower of this publisher, with its newest report."""

    name: str
    added_at: float
    reported_at: float
    program: str
    sequence: int
    age_s: int
    exceptions: int
    workers: int
    fault: str


class NewFollower(TypedDict):
    """A follower to admit."""

    name: str


class FollowerToken(TypedDict):
    """The token of a follower. It is told only now: a digest alone is kept."""

    name: str
    token: str


class StatusModel(TypedDict):
    """The state of the filter."""

    version: str
    running: bool
    since: float
    listen: str
    workers_serving: int
    workers_expected: int
    requests_today: int
    blocked_today: int
    reviews: int
    requests: int
    attention: list[AttentionModel]


class AttentionModel(TypedDict):
    """Something that needs attention."""

    sentence: str
    command: str


class DoctorModel(TypedDict):
    """The findings of the newest examination."""

    healthy: bool
    findings: list[FindingModel]
    examined_at: float
    complete: bool


class FindingModel(TypedDict):
    """The finding of a check."""

    level: Literal["ok", "note", "warning", "error"]
    check: str
    words: str
    mend: str


class StatusApi:
    """Operations of status."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_fleet(self) -> Answer[FleetModel]:
        """Returns the state of the fleet."""
        return self._transport.send(Call("GET", "/api/v1/fleet"))

    def add_follower(self, body: NewFollower) -> Answer[FollowerToken]:
        """Admits a follower of this publisher."""
        return self._transport.send(Call("POST", "/api/v1/fleet/followers", body=body))

    def remove_follower(self, name: str) -> Answer[bytes]:
        """Removes a follower: its token is refused at once."""
        return self._transport.send(Call("DELETE", "/api/v1/fleet/followers/{name}", parameters={"name": name}))

    def get_status(self) -> Answer[StatusModel]:
        """Returns the state of the filter."""
        return self._transport.send(Call("GET", "/api/v1/status"))

    def get_doctor(self) -> Answer[DoctorModel]:
        """Returns what the newest check of the installation found, and begins another one where that is a minute old."""
        return self._transport.send(Call("GET", "/api/v1/doctor"))
