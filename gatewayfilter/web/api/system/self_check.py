"""`GET /api/v1/doctor`: the check of the installation."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/doctor", tags=["status"])


class FindingModel(BaseModel):
    """The finding of a check."""

    level: Annotated[Literal["ok", "note", "warning", "error"], Field(description="`note` for what could not be checked.")]
    check: Annotated[str, Field(description="Name of the check.")]
    words: Annotated[str, Field(description="The finding, one sentence.")]
    mend: Annotated[str, Field(description="How to repair it; empty where nothing is to be repaired.")]


class DoctorModel(BaseModel):
    """The findings of the newest examination."""

    healthy: Annotated[bool, Field(description="Whether everything that was checked works; warnings leave it true.")]
    findings: Annotated[list[FindingModel], Field(description="In the order of the checks.")]
    examined_at: Annotated[float, Field(description="When the examination began, Unix seconds.")]
    complete: Annotated[bool, Field(description="Whether all checks were done, and not long ago; false: ask again.")]


@router.get("", operation_id="get_doctor")
def examine(services: Services, _: Admin) -> DoctorModel:
    """Returns what the newest check of the installation found, and begins another one where that is a minute old.

    It has the rights of the dashboard; the firewall needs those of root. An examination takes as long as reading the database:
    until it ends, the findings are those of the one before, and `complete` is false. Ask again until it is true.
    """
    found = services.examinations.newest()
    findings = [FindingModel(**one) for one in found.findings]
    return DoctorModel(
        healthy=all(one.level != "error" for one in findings),
        findings=findings,
        examined_at=found.began_at,
        complete=found.complete,
    )
