"""The state of a flow between its hooks, kept in `flow.metadata`."""

from dataclasses import dataclass
from typing import Final

from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.model import JudgeForm
from gatewayfilter.proxy.request.flow_request import FlowRequest

PENDING: Final = "gatewayfilter"
"""The key in `flow.metadata`; mitmproxy keeps the dictionary for addons."""


@dataclass(slots=True, eq=False)
class PendingFlow:
    """A request that waits for its body, or whose response has not arrived.

    Attributes:
        flow_request: the request.
        unknown: its URL is on no list.
        untouched: a manual rule allows it: nothing is changed in its response.
        form: judges its body, which is read by the filter; `None` where it streams.
        unblocks: its body is read by the filter, for a request to unblock a page.
    """

    flow_request: Final[FlowRequest]
    unknown: Final[bool]
    untouched: Final[bool]
    unblocks: Final[bool] = False
    form: Final[JudgeForm | None] = None


@dataclass(slots=True, eq=False)
class InspectedFlow:
    """A response that is kept until the inspector has judged it.

    Attributes:
        flow_request: the request.
        page: the response without its body.
        stream_as: what `response.stream` was: how its body is changed.
    """

    flow_request: Final[FlowRequest]
    page: Final[PassedResponse]
    stream_as: Final[object]
