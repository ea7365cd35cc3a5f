"""`/api/v1/requests`: users' requests to unblock pages, and their answers."""

from typing import Annotated, Literal

from fastapi import Header, Path, Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.interfaces import BypassLink
from gatewayfilter.store.secret_key import REQUEST_KEY, load_key
from gatewayfilter.use_cases.requests import LONGEST_S, LONGEST_WORD, Whom, address_of, link_state, read_word
from gatewayfilter.use_cases.traffic.request_answers import RequestAnswers, Terms
from gatewayfilter.use_cases.traffic.request_facts import RequestFacts, facts_of, find_request
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Approver, Viewer
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.services import WebServices

router = ApiRouter("/requests", tags=["requests"])

Number = Annotated[int, Path(ge=1, le=2**53, description="Number of the request.")]
IfMatch = Annotated[
    str, Header(description="The ETag of the request as it was read: 412 when it was answered since.", max_length=80)
]


class EvidenceModel(BaseModel):
    """A word that counts for the page's category."""

    word: Annotated[str, Field(description="The word or combination.")]
    weight: Annotated[float, Field(description="What it adds to the score.")]


class RequestModel(BaseModel):
    """A request to unblock a page."""

    id: Annotated[int, Field(description="Its number.")]
    state: Annotated[str, Field(description="open, approved, ended, denied or closed (a review decided the page).")]
    url: Annotated[str, Field(description="The blocked URL.")]
    client: Annotated[str, Field(description="Address of the device, as it is logged.")]
    client_name: Annotated[str, Field(description="Name of the client, empty where it is not recognized.")]
    comment: Annotated[str, Field(description="The user's note.")]
    at: Annotated[float, Field(description="Unix seconds of the newest request.")]
    times: Annotated[int, Field(description="How often it was requested.")]
    reason: Annotated[str, Field(description="Reason code of the block.")]
    source_list: Annotated[str, Field(description="The list that blocked.")]
    rule: Annotated[str, Field(description="The rule that blocked.")]
    category: Annotated[str, Field(description="Category of the page or site.")]
    site: Annotated[str, Field(description="Pattern that an approval of the whole site allows.")]
    whole_site: Annotated[bool, Field(description="Whether an approval is for the whole site unless another is chosen.")]
    evidence: Annotated[list[EvidenceModel], Field(description="Words that made the page harmful, heaviest first.")]
    review: Annotated[int, Field(description="Number of the review task about the page, 0 for none.")]
    decided_at: Annotated[float | None, Field(description="Unix seconds of the answer.")]
    word: Annotated[str, Field(description="What was answered to the user.")]
    until: Annotated[float | None, Field(description="Unix seconds at which an approval ends, null for never.")]
    scope: Annotated[str, Field(description="Whom an approval is for: client:NAME, group:NAME, or empty for everybody.")]
    rules: Annotated[list[int], Field(description="Numbers of the rules that an approval made.")]


class RequestPage(BaseModel):
    """A page of requests."""

    items: Annotated[list[RequestModel], Field(description="The newest first.")]
    next: Annotated[int | None, Field(description="What `after` of the next page is, null on the last.")]


class WhomModel(BaseModel):
    """For whom; without any, for the device that asked."""

    client: Annotated[str, Field("", max_length=200, description="Name of a client.")]
    group: Annotated[str, Field("", max_length=200, description="Name of a group.")]
    everybody: Annotated[bool, Field(False, description="For everybody.")]
    site: Annotated[bool | None, Field(None, description="The whole site, or the page alone; null for what fits the block.")]

    def whom(self) -> Whom:
        """Returns it as the use cases take it."""
        return Whom(self.client, self.group, self.everybody)


class ApprovalModel(WhomModel):
    """How a request is approved."""

    seconds: Annotated[float | None, Field(3600, ge=1, le=LONGEST_S, description="How long it lasts, null for ever.")]
    once: Annotated[bool, Field(False, description="For one visit within a day.")]
    word: Annotated[str, Field("", max_length=LONGEST_WORD, description="An answer to the user.")]


class DenialModel(BaseModel):
    """How a request is denied."""

    word: Annotated[str, Field("", max_length=LONGEST_WORD, description="An answer to the user.")]


class LinkTermsModel(WhomModel):
    """What a bypass link allows."""

    seconds: Annotated[float, Field(3600, ge=1, le=LONGEST_S, description="How long it works.")]
    once: Annotated[bool, Field(False, description="For one visit.")]


class LinkModel(BaseModel):
    """A bypass link."""

    id: Annotated[int, Field(description="Its number.")]
    state: Annotated[str, Field(description="unused, used, ended or revoked.")]
    url: Annotated[str, Field(description="The page that it leads to.")]
    pattern: Annotated[str, Field(description="What it allows.")]
    scope: Annotated[str, Field(description="Whom it is for: client:NAME, group:NAME, or empty for everybody.")]
    until: Annotated[float, Field(description="Unix seconds at which it ends.")]
    once: Annotated[bool, Field(description="For one visit.")]
    request: Annotated[int, Field(description="The request that it answers, 0 for none.")]
    address: Annotated[str, Field("", description="What opens it; only in the answer that makes the link.")]


