"""The use of quotas by requests: which quotas of which client an allowed request counts for."""

from gatewayfilter.engine.policies.effective_policy import QuotaCount
from gatewayfilter.engine.policy_decision import in_force, view_of
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.model import QuotasUsed, Request, Verdict, key_of_client


def quotas_used(state: EngineState, request: Request, verdict: Verdict, now: float, *, own: bool) -> QuotasUsed | None:
    """Returns the quotas that an allowed request uses, `None` for none.

    Args:
        state: of the engine; it has policies.
        request: the request.
        verdict: allows it; its category is that of the list that contains the URL.
        now: Unix seconds.
        own: the request is the user's own doing; of others only those to hosts that send what is played count.
    """
    client, effective = in_force(state, request.client, request.user, now)
    count = effective.quotas
    if count is None:
        return None
    facts = Question(view_of(state, effective.lists_number), request, now).facts
    names = _names(count, facts.services if own else facts.media, verdict.category if own else "")
    if not names:
        return None
    name = client.client.name if client.client is not None else ""
    return QuotasUsed(key_of_client(name, request.client), names)


def _names(count: QuotaCount, services: tuple[str, ...], category: str) -> tuple[str, ...]:
    found = [name for service in services for name in count.services.get(service, ())]
    if category:
        found += count.categories.get(category, ())
    return tuple(dict.fromkeys(found))
