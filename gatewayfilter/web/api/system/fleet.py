"""`/api/v1/fleet`: what this machine publishes and to whom, or what it follows."""

from typing import Annotated

from fastapi import Path, Response
from pydantic import BaseModel, Field

from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/fleet", tags=["status"])


class FollowerModel(BaseModel):
    """A follower of this publisher, with its newest report."""

    name: Annotated[str, Field(description="By which it was added.")]
    added_at: Annotated[float, Field(description="Unix seconds.")]
    reported_at: Annotated[float, Field(description="When its newest report came (Unix seconds); 0 for none.")]
    program: Annotated[str, Field(description="Version of its program; empty without a report.")]
    sequence: Annotated[int, Field(description="Of the manifest in force there.")]
    age_s: Annotated[int, Field(description="Age of that manifest, in seconds, by its clock.")]
    exceptions: Annotated[int, Field(description="Policy items that local people have changed.")]
    workers: Annotated[int, Field(description="Proxy workers that serve.")]
    fault: Annotated[str, Field(description="Why its newest poll failed: `ok` if it did not; empty without a report.")]


class FleetModel(BaseModel):
    """The state of a fleet as this machine sees it."""

    publishes: Annotated[bool, Field(description="Whether this machine is a publisher.")]
    sequence: Annotated[int, Field(description="Of the newest manifest it has signed; 0 for none.")]
    exported_at: Annotated[float, Field(description="When that was (Unix seconds).")]
    followers: Annotated[list[FollowerModel], Field(description="That it admits.")]
    follow: Annotated[str, Field(description="Address of the publisher that this machine follows; empty for none.")]
    in_force: Annotated[int, Field(description="Sequence of the publisher's manifest in force here; 0 for none.")]
    made_at: Annotated[float, Field(description="When the publisher made it (Unix seconds).")]
    contact_at: Annotated[float, Field(description="When the publisher answered last with a valid manifest (Unix seconds).")]
    fault: Annotated[str, Field(description="Why the newest poll failed: `ok` if it did not.")]
    trouble: Annotated[str, Field(description="What is wrong with following, one sentence; empty when all is well.")]
    exceptions: Annotated[list[str], Field(description="Policy items that local people have changed, as `kind:name`.")]


class NewFollower(BaseModel):
    """A follower to admit."""

    name: Annotated[str, Field(min_length=1, max_length=100, description="By which it is known here.")]


class FollowerToken(BaseModel):
    """The token of a follower. It is told only now: a digest alone is kept."""

    name: Annotated[str, Field(description="Of the follower.")]
    token: Annotated[str, Field(description="What the follower sends.")]


@router.get("", operation_id="get_fleet")
def fleet(services: Services, _: Viewer) -> FleetModel:
    """Returns the state of the fleet."""
    from gatewayfilter.use_cases.fleet_status import fleet_status, follower_trouble  # noqa: PLC0415  rarely used

    found = fleet_status(services.settings)
    state = found.state
    rows = [
        FollowerModel(
            name=row.name,
            added_at=row.added_at,
            reported_at=row.reported_at,
            program=row.report.program if row.report else "",
            sequence=row.report.sequence if row.report else 0,
            age_s=row.report.age_s if row.report else 0,
            exceptions=row.report.exceptions if row.report else 0,
            workers=row.report.workers if row.report else 0,
            fault=row.report.fault.value if row.report else "",
        )
        for row in found.followers
    ]
    return FleetModel(
        publishes=found.publishes,
        sequence=found.sequence,
        exported_at=found.exported_at,
        followers=rows,
        follow=found.follow,
        in_force=state.in_force,
        made_at=state.made_at,
        contact_at=state.contact_at,
        fault=state.fault.value,
        trouble=follower_trouble(services.settings, services.clock()),
        exceptions=list(state.exceptions),
    )


@router.post("/followers", operation_id="add_follower", status_code=201)
def add_follower(services: Services, identity: Admin, body: NewFollower) -> FollowerToken:
    """Admits a follower of this publisher."""
    from gatewayfilter.use_cases.fleet_status import followers  # noqa: PLC0415  rarely used

    token = followers(services.settings).add(body.name)
    record(services, identity, "follower.added", body.name)
    return FollowerToken(name=body.name, token=token)


@router.delete("/followers/{name}", operation_id="remove_follower", status_code=204, response_class=Response)
def remove_follower(
    services: Services, identity: Admin, name: Annotated[str, Path(min_length=1, max_length=100, description="Of the follower.")]
) -> None:
    """Removes a follower: its token is refused at once."""
    from gatewayfilter.use_cases.fleet_status import followers  # noqa: PLC0415  rarely used

    followers(services.settings).remove(name)
    record(services, identity, "follower.removed", name)
