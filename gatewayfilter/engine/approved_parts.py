"""Parts of approved sites: what pages of a site that was approved on request load from blocked sites.

A manual rule of the group `APPROVED` that allows a host or domain also allows scripts, images and the like that pages of that
site load from elsewhere, if only a schedule, a policy or an ordinary list blocks them. Pages, frames and objects of other sites
stay blocked, as do advertising and harmful content.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from gatewayfilter.engine.deciders import manual_verdict
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.model import (
    HARMFUL_CATEGORIES,
    PAGE_TYPES,
    DeciderAnswer,
    HostAction,
    HostVerdict,
    Reason,
    Request,
    ResourceType,
    Verdict,
)

_LIFTED: Final = frozenset({Reason.SCHEDULE, Reason.POLICY, Reason.BLACKLIST, Reason.LEARNED})
_WHOLE: Final = PAGE_TYPES | {ResourceType.OBJECT}
"""`<object>` and `<embed>` show pages as frames do."""
_NEVER: Final = HARMFUL_CATEGORIES | {"ads", "trackers", "annoyances"}


def lifted(state: EngineState, scopes: Sequence[str], request: Request, verdict: Verdict, now: float) -> Verdict | None:
    """Returns the verdict on a blocked request that is a part of an approved site, `None` for any other request.

    Args:
        state: of the engine.
        scopes: of the client, the nearest first; rules for everybody count after them.
        request: that was blocked.
        verdict: that blocked it.
        now: Unix seconds.
    """
    rules = state.overlay.rules
    if not rules.approves and not rules.scoped:
        return None
    source = request.source
    if source is None or request.resource_type in _WHOLE or not _may_lift(verdict):
        return None
    for scope, rules in _approving(state, scopes):
        rule = rules.approved_site(source, now)
        if rule is not None:
            return manual_verdict(rule, scope)
    return None


def open_for_parts(state: EngineState, scopes: Sequence[str], denied: HostVerdict) -> HostVerdict:
    """Returns an interception in place of a denial where a request may be a part of an approved site."""
    if not _may_lift(denied.verdict) or not any(_approving(state, scopes)):
        return denied
    return replace(denied, action=HostAction.INTERCEPT, named=True)


def tell_part(verdict: Verdict | None) -> tuple[DeciderAnswer, ...]:
    """Returns the explanation of what `lifted` has returned."""
    if verdict is None:
        return ()
    return (
        DeciderAnswer(
            "parts", "allow", f"it is loaded by a page of {verdict.rule}, which is approved ({verdict.detail})", verdict
        ),
    )


def _may_lift(verdict: Verdict) -> bool:
    return verdict.reason in _LIFTED and verdict.category not in _NEVER


def _approving(state: EngineState, scopes: Sequence[str]) -> Iterator[tuple[str, ManualRules]]:
    """Yields the rules by which sites are approved for a client, with their scope."""
    rules = state.overlay.rules
    for scope in scopes:
        found = rules.scoped.get(scope)
        if found is not None and found.approves:
            yield scope, found
    if rules.approves:
        yield "", rules
