"""`GET /api/v1/status`: the state of the filter."""

from typing import Annotated

from pydantic import BaseModel, Field

from gatewayfilter import __version__
from gatewayfilter.use_cases.filter_status import filter_status
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/status", tags=["status"])


class AttentionModel(BaseModel):
    """Something that needs attention."""

    sentence: Annotated[str, Field(description="What is wrong.")]
    command: Annotated[str, Field(description="The command that mends or shows it.")]


class StatusModel(BaseModel):
    """The state of the filter."""

    version: Annotated[str, Field(description="Of the program.")]
    running: Annotated[bool, Field(description="Whether the filter runs on this state folder.")]
    since: Annotated[float, Field(description="Unix seconds of its start, 0 when it does not run.")]
    listen: Annotated[str, Field(description="Address of the proxy.")]
    workers_serving: Annotated[int, Field(description="Proxy workers that serve.")]
    workers_expected: Annotated[int, Field(description="Proxy workers that should serve.")]
    requests_today: Annotated[int, Field(description="Decisions since midnight by the machine's clock.")]
    blocked_today: Annotated[int, Field(description="Blocked among them.")]
    reviews: Annotated[int, Field(description="Learned pages that wait for a person.")]
    requests: Annotated[int, Field(description="Requests to unblock that wait for a person.")]
    attention: Annotated[list[AttentionModel], Field(description="What needs attention; empty when all is well.")]


@router.get("", operation_id="get_status")
def status(services: Services, _: Viewer) -> StatusModel:
    """Returns the state of the filter."""
    found = filter_status(services.settings, services.store, services.clock())
    return StatusModel(
        version=__version__,
        running=found.running,
        since=found.since,
        listen=found.listen,
        workers_serving=found.workers.serving,
        workers_expected=found.workers.expected,
        requests_today=found.today.requests,
        blocked_today=found.today.blocked,
        reviews=found.reviews,
        requests=found.requests,
        attention=[AttentionModel(sentence=item.words, command=item.mend) for item in found.attention],
    )
