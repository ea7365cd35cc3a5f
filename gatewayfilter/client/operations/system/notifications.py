"""The API of notifications. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class ChannelsModel(TypedDict):
    """The channels that are set up."""

    items: list[ChannelModel]


class ChannelModel(TypedDict):
    """A channel that is set up."""

    name: str
    used: bool
    sent_at: float
    failures: int
    failing_since: float
    error: str


class SentList(TypedDict):
    """Test messages."""

    items: list[SentModel]


class SentModel(TypedDict):
    """A test message."""

    channel: str
    sent: bool
    error: str


class NotificationsApi:
    """Operations of notifications."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_notification_channels(self) -> Answer[ChannelsModel]:
        """Returns the channels that are set up, and whether messages arrive."""
        return self._transport.send(Call("GET", "/api/v1/notifications/channels"))

    def send_test_notification(self) -> Answer[SentList]:
        """Sends a test message by each channel now."""
        return self._transport.send(Call("POST", "/api/v1/notifications/test"))
