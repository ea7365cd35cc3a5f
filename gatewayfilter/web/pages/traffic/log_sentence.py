"""The filters of the log as parts of a sentence: what each says now, and the addresses that its other values lead to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from gatewayfilter.model import PolicySet
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.traffic.log_filters import LogFilters
from gatewayfilter.web.pages.traffic.log_rows import log_url

_MOST_NAMES: Final = 300

type Translate = Callable[[str], str]


def _n(message: str) -> str:
    """Marks a message for translation."""
    return message


_OUTCOMES: Final = (
    ("", _n("any outcome")),
    ("blocked", _n("blocked")),
    ("allowed", _n("allowed")),
    ("learned", _n("learned")),
    ("unknown", _n("allowed, on no list")),
)
_TIMES: Final = (
    ("", _n("at any time")),
    ("1h", _n("in the last hour")),
    ("today", _n("today")),
    ("yesterday", _n("since yesterday")),
    ("7d", _n("in 7 days")),
    ("30d", _n("in 30 days")),
)


@dataclass(frozen=True, slots=True)
class Option:
    """A value of a part, with its address."""

    label: str
    href: str
    current: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the sentence.

    Attributes:
        name: of the condition.
        label: what it says now.
        options: its values.
        is_set: whether it is a condition.
    """

    name: str
    label: str
    options: tuple[Option, ...]
    is_set: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """All parts.

    Attributes:
        parts: with menus.
        others: further conditions, each with the address without it.
        hidden: the conditions for a form that changes the text.
    """

    parts: tuple[Part, ...]
    others: tuple[Option, ...] = ()
    hidden: dict[str, str] = field(default_factory=dict)


class SentenceMaker:
    """Makes the sentence of a page.

    Args:
        filters: of the page.
        view: `sites` or `all`.
        policies: with clients and groups.
        categories: pairs of code and title.
        translate: translates a message.
    """

    def __init__(
        self, filters: LogFilters, view: str, policies: PolicySet, categories: Iterable[tuple[str, str]], translate: Translate
    ) -> None:
        self._filters = filters
        self._view = {"view": view} if view == "all" else {}
        self._policies = policies
        self._categories = list(categories)
        self._translate = translate

    def make(self) -> Sentence:
        """Returns the sentence."""
        filters, translate = self._filters, self._translate
        outcomes = [(code, translate(label)) for code, label in _OUTCOMES]
        times = [(code, translate(label)) for code, label in _TIMES]
        categories = [("", translate(_n("any category"))), *self._categories]
        parts = (
            self._part("outcome", outcomes, filters.outcome),
            self._part("category", categories, filters.category),
            self._who(),
            self._part("since", times, filters.since, custom=f"{translate(_n('since'))} {filters.since.replace('T', ' ')}"),
        )
        others = tuple(
            Option(f"{translate(label)} {value}", self._url(**{name: ""}))
            for name, label, value in (
                ("until", _n("until"), filters.until.replace("T", " ")),
                ("site", _n("on the site"), filters.site),
                ("list", _n("by the list"), filters.list),
                ("reason", _n("because of"), filters.reason),
            )
            if value
        )
        return Sentence(parts, others, {name: value for name, value in (filters.given | self._view).items() if name != "q"})

    def _who(self) -> Part:
        filters = self._filters
        label = filters.client or filters.group or self._translate(_n("everybody"))
        options = [
            Option(self._translate(_n("everybody")), self._url(client="", group=""), not (filters.client or filters.group))
        ]
        options += [
            Option(f"{self._translate(_n('group'))} {name}", self._url(client="", group=name), filters.group == name)
            for name in sorted(self._policies.groups)[:_MOST_NAMES]
        ]
        options += [
            Option(name, self._url(client=name, group=""), filters.client == name)
            for name in sorted(self._policies.clients, key=name_order)[:_MOST_NAMES]
        ]
        return Part("client", label, tuple(options), bool(filters.client or filters.group))

    def _part(self, name: str, values: Iterable[tuple[str, str]], current: str, custom: str = "") -> Part:
        options = tuple(Option(label, self._url(**{name: code}), code == current) for code, label in values)
        label = next((option.label for option in options if option.current), custom or current)
        return Part(name, label, options, bool(current))

    def _url(self, **changes: str) -> str:
        return log_url(**self._filters.but(**changes), **self._view)
