"""The API of status. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


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


class StatusApi:
    """Operations of status."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_status(self) -> Answer[StatusModel]:
        """Returns the state of the filter."""
        return self._transport.send(Call("GET", "/api/v1/status"))
