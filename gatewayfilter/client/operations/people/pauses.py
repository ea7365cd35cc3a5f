"""The API of pauses. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class PauseList(TypedDict):
    """All pauses in force, those that end first before others."""

    items: list[PauseModel]


class PauseModel(TypedDict):
    """A pause in force."""

    scope: Literal["all", "group", "client"]
    target: str
    until: float
    harm_too: bool


class NewPause(TypedDict):
    """A pause to start, in place of an earlier one of the same scope."""

    scope: NotRequired[Literal["all", "group", "client"]]
    target: NotRequired[str]
    minutes: float
    harm_too: NotRequired[bool]


class PausesApi:
    """Operations of pauses."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_pauses(self) -> Answer[PauseList]:
        """Returns who is paused now, and until when."""
        return self._transport.send(Call("GET", "/api/v1/pauses"))

    def start_pause(self, body: NewPause) -> Answer[PauseModel]:
        """Stops filtering for a while. It ends by itself."""
        return self._transport.send(Call("POST", "/api/v1/pauses", body=body))

    def end_pause(self, *, scope: Literal["all", "group", "client"] | None = None, target: str | None = None) -> Answer[bytes]:
        """Ends a pause. 404 when there is none."""
        return self._transport.send(Call("DELETE", "/api/v1/pauses", query={"scope": scope, "target": target}))
