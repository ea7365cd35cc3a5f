"""The services that a policy blocks or allows, as the values `services=ID,ID` and `service.ID=block`."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model.policy import Policy

SERVICE: Final = "service."
"""How the key of one service begins."""
SERVICES: Final = "services"
"""The key of all services that a policy blocks."""

_CHOICES: Final[Mapping[str, bool]] = {"block": True, "allow": False}
_MOST: Final = 500


def service_values(policy: Policy) -> dict[str, str]:
    """Returns the services that a policy sets: key → `block` or `allow`."""
    return {f"{SERVICE}{name}": "block" if blocked else "allow" for name, blocked in sorted(policy.services.items())}


def with_services_blocked(policy: Policy, text: str, known: Collection[str]) -> Policy:
    """Returns a policy that blocks these services and no others; those that it allows on purpose stay allowed.

    Args:
        policy: to be changed.
        text: ids with commas between them, an empty text for none.
        known: ids of all services.

    Raises:
        PolicyError: a service is unknown, or there are too many.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > _MOST:
        raise PolicyError(f"a policy names at most {_MOST} services")
    for name in names:
        check_service(name, known)
    allowed = {name: False for name, blocked in policy.services.items() if not blocked and name not in names}
    return replace(policy, services=allowed | dict.fromkeys(names, True))


def with_service(policy: Policy, key: str, text: str, known: Collection[str]) -> Policy:
    """Returns a policy with one service blocked, allowed, or unset by an empty text. An unknown one can still be unset.

    Raises:
        PolicyError: the service or the value is unknown.
    """
    name = key.removeprefix(SERVICE)
    others = {service: blocked for service, blocked in policy.services.items() if service != name}
    if not text:
        return replace(policy, services=others)
    check_service(name, known)
    if text not in _CHOICES:
        raise PolicyError(f"{key} is one of {', '.join(_CHOICES)}, not {text!r}")
    if len(others) >= _MOST:
        raise PolicyError(f"a policy names at most {_MOST} services")
    return replace(policy, services=others | {name: _CHOICES[text]})


def check_service(name: str, known: Collection[str]) -> None:
    """Checks that a service is in the catalogue.

    Raises:
        PolicyError: it is not.
    """
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; `gatewayfilter service list` shows all"
        raise MissingItemError(f"there is no service {name[:100]!r}{hint}")
