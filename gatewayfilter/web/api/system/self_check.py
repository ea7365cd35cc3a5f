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
    """The findings of all checks."""

    healthy: Annotated[bool, Field(description="Whether everything works; warnings leave it true.")]
    findings: Annotated[list[FindingModel], Field(description="In the order of the checks.")]


@router.get("", operation_id="get_doctor")
def examine(services: Services, _: Admin) -> DoctorModel:
    """Checks the installation, with the rights of the dashboard; the firewall needs those of root. It takes some seconds."""
    found = services.fetching.run(
        "gatewayfilter.use_cases.operation.self_check:findings", services.settings, services.loaded.file, services.clock()
    )
    findings = [FindingModel(**one) for one in found]
    return DoctorModel(healthy=all(one.level != "error" for one in findings), findings=findings)
