"""Undo of changes of subscriptions: a list is switched back, removed again, or subscribed to again as it was."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gatewayfilter.config import Settings
from gatewayfilter.errors import MissingSourceError, SourceError, UndoError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat, Subscription, Subscriptions
from gatewayfilter.use_cases.access.inverses import SOURCES, Inverse
from gatewayfilter.use_cases.lists.source_changes import SourceOptions, add_source, changeable_sources
from gatewayfilter.wiring import subscriptions

type State = Mapping[str, Any]
"""Of a subscription: its name, and where it is known more than that, what `add_source` needs and whether it is enabled."""
type Pairs = Sequence[Sequence[State | None]]
"""States before and after a change; `None` for no subscription."""


def state_of(item: Subscription) -> dict[str, Any]:
    """Returns the state of a subscription as plain values."""
    found = item.definition
    return {
        "name": found.name,
        "address": found.address,
        "list_format": found.list_format.value if found.list_format is not None else "",
        "category": found.category,
        "action": found.action.value,
        "interval_h": found.interval_h,
        "enabled": found.enabled,
    }


def inverse_of_switch(item: Subscription) -> Inverse:
    """Returns the inverse of switching a list, as it is before that."""
    before = state_of(item)
    return {"kind": SOURCES, "items": [[before, {**before, "enabled": not item.definition.enabled}]]}


def inverse_of_removal(item: Subscription) -> Inverse:
    """Returns the inverse of removing a list, as it is before that."""
    return {"kind": SOURCES, "items": [[state_of(item), None]]}


def inverse_of_adding(known: Subscriptions, addresses: Sequence[str], name: str) -> Inverse | None:
    """Returns the inverse of subscribing to lists; `None` where their names are found out by that only.

    Args:
        known: the subscriptions before.
        addresses: as given.
        name: of the only one, `""` for that of the catalogue.
    """
    names = [name] if name else [address for address in addresses if address in known.catalog]
    if len(names) != len(addresses) or set(names) & set(known.names()):
        return None
    return {"kind": SOURCES, "items": [[None, {"name": one}] for one in names]}


def changed_source(known: Subscriptions, name: str, *, enabled: bool | None) -> tuple[State | None, State | None]:
    """Switches a list, or removes it. Returns its states before and after; the same two where it cannot be put back.

    Args:
        known: the subscriptions.
        name: of the list.
        enabled: whether it counts from now on; `None` removes it.

    Raises:
        SourceError: there is none of this name, or it comes with the program and cannot be removed.
    """
    try:
        before = state_of(known.get(name))
    except MissingSourceError:
        raise
    except SourceError:  # its definition is damaged, which does not hinder its removal
        before = None
    if enabled is None:
        known.remove(name)
        return before, None
    (known.enable if enabled else known.disable)(name)
    return before, None if before is None else {**before, "enabled": enabled}


def inverse_of_several(pairs: Pairs) -> Inverse | None:
    """Returns the inverse of changes of several lists; `None` where nothing was changed.

    Args:
        pairs: of each list the states before and after.
    """
    changed = [[*pair] for pair in pairs if pair[0] != pair[1]]
    return {"kind": SOURCES, "items": changed} if changed else None


class SourceUndo:
    """Takes changes of subscriptions back.

    Args:
        settings: the settings.
        work: does `source_jobs.put_back` with the pairs, now or in the background.
    """

    def __init__(self, settings: Settings, work: Callable[[Pairs], object]) -> None:
        self._settings = settings
        self._work = work

    def take_back(self, pairs: Pairs) -> Inverse:
        """Begins to take changes back. Returns the inverse of that.

        Raises:
            UndoError: a list was changed since.
        """
        known = subscriptions(self._settings)
        there = set(known.names())
        now = [state_of(known.get(name)) if (name := _name(pair)) in there else None for pair in pairs]
        for pair, present in zip(pairs, now, strict=True):
            _, after = pair
            if (after is None) is not (present is None) or any(
                (present or {})[key] != value for key, value in (after or {}).items()
            ):
                raise UndoError(f"the list {_name(pair)} was changed since")
        self._work(pairs)
        return {"kind": SOURCES, "items": [[present, before] for (before, _), present in zip(pairs, now, strict=True)]}


def put_back(settings: Settings, pairs: Pairs) -> list[str]:
    """Gives subscriptions the states from before. Returns their names; nothing is published.

    Raises:
        SourceError, ListError: one cannot be subscribed to again.
    """
    known = changeable_sources(settings)
    for before, after in pairs:
        if before is None:
            known.remove(_name((before, after)))
            continue
        name = str(before["name"])
        if after is None:
            add_source(known, str(before["address"]), _options(before))
        if after is not None or not before["enabled"]:
            (known.enable if before["enabled"] else known.disable)(name)
    return [_name(pair) for pair in pairs]


def _name(pair: Sequence[State | None]) -> str:
    return str(next(state for state in pair if state is not None)["name"])


def _options(state: State) -> SourceOptions:
    wanted = state["list_format"]
    return SourceOptions(
        state["name"], ListFormat(wanted) if wanted else None, state["category"], ListAction(state["action"]), state["interval_h"]
    )
