"""Acts on a decision of the log: allow or block its page or site, for a device, a group or everybody, for a time or for ever."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Client, EntryKind, ListAction, check_name, parse_matcher
from gatewayfilter.model.log_query import USER_PREFIX
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.lists.patterns import Pattern
from gatewayfilter.use_cases.lists.rule_editing import RuleValues, add_rules
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.requests import granted

LONGEST_S: Final = 10 * 366 * 86_400.0


class Extent(StrEnum):
    """What of a URL is meant."""

    PAGE = "page"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Made:
    """What an action has made.

    Attributes:
        kind, pattern: of the rule.
        scope: `client:NAME`, `group:NAME`, or `""` for everybody.
        until: Unix seconds, `None` for ever.
    """

    action: ListAction
    kind: EntryKind
    pattern: str
    scope: str
    until: float | None


def act_on_url(
    store: Store,
    clock: Callable[[], float],
    action: ListAction,
    url: str,
    *,
    extent: Extent,
    whom: str,
    lifetime_s: float | None,
) -> Made:
    """Adds a manual rule that allows or blocks a page or its site. To be called within a recorded change.

    Args:
        store: the database.
        clock: Unix seconds.
        action: allow or block.
        url: as logged; log records without a path stand for a host, a `?` at the end for a query that is not kept.
        extent: the page alone, or the whole site.
        whom: `client:NAME`, `group:NAME`, `device:ADDRESS` for a device that may have no name, or `""` for everybody.
        lifetime_s: how long it lasts, `None` for ever.

    Raises:
        PolicyError: there is no such client, group or device.
        UrlError: it is no URL.
    """
    if lifetime_s is not None and not 1 <= lifetime_s <= LONGEST_S:
        raise PolicyError("a rule lasts from a second to ten years, or for ever")
    asked = parse_loose_url(url)
    kind, pattern = granted(asked, site=extent is Extent.SITE)
    if kind is EntryKind.URL and action is ListAction.ALLOW and asked.query == "?" and "*" not in pattern:
        kind, pattern = EntryKind.WILDCARD, f"{pattern}?*"  # the log does not have the query; a block holds for any
    now = clock()
    until = None if lifetime_s is None else now + lifetime_s
    scope = _scope(store, clock, whom)
    add_rules(store, [Pattern(kind, pattern)], RuleValues(action, "", "", until, scope))
    return Made(action, kind, pattern, scope, until)


def _scope(store: Store, clock: Callable[[], float], whom: str) -> str:
    kind, _, name = whom.partition(":")
    if kind != "device":
        return whom
    try:
        matcher = parse_matcher(name)
    except PolicyError as error:
        raise PolicyError("the log does not name this device: choose a group or everybody") from error
    for client in store.policies.read().clients.values():
        if matcher in client.matchers:
            return f"client:{client.name}"
    named = name.removeprefix(USER_PREFIX).replace(":", "-")
    check_name(named)
    PolicyEditor(store.policies, clock).add_client(Client(named, (matcher,)))
    return f"client:{named}"
