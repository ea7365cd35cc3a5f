"""`/api/v1/events`: decisions as they are made, and what waits for a person, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Header, Request
from fastapi.responses import StreamingResponse

from gatewayfilter.errors import StoreError
from gatewayfilter.model import LogQuery
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.event_stream import EVERY_S, LONGEST_S, STREAM_HEADERS, event
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.access.log_conditions import Conditions
from gatewayfilter.web.api.traffic.log import DecisionModel
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.services import WebServices

router = ApiRouter("/events", tags=["log"])

_STATE_EVERY: Final = 20
"""Rounds between two events of the state."""


@dataclass(frozen=True, slots=True)
class _Watch:
    """What a stream sends.

    Attributes:
        start: number of the decision after which it begins, 0 for now.
    """

    services: WebServices
    query: LogQuery
    start: int

    async def events(self, request: Request) -> AsyncIterator[str]:
        """Yields the stream until its time is over or the client is gone; the client connects again by itself."""
        reached = self.start or await asyncio.to_thread(self.services.live_log.newest)
        yield "retry: 2000\n\n"
        for round_number in range(int(LONGEST_S / EVERY_S)):
            if await request.is_disconnected():
                return
            try:
                if round_number % _STATE_EVERY == 0:
                    yield event("state", await asyncio.to_thread(self._state))
                reached, text = await asyncio.to_thread(self._decisions, reached)
            except StoreError:
                text = ": the database does not answer\n\n"
            yield text
            await asyncio.sleep(EVERY_S)

    def _decisions(self, reached: int) -> tuple[int, str]:
        batch = self.services.live_log.after(reached, self.query)
        if not batch.records and not batch.skipped:
            return batch.reached, ": \n\n"
        clients = self.services.clients()
        items = [DecisionModel.of(number, record, clients).model_dump() for number, record in batch.records]
        data = json.dumps({"items": items, "skipped": batch.skipped}, ensure_ascii=False)
        return batch.reached, event("decisions", data, batch.reached)

    def _state(self) -> str:
        store = self.services.store
        return json.dumps({"requests": len(store.unblock.open_requests()), "reviews": store.reviews.open_count()})


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
    start = int(last_event_id) if last_event_id.isdecimal() else 0
    return StreamingResponse(
        _Watch(services, query, start).events(request), media_type="text/event-stream", headers=STREAM_HEADERS
    )
