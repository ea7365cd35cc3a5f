"""The API of session. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class SessionModel(TypedDict):
    """Who sends requests."""

    name: str
    role: str
    language: str
    csrf: str


class LogInModel(TypedDict):
    """A log-in."""

    name: str
    password: str
    code: NotRequired[str]


class SessionApi:
    """Operations of session."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_session(self) -> Answer[SessionModel]:
        """Returns who sends the request."""
        return self._transport.send(Call("GET", "/api/v1/session"))

    def create_session(self, body: LogInModel) -> Answer[SessionModel]:
        """Logs in, and sets the cookie of a session. 401 for a wrong name, password or code; 429 after too many of them."""
        return self._transport.send(Call("POST", "/api/v1/session", body=body))

    def delete_session(self) -> Answer[bytes]:
        """Ends the session of the cookie."""
        return self._transport.send(Call("DELETE", "/api/v1/session"))
