"""Changes to allowed traffic by Adblock rules, as model values: `interfaces.ChangeTraffic` over one engine state."""

from collections.abc import Mapping
from dataclasses import replace

from gatewayfilter.engine.deciders import adblock_verdict
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.model import Request, ResourceType, ResponseChange

_PAGES = frozenset({ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT})
_EMPTY = frozenset({101, 204, 205})


def change_response(
    state: EngineState,
    request: Request,
    status: int,
    headers: Mapping[str, str],
    address: str,
) -> ResponseChange | None:
    """Returns what to change in a response, `None` for nothing; arguments as in `ChangeTraffic.change_response`."""
    if not state.effects.asks_responses and request.resource_type not in _PAGES:
        return None
    effects, names, off = state.effects, state.source_names, state.off_sources
    has_body = not 300 <= status < 400 and status not in _EMPTY
    found = effects.change_response(request, headers, address, names, off, has_body=has_body)
    if found is None:
        return None
    if found[1] is not None and not found[1].important and _is_excepted(state, request):
        found = effects.change_response(request, headers, address, names, off, has_body=has_body, blocks=False)
        if found is None:
            return None
    change, match, stub = found
    if match is not None:
        return replace(change, verdict=adblock_verdict(state, match, stub))
    return change


def _is_excepted(state: EngineState, request: Request) -> bool:
    """Returns whether a plain exception covers a request: it cancels rules on the response too."""
    return any(match.exception and match.source not in state.off_sources for match in state.adblock.match_all(request))
