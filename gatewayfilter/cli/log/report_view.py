"""The sections of a report as tables of text, which the terminal and the HTML file show alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gatewayfilter.cli.log.report_words import WORDS
from gatewayfilter.cli.ui.dates import local_time, show_day
from gatewayfilter.model import LogDimension

if TYPE_CHECKING:
    from gatewayfilter.use_cases.traffic.log_report import Report

_LONGEST: Final = 100
_BARS: Final = 60
_TOPS: Final = (
    ("hosts", LogDimension.HOST),
    ("categories", LogDimension.CATEGORY),
    ("sources", LogDimension.SOURCE),
    ("reasons", LogDimension.REASON),
)


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its title; without rows it shows that there are none."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the chart: the requests of an hour or a day, and the blocked ones of them."""

    label: str
    decisions: int
    blocked: int


def sections_of(report: Report, language: str) -> list[Section]:
    """Returns the tables of a report."""
    words = WORDS[language]
    counts = (words["name"], words["decisions"], words["blocked"])
    found = [
        Section(
            words["who"],
            counts,
            tuple((_name(one.name, words), f"{one.decisions:,}", f"{one.blocked:,}") for one in report.clients),
        )
    ]
    for key, dimension in _TOPS:
        rows = tuple((_name(one.name, words), f"{one.blocked:,}") for one in report.blocked(dimension))
        found.append(Section(words[key], (words["name"], words["blocked"]), rows))
    devices = tuple((one.name or "-", one.client, show_day(one.first_at)) for one in report.new_devices)
    found.append(Section(words["devices"], (words["name"], words["client"], words["since"]), devices))
    requests = tuple(
        (
            _cut(one.url),
            one.client_name or one.client,
            _cut(one.comment),
            words[f"state-{one.state}"],
            _cut(one.word),
            show_day(one.at),
        )
        for one in report.requests
    )
    asked = (words["page"], words["client"], words["comment"], words["state"], words["answer"], words["since"])
    found.append(Section(words["requests"], asked, requests))
    learned = tuple((_cut(one.url), one.category, show_day(one.created_at)) for one in report.learned)
    title = words["learned"].format(count=f"{report.learned_count:,}")
    found.append(Section(title, (words["page"], words["category"], words["since"]), learned))
    return found


def total_of(report: Report, language: str) -> str:
    """Returns the sentence with the sums."""
    summary = report.summary
    percent = round(100 * summary.blocked / summary.decisions) if summary.decisions else 0
    words = WORDS[language]
    text = words["total"].format(decisions=f"{summary.decisions:,}", blocked=f"{summary.blocked:,}", percent=percent)
    if summary.uncounted:
        text += " " + words["uncounted"].format(count=f"{summary.uncounted:,}")
    return text


def lists_of(report: Report, language: str) -> str:
    """Returns the sentence about the subscriptions."""
    words = WORDS[language]
    key = "no_lists" if not report.sources else "failing" if report.failing else "lists"
    return words[key].format(count=report.sources, names=", ".join(report.failing))


def span_of(report: Report, language: str) -> str:
    """Returns the time span."""
    return WORDS[language]["span"].format(since=show_day(report.since), until=show_day(report.until))


def bars_of(report: Report) -> list[Bar]:
    """Returns the chart: hours, or days where there are more than `_BARS` hours."""
    by_day = len(report.summary.hours) > _BARS
    every, blocked = Counter[str](), Counter[str]()
    for hour in report.summary.hours:
        label = local_time(hour.start).strftime("%Y-%m-%d" if by_day else "%m-%d %H:00")
        every[label] += hour.decisions
        blocked[label] += hour.blocked
    return [Bar(label, count, blocked[label]) for label, count in every.items()][-_BARS:]


def _name(name: str, words: dict[str, str]) -> str:
    return _cut(name) or words["others"]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
