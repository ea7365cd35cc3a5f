"""What holds for a client at an instant, and where each value comes from."""

from dataclasses import dataclass, replace
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import DEFAULT, Client, PolicySet, Schedule, inherited_values
from gatewayfilter.model.policy_values import InheritedValue
from gatewayfilter.store import Store
from gatewayfilter.use_cases.network_facts import QuotaLeft, quotas_left
from gatewayfilter.use_cases.people.client_states import ClientState, compiled, state_at

LATEST: Final = 4_102_444_800.0
"""The end of the year 2099: later instants are no dates of a time zone's rules."""
SETTINGS: Final = "settings"
"""The origin of a value that no policy sets."""


@dataclass(frozen=True, slots=True)
class ClientPolicyView:
    """What holds for a client at an instant.

    Attributes:
        client: `None` for clients that are not recognized.
        at: Unix seconds.
        policies: names of its policies, the nearest first.
        values: what policies set, each with its origin; then what the settings give in place of what none sets.
        schedules: those of its policies, by name; `state.schedules` names the open ones.
        quotas: what it has left of them today.
    """

    client: Client | None
    at: float
    group: str
    policies: tuple[str, ...]
    state: ClientState
    values: tuple[InheritedValue, ...]
    schedules: tuple[Schedule, ...]
    quotas: tuple[QuotaLeft, ...]


def client_policy(
    settings: Settings, store: Store, policies: PolicySet, services: ServiceIndex, name: str, at: float
) -> ClientPolicyView:
    """Returns what holds for a client.

    Args:
        settings: the settings.
        store: with the use of quotas.
        policies: with the client.
        services: the catalogue.
        name: of the client, `""` for clients that are not recognized.
        at: Unix seconds.

    Raises:
        PolicyError: there is no such client, or the time is beyond the calendar.
    """
    client = policies.clients.get(name)
    if name and client is None:
        raise PolicyError(f"there is no client {name!r}")
    if not 0 <= at <= LATEST:
        raise PolicyError("the time is before 1970 or after 2099")
    chain = policies.chain(client)
    names = tuple(policy.name for _, policy in chain)
    alone = replace(policies, clients={name: client} if client is not None else {})
    clients = compiled(settings, alone, services, at)
    timeline = (clients.clients[0] if client is not None else clients.default).timeline
    set_values = inherited_values(chain)
    known = {value.key for value in set_values}
    unset = [value for value in _defaults(settings) if value.key not in known]
    schedules = sorted((one for one in policies.schedules.values() if one.policy in names), key=lambda one: one.name)
    return ClientPolicyView(
        client,
        at,
        client.group if client is not None else DEFAULT,
        names,
        state_at(timeline, at),
        (*set_values, *unset),
        tuple(schedules),
        tuple(quotas_left(store, policies, client, "", at)),
    )


def _defaults(settings: Settings) -> list[InheritedValue]:
    """Returns what holds where no policy sets a value."""
    values = {
        "block-all": "off",
        "log-privacy": settings.log.privacy,
        "max-download-mb": "0",
        "requests": "on",
        "safesearch": "off",
        "strictness": "standard",
        "tls": "intercept",
        "unknown": settings.proxy.unknown,
        "youtube": "off",
        **{f"category.{name}": "allow" for name in sorted(settings.filter.disabled_categories)},
    }
    return [InheritedValue(key, value, SETTINGS, "") for key, value in values.items()]
