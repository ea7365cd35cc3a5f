"""Policy items as JSON values, for the database, the change feed and the snapshot. A reader ignores fields of later versions."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gatewayfilter.model.client_matcher import Matcher, MatcherKind
from gatewayfilter.model.policy import (
    ALL_DAYS,
    DEFAULT,
    CategoryAction,
    Client,
    Group,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    Quota,
    QuotaKind,
    Schedule,
    ScheduleEffect,
    Spent,
    UnknownAction,
    Window,
)
from gatewayfilter.model.values.request_values import usable_values
from gatewayfilter.model.values.weekdays import DAY_NAMES


def kind_of_item(item: PolicyItem) -> str:
    """Returns the kind of an item: `client`, `group`, `policy`, `schedule`, `pause`, `quota` or `spent`."""
    return type(item).__name__.lower()


def to_record(item: PolicyItem) -> dict[str, object]:
    """Returns an item as a JSON object; `kind` and `name` identify it."""
    return {"kind": kind_of_item(item), "name": item.name, **_fields(item)}


def _fields(item: PolicyItem) -> dict[str, object]:
    match item:
        case Client():
            matchers = [[matcher.kind.value, matcher.value] for matcher in item.matchers]
            return {"matchers": matchers, "group": item.group, "policy": item.policy, "note": item.note, "icon": item.icon}
        case Group():
            return {"policy": item.policy, "note": item.note}
        case Policy():
            return {
                "sources": dict(item.sources),
                "categories": {category: action.value for category, action in item.categories.items()},
                "unknown": item.unknown.value if item.unknown is not None else None,
                "block_all": item.block_all,
                "takes_requests": item.takes_requests,
                "requests": dict(item.requests),
                "services": dict(item.services),
            }
        case Schedule():
            windows = [[window.begin, window.end, sorted(window.days)] for window in item.windows]
            return {
                "policy": item.policy,
                "effect": item.effect.value,
                "target": item.target,
                "windows": windows,
                "timezone": item.timezone,
            }
        case Pause():
            return {"scope": item.scope.value, "target": item.target, "until": item.until, "harm_too": item.harm_too}
        case Quota():
            counted = {"kind_of_target": item.kind.value, "target": item.target}
            other_days = {DAY_NAMES[day]: minutes for day, minutes in sorted(item.other_days.items())}
            return {
                "policy": item.policy,
                **counted,
                "minutes": item.minutes,
                "timezone": item.timezone,
                "other_days": other_days,
            }
        case Spent():
            return asdict(item)


def from_record(record: Mapping[str, Any]) -> PolicyItem:
    """Returns the item of a JSON object.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    name = str(record["name"])
    match record["kind"]:
        case "client":
            matchers = tuple(Matcher(MatcherKind(kind), str(value)) for kind, value in record["matchers"])
            group, policy = str(record.get("group", DEFAULT)), str(record.get("policy", ""))
            return Client(name, matchers, group, policy, _note(record), str(record.get("icon", "")))
        case "group":
            return Group(name, str(record.get("policy", "")), _note(record))
        case "policy":
            return _policy(name, record)
        case "schedule":
            return _schedule(name, record)
        case "pause":
            scope = PauseScope(record["scope"])
            return Pause(scope, str(record["target"]), float(record["until"]), bool(record.get("harm_too", False)))
        case "quota":
            return _quota(name, record)
        case "spent":
            return Spent(str(record["quota"]), str(record["client"]), float(record["since"]), float(record["until"]))
        case other:
            raise ValueError(f"no kind of policy item: {other!r}")


def _note(record: Mapping[str, Any]) -> str:
    return str(record.get("note", ""))


def _policy(name: str, record: Mapping[str, Any]) -> Policy:
    unknown = record.get("unknown")
    block_all = record.get("block_all")
    takes_requests = record.get("takes_requests")
    return Policy(
        name,
        {str(source): bool(on) for source, on in record.get("sources", {}).items()},
        {str(category): CategoryAction(action) for category, action in record.get("categories", {}).items()},
        UnknownAction(unknown) if unknown is not None else None,
        bool(block_all) if block_all is not None else None,
        bool(takes_requests) if takes_requests is not None else None,
        usable_values(record.get("requests")),
        {str(service): bool(blocked) for service, blocked in record.get("services", {}).items()},
    )


def _quota(name: str, record: Mapping[str, Any]) -> Quota:
    kind, target = QuotaKind(record["kind_of_target"]), str(record["target"])
    other_days = {DAY_NAMES.index(day): int(minutes) for day, minutes in record.get("other_days", {}).items()}
    return Quota(name, str(record["policy"]), kind, target, int(record["minutes"]), str(record["timezone"]), other_days)


def _schedule(name: str, record: Mapping[str, Any]) -> Schedule:
    windows = tuple(
        Window(int(begin), int(end), frozenset(map(int, days)) if days else ALL_DAYS) for begin, end, days in record["windows"]
    )
    return Schedule(
        name,
        str(record["policy"]),
        ScheduleEffect(record["effect"]),
        windows,
        str(record["timezone"]),
        str(record.get("target", "")),
    )
