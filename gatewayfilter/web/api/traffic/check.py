"""`/api/v1/check`: the verdict on a URL, and why."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from gatewayfilter.model import DeciderAnswer, Request, ResourceType, Verdict
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.moments import read_moment
from gatewayfilter.web.access.checks import checked
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.api.shared_models import ValueModel
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/check", tags=["check"])
_LONGEST = 8_000


class VerdictModel(BaseModel):
    """A verdict."""

    action: Annotated[str, Field(description="`allow` or `block`.")]
    reason: Annotated[str, Field(description="Reason code.")]
    list: Annotated[str, Field(description="The list that decided, empty for none.")]
    rule: Annotated[str, Field(description="The entry or rule as written in its list.")]
    line: Annotated[int, Field(description="Line of the rule in its list, 0 when unknown.")]
    category: Annotated[str, Field(description="Code of the category, empty for none.")]
    detail: Annotated[str, Field(description="The evidence as text.")]
    unknown: Annotated[bool, Field(description="The URL is on no list, and may be fetched and classified.")]

    @classmethod
    def of(cls, verdict: Verdict) -> "VerdictModel":
        """Returns the model of a verdict."""
        return cls(
            action=verdict.action,
            reason=verdict.reason,
            list=verdict.source_list,
            rule=verdict.rule,
            line=verdict.line,
            category=verdict.category,
            detail=verdict.detail,
            unknown=verdict.unknown,
        )


class AnswerModel(BaseModel):
    """The answer of one decider."""

    decider: Annotated[str, Field(description="Its name.")]
    answer: Annotated[str, Field(description="`allow`, `block`, `maybe`, `miss`, `pass` or `skipped`.")]
    explanation: Annotated[str, Field(description="A sentence, with rule and list where there are any.")]
    verdict: Annotated[VerdictModel | None, Field(description="Of this decider alone, null without one.")]

    @classmethod
    def of(cls, answer: DeciderAnswer) -> "AnswerModel":
        """Returns the model of an answer."""
        verdict = None if answer.verdict is None else VerdictModel.of(answer.verdict)
        return cls(decider=answer.decider, answer=answer.answer, explanation=answer.explanation, verdict=verdict)


class CheckModel(BaseModel):
    """What is in force for a URL."""

    url: Annotated[str, Field(description="Canonical.")]
    client: Annotated[str, Field(description="Name of the client, empty where it is not recognized.")]
    verdict: Annotated[VerdictModel, Field(description="The verdict.")]
    answers: Annotated[list[AnswerModel], Field(description="Of all deciders, in their order.")]
    unread: Annotated[bool, Field(description="Connections to the host pass unread: the verdict does not count for them.")]
    policies: Annotated[list[str], Field(description="Policies of the client, the nearest first.")]
    values: Annotated[list[ValueModel], Field(description="Their values, each with its origin.")]
    schedules: Annotated[list[str], Field(description="Schedules of these policies.")]
    quotas: Annotated[list[dict[str, Any]], Field(description="What the client has left today.")]
    classification: Annotated[str, Field(description="The classifier's last judgement in words, empty for none.")]


@router.get("", operation_id="check_url")
def check(
    services: Services,
    _: Viewer,
    url: Annotated[str, Query(min_length=1, max_length=_LONGEST, description="A URL or a host.")],
    source: Annotated[str, Query(max_length=_LONGEST, description="The page that requests it.")] = "",
    type: Annotated[ResourceType, Query(description="What it is for.")] = ResourceType.DOCUMENT,  # noqa: A002  its name in addresses
    method: Annotated[str, Query(max_length=20, pattern="^[A-Za-z]+$", description="HTTP method.")] = "GET",
    client: Annotated[str, Query(max_length=200, description="Name, address or `user:NAME`; empty for none.")] = "",
    at: Annotated[str, Query(max_length=50, description="As if it were then: `2030-01-31T18:00`; empty for now.")] = "",
) -> CheckModel:
    """Returns the verdict on a URL, every decider's answer in order, and the policy in force. Nothing is fetched."""
    request = Request(parse_loose_url(url), parse_loose_url(source) if source else None, type, method.upper())
    moment = read_moment(at, services.clock(), zone=services.zone) if at else None
    found = checked(services, request, client, moment)
    return CheckModel(
        url=found.explanation.request.url.text,
        client=found.client.name if found.client is not None else "",
        verdict=VerdictModel.of(found.explanation.verdict),
        answers=[AnswerModel.of(answer) for answer in found.explanation.answers],
        unread=found.connection is not None and found.connection.unread,
        policies=list(found.policy.policies),
        values=[ValueModel(**asdict(value)) for value in found.policy.values],
        schedules=[one.name for one in found.policy.schedules],
        quotas=[asdict(quota) for quota in found.quotas],
        classification=found.judged[0].summary() if found.judged is not None else "",
    )
