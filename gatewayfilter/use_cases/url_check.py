"""The check of a URL: what every decider finds, the policy in force with its origins, and the classifier's last judgement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gatewayfilter.engine.policies.compilation import compile_policies
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.use_cases.network_facts import QuotaLeft, identity_of, neighbours_with, quotas_left
from gatewayfilter.use_cases.people.client_policy import ClientPolicyView, client_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gatewayfilter.config import Settings
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.model import Classification, Client, Explanation, Request, ReviewTask
    from gatewayfilter.proxy.listener.connection_report import ConnectionReport
    from gatewayfilter.store import Store


@dataclass(frozen=True, slots=True)
class UrlCheck:
    """What is in force for a URL.

    Attributes:
        explanation: every decider's answer, and the verdict.
        judged: the classifier's last judgement with its time (Unix seconds), `None` for none.
        connection: what holds for HTTPS connections to the host; `None` for other schemes.
        reviewed: the newest review of it by a person, `None` for none.
        client: as policies recognize it, `None` for none.
        policy: what holds for it, each value with where it comes from.
        quotas: what the client has left today.
    """

    explanation: Explanation
    judged: tuple[Classification, float] | None
    connection: ConnectionReport | None
    reviewed: ReviewTask | None
    client: Client | None
    policy: ClientPolicyView
    quotas: Sequence[QuotaLeft]


def check_url(
    settings: Settings, store: Store, engine: FilterEngine, request: Request, client: str, clock: Callable[[], float]
) -> UrlCheck:
    """Returns what is in force for a request. Nothing is fetched.

    Args:
        settings: of the filter.
        store: the database.
        engine: the decision, by the same clock.
        request: without a client.
        client: whose request it is: its name, address or `user:NAME`; `""` for none in particular.
        clock: Unix seconds.

    Raises:
        PolicyError: there is no such client.
        StoreError: the database refuses.
    """
    from gatewayfilter.proxy.listener.connection_report import report_connection  # noqa: PLC0415  for checks alone

    policies = store.policies.read()
    known: Client | None = None
    quotas: list[QuotaLeft] = []
    if client:
        neighbours = neighbours_with(client, policies)
        engine.set_neighbours(neighbours)
        identity = identity_of(client, policies, neighbours)
        request = replace(request, client=identity.address, user=identity.user)
        known = compile_policies(policies, clock(), neighbours=neighbours).find(identity.address, identity.user).client
        quotas = quotas_left(store, policies, known, identity.address, clock())
    encrypted = request.url.scheme in {"https", "wss"}
    newest = store.reviews.newest_of(request.url.key)
    return UrlCheck(
        engine.explain(request),
        store.verdicts.find(request.url.text),
        report_connection(settings, engine, request.url, request.client, clock) if encrypted else None,
        newest if newest is not None and newest.decided_at is not None else None,
        known,
        client_policy(settings, store, policies, ServiceIndex(engine.services), known.name if known is not None else "", clock()),
        quotas,
    )
