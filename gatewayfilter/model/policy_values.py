"""The values of a policy as `KEY=VALUE` texts: reading, setting, and where each value in force comes from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model.policy import CategoryAction, Policy, UnknownAction
from gatewayfilter.model.services.service_values import SERVICE, SERVICES, service_values, with_service, with_services_blocked
from gatewayfilter.model.values.request_values import REQUEST_KEYS, canonical_value, request_key

_CATEGORY: Final = "category."
_SOURCE: Final = "source."
_SWITCH: Final[Mapping[str, bool]] = {"on": True, "off": False}
_PLAIN: Final = ("unknown", "block-all", "requests")
_KEYS: Final = ("category.NAME", "source.NAME", *_PLAIN, "services", "service.NAME", *REQUEST_KEYS)


@dataclass(frozen=True, slots=True)
class InheritedValue:
    """A value in force.

    Attributes:
        key, value: as `policy set` takes them.
        origin: where it comes from: `client NAME`, `group NAME` or `default`.
        policy: name of the policy that sets it.
    """

    key: str
    value: str
    origin: str
    policy: str


def policy_values(policy: Policy) -> dict[str, str]:
    """Returns the values that a policy sets: key → value."""
    found: dict[str, str] = {}
    if policy.block_all is not None:
        found["block-all"] = _switch_text(on=policy.block_all)
    if policy.takes_requests is not None:
        found["requests"] = _switch_text(on=policy.takes_requests)
    if policy.unknown is not None:
        found["unknown"] = policy.unknown.value
    found |= dict(sorted(policy.requests.items()))
    found |= {f"{_CATEGORY}{name}": action.value for name, action in sorted(policy.categories.items())}
    found |= {f"{_SOURCE}{name}": _switch_text(on=on) for name, on in sorted(policy.sources.items())}
    return found | service_values(policy)


def inherited_values(chain: Sequence[tuple[str, Policy]]) -> list[InheritedValue]:
    """Returns the values in force of a chain of policies (`PolicySet.chain`), by key."""
    found: dict[str, InheritedValue] = {}
    for origin, policy in chain:
        for key, value in policy_values(policy).items():
            found.setdefault(key, InheritedValue(key, value, origin, policy.name))
    return [found[key] for key in sorted(found)]


def with_value(
    policy: Policy,
    key: str,
    text: str,
    *,
    categories: Collection[str],
    sources: Collection[str],
    services: Collection[str] = (),
) -> Policy:
    """Returns a policy with one value set, or unset by an empty text.

    Args:
        policy: to be changed.
        key: `category.NAME`, `source.NAME`, `unknown`, `block-all`, `requests`, `services`, `service.NAME` or one of
            `REQUEST_KEYS`.
        text: the value.
        categories: names of all categories.
        sources: names of all sources.
        services: ids of all services.

    Raises:
        PolicyError: the key, the category, the source, the service or the value is unknown. An unknown name can still be unset.
    """
    if key in _PLAIN:
        return _with_plain(policy, key, text)
    if own := request_key(key):
        others = {name: value for name, value in policy.requests.items() if name != own}
        return replace(policy, requests=others | ({own: canonical_value(own, text)} if text else {}))
    if key.startswith(_CATEGORY):
        name = key.removeprefix(_CATEGORY)
        if text:
            _check_known(name, categories, "category")
        actions = {category: action for category, action in policy.categories.items() if category != name}
        return replace(policy, categories=actions | ({name: _one_of(CategoryAction, key, text)} if text else {}))
    if key.startswith(_SOURCE):
        name = key.removeprefix(_SOURCE)
        if text:
            _check_known(name, sources, "source")
        switches = {source: on for source, on in policy.sources.items() if source != name}
        return replace(policy, sources=switches | ({name: _switch(key, text)} if text else {}))
    if key == SERVICES:
        return with_services_blocked(policy, text, services)
    if key.startswith(SERVICE):
        return with_service(policy, key, text, services)
    raise PolicyError(f"there is no value {key!r}; there are {', '.join(_KEYS)}")


def _with_plain(policy: Policy, key: str, text: str) -> Policy:
    if key == "unknown":
        return replace(policy, unknown=_one_of(UnknownAction, key, text) if text else None)
    on = _switch(key, text) if text else None
    return replace(policy, block_all=on) if key == "block-all" else replace(policy, takes_requests=on)


def _check_known(name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        sentence = f"there is no {what} {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
        raise PolicyError(sentence) if what == "category" else MissingItemError(sentence)


def _one_of[Choice: (CategoryAction, UnknownAction)](choices: type[Choice], key: str, text: str) -> Choice:
    try:
        return choices(text)
    except ValueError as error:
        raise PolicyError(f"{key} is one of {', '.join(choice.value for choice in choices)}, not {text!r}") from error


def _switch(key: str, text: str) -> bool:
    if text not in _SWITCH:
        raise PolicyError(f"{key} is on or off, not {text!r}")
    return _SWITCH[text]


def _switch_text(*, on: bool) -> str:
    return "on" if on else "off"