@router.get("", operation_id="list_requests")
def list_requests(
    services: Services,
    _: Viewer,
    state: Annotated[Literal["open", "decided"], Query(description="Which requests.")] = "open",
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200, description="Most items.")] = 50,
) -> RequestPage:
    """Returns requests, the newest first."""
    unblock = services.store.unblock
    if state == "open":
        waiting = sorted(unblock.open_requests(), key=lambda request: -request.request_id)
        found = [request for request in waiting if not after or request.request_id < after]
    else:
        found = unblock.decided(limit + 1, after)
    facts = facts_of(services.store, found[:limit], services.clock())
    more = found[limit - 1].request_id if len(found) > limit else None
    return RequestPage(items=[request_model(item) for item in facts], next=more)


@router.get("/{number}", operation_id="get_request")
def get_request(services: Services, _: Viewer, number: Number, response: Response) -> RequestModel:
    """Returns a request, and what blocked its page."""
    return _answer(services, number, response)


@router.post("/{number}/approve", operation_id="approve_request")
def approve_request(
    services: Services, who: Approver, number: Number, terms: ApprovalModel, response: Response, if_match: IfMatch = ""
) -> RequestModel:
    """Approves a request: the page opens within a second, for the device that asked unless another is named."""
    given = Terms(terms.seconds, terms.once, terms.site, terms.whom(), read_word(terms.word), _seen(if_match))
    RequestAnswers(services.store, who.actor, services.clock).approve(number, given)
    return _answer(services, number, response)


@router.post("/{number}/deny", operation_id="deny_request")
def deny_request(
    services: Services, who: Approver, number: Number, denial: DenialModel, response: Response, if_match: IfMatch = ""
) -> RequestModel:
    """Denies a request, or withdraws its approval: the page is blocked within a second."""
    RequestAnswers(services.store, who.actor, services.clock).deny(number, read_word(denial.word), seen=_seen(if_match))
    return _answer(services, number, response)


@router.post("/{number}/reopen", operation_id="reopen_request")
def reopen_request(services: Services, who: Approver, number: Number, response: Response, if_match: IfMatch = "") -> RequestModel:
    """Takes the answer to a request back: it waits again, and what an approval allowed is blocked within a second."""
    RequestAnswers(services.store, who.actor, services.clock).reopen(number, seen=_seen(if_match))
    return _answer(services, number, response)


@router.post("/{number}/link", operation_id="link_request", status_code=201)
def link_request(services: Services, who: Approver, number: Number, terms: LinkTermsModel, if_match: IfMatch = "") -> LinkModel:
    """Approves a request by a signed link, to be sent to the user."""
    given = Terms(terms.seconds, terms.once, terms.site, terms.whom(), seen=_seen(if_match))
    return link_model(services, RequestAnswers(services.store, who.actor, services.clock).link(number, given), new=True)


def link_model(services: WebServices, link: BypassLink, *, new: bool = False) -> LinkModel:
    """Returns a link; of a new one with its address."""
    return LinkModel(
        id=link.link_id,
        state=link_state(link, services.clock()),
        url=link.url,
        pattern=link.pattern,
        scope=link.scope,
        until=link.until,
        once=link.once,
        request=link.request_id,
        address=address_of(load_key(services.settings.data_dir, REQUEST_KEY), link) if new else "",
    )


def request_model(facts: RequestFacts) -> RequestModel:
    """Returns a request as the API shows it."""
    request = facts.request
    return RequestModel(
        id=request.request_id,
        state=facts.state,
        url=request.url,
        client=request.client,
        client_name=request.client_name,
        comment=request.comment,
        at=request.at,
        times=request.times,
        reason=request.reason,
        source_list=request.source_list,
        rule=request.rule,
        category=request.category,
        site=facts.site,
        whole_site=facts.whole_site,
        evidence=[EvidenceModel(word=hit.word, weight=hit.weight) for hit in facts.evidence],
        review=facts.task.task_id if facts.task is not None else 0,
        decided_at=request.decided_at,
        word=request.word,
        until=request.until,
        scope=request.scope,
        rules=list(request.rule_ids),
    )


def _answer(services: WebServices, number: int, response: Response) -> RequestModel:
    (facts,) = facts_of(services.store, [find_request(services.store, number)], services.clock())
    response.headers["etag"] = f'"{facts.revision}"'
    return request_model(facts)


def _seen(if_match: str) -> str:
    return if_match.strip().removeprefix("W/").strip('"').replace("*", "")
