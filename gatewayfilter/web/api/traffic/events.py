"""`/api/v1/events`: decisions as they are made, and what waits for a person, as server-sent events."""

import json
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Request
from fastapi.responses import StreamingResponse

from gatewayfilter.use_cases.traffic.live_log import LiveBatch
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.event_stream import STREAM_HEADERS, event, first_number, stream
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.access.log_conditions import Conditions
from gatewayfilter.web.api.traffic.log import DecisionModel
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.services import WebServices

router = ApiRouter("/events", tags=["log"])


@dataclass(frozen=True, slots=True)
class _Watch:
    """What the streams send: decisions as JSON, and what waits for a person."""

    services: WebServices

    @property
    def form(self) -> str:
        """JSON is the same for all readers."""
        return "json"

    def write(self, batch: LiveBatch) -> str:
        """Returns the event `decisions`."""
        clients = self.services.clients()
        items = [DecisionModel.of(number, record, clients).model_dump() for number, record in batch.records]
        return event("decisions", json.dumps({"items": items, "skipped": batch.skipped}), batch.reached)

    def state(self) -> str:
        """Returns the event `state`."""
        waiting = self.services.waiting()
        return event("state", json.dumps({"requests": waiting["requests"], "reviews": waiting["review"]}))


@router.get("", operation_id="watch_events", response_class=StreamingResponse)
def watch_events(
    request: Request,
    services: Services,
    _: Viewer,
    conditions: Conditions,
    last_event_id: Annotated[str, Header(max_length=20, description="Continues after this event.")] = "",
) -> StreamingResponse:
    """Sends `decisions` (`items` and the number of `skipped` ones) and `state` (waiting `requests` and `reviews`)."""
    query = conditions.query(services.clients(), services.clock(), services.zone)
    watch = _Watch(services)
    sent = stream(request, services.live_batches, query, watch, first_number(last_event_id), watch.state)
    return StreamingResponse(sent, media_type="text/event-stream", headers=STREAM_HEADERS)
