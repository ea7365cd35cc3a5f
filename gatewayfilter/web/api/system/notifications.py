"""`/api/v1/notifications`: the channels of messages to the operator."""

from typing import Annotated

from pydantic import BaseModel, Field

from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/notifications", tags=["notifications"])


class ChannelModel(BaseModel):
    """A channel that is set up."""

    name: Annotated[str, Field(description="webhook, mail, ntfy or command.")]
    used: Annotated[bool, Field(description="Whether a message was tried.")]
    sent_at: Annotated[float, Field(description="Unix seconds of the last message; 0 for none.")]
    failures: Annotated[int, Field(description="Tries in a row that failed.")]
    failing_since: Annotated[float, Field(description="Unix seconds of the first of these; 0 for none.")]
    error: Annotated[str, Field(description="Why the last try failed.")]


class ChannelsModel(BaseModel):
    """The channels that are set up."""

    items: Annotated[list[ChannelModel], Field(description="By name.")]


class SentModel(BaseModel):
    """A test message."""

    channel: Annotated[str, Field(description="By which it was sent.")]
    sent: Annotated[bool, Field(description="Whether the channel took it.")]
    error: Annotated[str, Field(description="Why not.")]


class SentList(BaseModel):
    """Test messages."""

    items: Annotated[list[SentModel], Field(description="One for each channel; empty where none is set up.")]


@router.get("/channels", operation_id="list_notification_channels")
def list_channels(services: Services, _: Viewer) -> ChannelsModel:
    """Returns the channels that are set up, and whether messages arrive."""
    from gatewayfilter.use_cases.operation.notifications import channel_states  # noqa: PLC0415  with the channels

    items = [
        ChannelModel(
            name=name,
            used=state is not None,
            sent_at=state.sent_at if state else 0.0,
            failures=state.failures if state else 0,
            failing_since=state.failing_since if state else 0.0,
            error=state.error if state else "",
        )
        for name, state in channel_states(services.settings, services.store).items()
    ]
    return ChannelsModel(items=items)


@router.post("/test", operation_id="send_test_notification")
def send_test(services: Services, identity: Admin) -> SentList:
    """Sends a test message by each channel now."""
    sent: dict[str, str] = services.fetching.run(
        "gatewayfilter.use_cases.operation.notifications:send_test", services.settings, services.clock()
    )
    record(services, identity, "notification.tested", ", ".join(sent))
    return SentList(items=[SentModel(channel=name, sent=not error, error=error) for name, error in sent.items()])
