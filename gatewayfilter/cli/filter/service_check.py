"""`gatewayfilter check --service`: the decision on each host of a service as a whole."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewayfilter.cli.ui.output import counted, print_json, print_table, say
from gatewayfilter.model import HostAction, check_service

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@dataclass(frozen=True, slots=True)
class HostCheck:
    """The decision on a host.

    Attributes:
        action: `deny`, `intercept` or `splice`.
        reason: of the block, `""` where there is none.
        detail: what decided.
    """

    host: str
    action: str
    reason: str
    detail: str


def check_service_hosts(invocation: Invocation, service: str, client: str, at: float | None) -> int:
    """Shows the decision on each host of a service. Returns 1 when every one is denied, else 0.

    Args:
        invocation: of the command.
        service: its id.
        client: name, address or `user:NAME`, `""` for none in particular.
        at: Unix seconds, `None` for now.

    Raises:
        PolicyError: there is no such service or client.
    """
    from gatewayfilter.use_cases.network_facts import ClientIdentity, identity_of, neighbours_with
    from gatewayfilter.wiring import open_engine, services

    settings = invocation.settings()
    catalogue = services(settings)
    check_service(service, catalogue)
    with invocation.store() as store:
        engine = open_engine(settings, store, clock=time.time if at is None else lambda: at)
        identity = ClientIdentity("")
        if client:
            policies = store.policies.read()
            neighbours = neighbours_with(client, policies)
            engine.set_neighbours(neighbours)
            identity = identity_of(client, policies, neighbours)
    found: list[HostCheck] = []
    for host in catalogue[service].hosts:
        verdict = engine.decide_host(host, identity.address, identity.user)
        because = verdict.because or verdict.verdict
        detail = because.detail or because.rule
        found.append(HostCheck(host, verdict.action.value, because.reason.value if because.blocked else "", detail))
    blocked = sum(one.action == HostAction.DENY for one in found)
    if invocation.json:
        print_json({"service": service, "client": client, "hosts": found, "blocked": blocked == len(found)})
    else:
        print_table(("host", "connections", "reason", "explanation"), [(h.host, h.action, h.reason, h.detail) for h in found])
        say(f"\n{catalogue[service].name}: {blocked} of {counted(len(found), 'host')} blocked as a whole")
    return int(blocked == len(found) and bool(found))
