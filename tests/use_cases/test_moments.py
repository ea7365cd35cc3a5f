"""Durations and points in time as people write them, over days of 23 and 25 hours as well."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.use_cases.moments import LATEST, midnight, read_duration, read_moment

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


NOON = at("2026-06-10T12:00")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5), ("2m", 120), ("2min", 120), ("3h", 10_800), ("1d", 86_400), ("2w", 1_209_600), ("1y", 31_536_000),
        ("1d12h", 129_600), (" 1.5H ", 5_400), ("0s", 0), ("", None), ("5", None), ("d", None), ("5 d", None), ("-5d", None),
        ("5dx", None), ("1234567890d", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "now", "moment"),
    [
        ("2h", NOON, NOON - 7_200),
        ("today", NOON, at("2026-06-10T00:00")),
        ("Yesterday", NOON, at("2026-06-09T00:00")),
        ("11:59", NOON, at("2026-06-10T11:59")),
        ("12:00", NOON, NOON),
        ("12:01", NOON, at("2026-06-09T12:01")),
        ("9:05", NOON, at("2026-06-10T09:05")),
        ("2026-06-01T08:00", NOON, at("2026-06-01T08:00")),
        ("2026-06-01T08:00Z", NOON, at("2026-06-01T10:00")),
        ("today", at("2026-03-29T12:00"), at("2026-03-29T00:00")),
        ("yesterday", at("2026-03-30T00:30"), at("2026-03-29T00:00")),
        ("08:00", at("2026-03-29T12:00"), at("2026-03-29T08:00")),
        ("20:00", at("2026-10-25T12:00"), at("2026-10-24T20:00")),
    ],
)
def test_times_gone_by(text: str, now: float, moment: float) -> None:
    assert read_moment(text, now, back=True, zone=BERLIN) == moment


def test_times_to_come() -> None:
    assert read_moment("2h", NOON, zone=BERLIN) == NOON + 7_200
    assert read_moment("2026-12-24", NOON, zone=BERLIN) == at("2026-12-24T00:00")


@pytest.mark.parametrize("text", ["today", "12:00", "soon", "", "24:00", "12:60", "x" * 300])
def test_what_is_no_time_to_come(text: str) -> None:
    with pytest.raises(PolicyError, match="is no time: write 7d, 12h or 2030-01-31T18:00") as caught:
        read_moment(text, NOON, zone=BERLIN)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["9000y", "1969-12-31T00:00Z"])
def test_times_that_dates_cannot_show(text: str) -> None:
    with pytest.raises(PolicyError, match="too far away"):
        read_moment(text, NOON, zone=BERLIN)


def test_the_first_and_the_last_moment() -> None:
    assert read_moment("1970-01-01T00:00Z", NOON) == 0
    assert read_moment("1s", LATEST - 2) == LATEST - 1
    with pytest.raises(PolicyError):
        read_moment("1s", LATEST - 1)


def test_midnights_of_days_gone_by() -> None:
    assert midnight(NOON, BERLIN) == at("2026-06-10T00:00")
    assert midnight(at("2026-10-26T01:00"), BERLIN, days_ago=1) == at("2026-10-25T00:00")
