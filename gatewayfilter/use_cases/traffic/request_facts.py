"""Requests to unblock pages with the facts beside each: why the page was blocked, by what evidence, whom it may be for."""

from collections.abc import Sequence
from dataclasses import dataclass

from gatewayfilter.errors import MissingError
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import Evidence, PolicySet, ReviewTask
from gatewayfilter.store import Store
from gatewayfilter.urls import domain_key, parse_url
from gatewayfilter.use_cases.requests import covers_host, granted, is_judged_page, revision, state_of

MOST_EVIDENCE = 12
"""Words that are named as evidence."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """Facts beside a request.

    Attributes:
        state: a word: open, approved, ended, denied or closed.
        revision: what a decision repeats, so that it answers the request as it was seen.
        icon: of the client that asked.
        host, path: the parts of the URL.
        site: pattern of the whole site.
        whole_site: an approval is for the whole site unless another is chosen.
        page_only: the page itself was judged: it is approved alone.
        group: of the client that asked, `""` where it is not recognized.
        groups: all other groups.
        task: the review task about the page, or about its host.
        detail: the learned entry's evidence in one line.
        evidence: the heaviest words that count for the category.
    """

    request: UnblockRequest
    state: str
    revision: str
    icon: str
    host: str
    path: str
    site: str
    whole_site: bool
    page_only: bool
    group: str
    groups: tuple[str, ...]
    task: ReviewTask | None
    detail: str
    evidence: tuple[Evidence, ...]


def find_request(store: Store, number: int) -> UnblockRequest:
    """Returns a request.

    Raises:
        MissingError: there is none of this number.
    """
    found = store.unblock.find(number)
    if found is None:
        raise MissingError(f"there is no request {number}")
    return found


def facts_of(store: Store, requests: Sequence[UnblockRequest], now: float) -> list[RequestFacts]:
    """Returns the facts beside requests, in their order."""
    policies = store.policies.read() if requests else PolicySet()
    return [_facts(store, policies, request, now) for request in requests]


def _facts(store: Store, policies: PolicySet, request: UnblockRequest, now: float) -> RequestFacts:
    url = parse_url(request.url)
    client = policies.clients.get(request.client_name)
    group = client.group if client is not None else ""
    keys = (url.key, domain_key(url.host))
    task = next((task for key in keys if (task := store.reviews.newest_of(key)) is not None), None)
    learned = store.lists.find_learned(keys)
    judged = is_judged_page(request)
    return RequestFacts(
        request=request,
        state=state_of(request, now),
        revision=revision(request),
        icon=client.icon if client is not None else "",
        host=url.host,
        path=url.text.partition("://")[2].partition("/")[2],
        site=granted(url, site=True)[1],
        whole_site=covers_host(request) and not judged,
        page_only=judged,
        group=group,
        groups=tuple(sorted(name for name in policies.groups if name != group)),
        task=task,
        detail=learned[0].detail if learned else "",
        evidence=_evidence(task) if task is not None else (),
    )


def _evidence(task: ReviewTask) -> tuple[Evidence, ...]:
    hits = [hit for hit in task.classification.evidence if hit.category == task.category and hit.weight > 0]
    words = {hit.word: hit for hit in reversed(hits)}
    return tuple(sorted(words.values(), key=lambda hit: -hit.weight)[:MOST_EVIDENCE])
