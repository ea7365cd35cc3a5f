"""`/api/v1/pauses`: filtering stopped for a while, for everybody, a group or a client."""

from typing import Annotated

from fastapi import HTTPException, Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Pause, PauseScope, PolicySet
from gatewayfilter.use_cases.policies import LONGEST_PAUSE_S, PolicyEditor
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Approver, Viewer
from gatewayfilter.web.api.people.models import Body, editing
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/pauses", tags=["pauses"])

ScopeField = Annotated[PauseScope, Field(description="Whom it is for: all, group or client.")]
TargetField = Annotated[str, Field(description="Name of the group or client, empty for all.", max_length=100)]


class PauseModel(BaseModel):
    """A pause in force."""

    scope: ScopeField
    target: TargetField
    until: Annotated[float, Field(description="Unix seconds at which it ends.")]
    harm_too: Annotated[bool, Field(description="Lists of malware, phishing and fraud do not block either.")]


class PauseList(BaseModel):
    """All pauses in force, those that end first before others."""

    items: Annotated[list[PauseModel], Field(description="The pauses.")]


class NewPause(Body):
    """A pause to start, in place of an earlier one of the same scope."""

    scope: ScopeField = PauseScope.ALL
    target: TargetField = ""
    minutes: Annotated[float, Field(description="How long.", gt=0, le=LONGEST_PAUSE_S / 60, allow_inf_nan=False)]
    harm_too: Annotated[bool, Field(description="Lists of malware, phishing and fraud are paused, too.")] = False


@router.get("", operation_id="list_pauses")
def list_pauses(services: Services, _: Viewer) -> PauseList:
    """Returns who is paused now, and until when."""
    now = services.clock()
    pauses = services.store.policies.read().pauses_at(now)
    return PauseList(items=[_model(pause) for pause in sorted(pauses, key=lambda pause: (pause.until, pause.name))])


@router.post("", operation_id="start_pause", status_code=201)
def start_pause(services: Services, identity: Approver, body: NewPause) -> PauseModel:
    """Stops filtering for a while. It ends by itself."""
    if (body.scope is PauseScope.ALL) != (not body.target):
        raise PolicyError("the scope all has no target, the others have one")
    name = Pause(body.scope, body.target, 0.0).name
    with editing(services, identity, "pause.started", name, f"{body.minutes:g} min"):
        _check_target(services.store.policies.read(), body.scope, body.target)
        editor = PolicyEditor(services.store.policies, services.clock)
        return _model(editor.pause(body.scope, body.target, body.minutes * 60.0, harm_too=body.harm_too))


@router.delete("", operation_id="end_pause", status_code=204, response_class=Response)
def end_pause(
    services: Services,
    identity: Approver,
    scope: Annotated[PauseScope, Query(description="Whose pause.")] = PauseScope.ALL,
    target: Annotated[str, Query(description="Name of the group or client.", max_length=100)] = "",
) -> None:
    """Ends a pause. 404 when there is none."""
    with editing(services, identity, "pause.ended", Pause(scope, target, 0.0).name):
        if not PolicyEditor(services.store.policies, services.clock).resume(scope, target):
            raise HTTPException(404, "there is no such pause")


def _check_target(policies: PolicySet, scope: PauseScope, target: str) -> None:
    known = {
        PauseScope.ALL: True,
        PauseScope.GROUP: policies.group(target) is not None,
        PauseScope.CLIENT: target in policies.clients,
    }[scope]
    if not known:
        raise HTTPException(404, f"there is no {scope.value} {target!r}")


def _model(pause: Pause) -> PauseModel:
    return PauseModel(scope=pause.scope, target=pause.target, until=pause.until, harm_too=pause.harm_too)
