"""Policies and what they apply to: clients, groups, policies, schedules, pauses, quotas. Pure values, named as in commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gatewayfilter.model.client_matcher import Matcher

DEFAULT: Final = "default"
"""The group of clients without another one, and of clients that are not recognized; also its policy."""

HARMFUL_CATEGORIES: Final = frozenset({"malware", "phishing", "fraud"})
"""Categories that a pause does not lift unless it includes them."""

ALL_DAYS: Final = frozenset(range(7))

ICONS: Final = ("camera", "console", "desktop", "laptop", "phone", "printer", "speaker", "tablet", "tv", "watch")
"""Kinds of devices for which a client may have an icon."""


class CategoryAction(StrEnum):
    """The effect of lists of a category: block; allow but mark in the log for review; allow."""

    BLOCK = "block"
    REVIEW = "review"
    ALLOW = "allow"


class UnknownAction(StrEnum):
    """The treatment of URLs on no list. With `proxy.unknown = "inspect"`, allowed pages are inspected for every client."""

    ALLOW = "allow"
    HOLD = "hold"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Client:
    """A device or person.

    Attributes:
        name: unique.
        matchers: what it is recognized by; no two clients have the same one.
        group: name of its group.
        policy: name of its own policy, `""` for none.
        note: free text.
        icon: one of `ICONS`, `""` for none.
    """

    name: str
    matchers: tuple[Matcher, ...] = ()
    group: str = DEFAULT
    policy: str = ""
    note: str = ""
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of clients.

    Attributes:
        policy: name of its policy, `""` for none.
    """

    name: str
    policy: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """The values of a policy; each that is unset is inherited, each category and source by itself.

    Attributes:
        sources: name of a source → whether it is on.
        categories: category → the effect of its lists.
        unknown: treatment of URLs on no list, `None` when unset.
        block_all: whether everything is blocked that no manual rule allows, `None` when unset.
        takes_requests: whether block pages take requests to unblock pages, `None` when unset.
        requests: the values that act on requests, by key, in canonical form (request_values.py).
        services: id of a service → whether it is blocked.
    """

    name: str
    sources: Mapping[str, bool] = field(default_factory=dict)
    categories: Mapping[str, CategoryAction] = field(default_factory=dict)
    unknown: UnknownAction | None = None
    block_all: bool | None = None
    takes_requests: bool | None = None
    requests: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, bool] = field(default_factory=dict)


class ScheduleEffect(StrEnum):
    """The effect of a schedule while one of its windows is open."""

    BLOCK_ALL = "block-all"
    BLOCK_CATEGORY = "block-category"
    ALLOW_CATEGORY = "allow-category"
    USE_POLICY = "use-policy"
    BLOCK_SERVICE = "block-service"
    ALLOW_SERVICE = "allow-service"


@dataclass(frozen=True, slots=True)
class Window:
    """A daily window in wall-clock time.

    It belongs to the day on which it begins; one that ends no later than it begins ends the day after.

    Attributes:
        begin, end: minutes of the day; `end` up to 1,440, which is midnight at the end of the day.
        days: weekdays on which it begins, 0 is Monday.
    """

    begin: int
    end: int
    days: frozenset[int] = ALL_DAYS


@dataclass(frozen=True, slots=True)
class Schedule:
    """Windows of time in which a layer lies over a policy.

    Attributes:
        policy: name of the policy.
        target: the category, service or policy of the effect, `""` for `BLOCK_ALL`.
        timezone: IANA name of the zone of the windows.
    """

    name: str
    policy: str
    effect: ScheduleEffect
    windows: tuple[Window, ...]
    timezone: str
    target: str = ""


class PauseScope(StrEnum):
    """What a pause applies to."""

    ALL = "all"
    GROUP = "group"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Pause:
    """Filtering is paused. There is one pause per scope and target.

    Attributes:
        target: name of the group or client, `""` for all.
        until: Unix seconds.
        harm_too: lists of `HARMFUL_CATEGORIES` are paused, too.
    """

    scope: PauseScope
    target: str
    until: float
    harm_too: bool = False

    @property
    def name(self) -> str:
        """What identifies the pause: `all`, `group:NAME` or `client:NAME`."""
        return f"{self.scope}:{self.target}" if self.target else self.scope.value


class QuotaKind(StrEnum):
    """What a quota counts."""

    SERVICE = "service"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True)
class Quota:
    """Minutes a day that each client of a policy may use a service, or a category: services of that group, and its lists.

    Attributes:
        policy: name of the policy.
        minutes: a day; minutes of the clock, in each of which it was used at all.
        target: id of the service, or name of the category.
        timezone: IANA name of the zone in which a day begins.
        other_days: weekday → its minutes, where they differ; 0 is Monday.
    """

    name: str
    policy: str
    kind: QuotaKind
    target: str
    minutes: int
    timezone: str
    other_days: Mapping[int, int] = field(default_factory=dict)

    def minutes_of(self, day: int) -> int:
        """Returns the minutes of a day, given as its proleptic ordinal."""
        return self.other_days.get((day - 1) % 7, self.minutes)


@dataclass(frozen=True, slots=True)
class Spent:
    """A quota that a client has used up.

    Attributes:
        quota: its name.
        client: whose, as in `QuotaUse`.
        since: Unix seconds at which the last minute ends.
        until: Unix seconds at which the next day begins.
    """

    quota: str
    client: str
    since: float
    until: float

    @property
    def name(self) -> str:
        """What identifies it: quota and client."""
        return f"{self.quota}:{self.client}"


type PolicyItem = Client | Group | Policy | Schedule | Pause | Quota | Spent
