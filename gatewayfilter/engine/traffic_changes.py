"""What Adblock rules make of allowed traffic, in the words of the model: `interfaces.ChangeTraffic` over one state."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gatewayfilter.engine.deciders import adblock_verdict
from gatewayfilter.model import Request, ResponseChange

if TYPE_CHECKING:
    from gatewayfilter.engine.engine_state import EngineState

_EMPTY = frozenset({101, 204, 205})


def change_response(
    state: "EngineState",
    request: Request,
    status: int,
    headers: Mapping[str, str],
    address: str,
) -> ResponseChange | None:
    """Returns what to change in a response, `None` for nothing; arguments as in `ChangeTraffic.change_response`."""
    has_body = not 300 <= status < 400 and status not in _EMPTY
    found = state.effects.change_response(request, headers, address, state.source_names, state.off_sources, has_body=has_body)
    if found is None:
        return None
    change, match, stub = found
    if match is not None:
        return replace(change, verdict=adblock_verdict(state, match, stub))
    return change
