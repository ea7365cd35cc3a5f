import time
from datetime import UTC, datetime

import click
import pytest

from gatewayfilter.cli.ui.dates import expiry_option, past_option, read_duration, read_moment, show_day, show_moment
from tests.case_tables import all_cases

CONTEXT = click.Context(click.Command("x"))
OPTION = click.Option(["--at"])


@all_cases(
    ("text", "seconds"),
    [
        ("7d", 604_800),
        ("12h", 43_200),
        ("1d12h", 129_600),
        ("30m", 1800),
        ("30min", 1800),
        ("2W", 1_209_600),
        ("0s", 0),
        ("1.5h", 5400),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@all_cases("text", ["", "d", "7", "7x", "7d!", "-7d", "7 days"])
def test_what_is_no_duration(text: str) -> None:
    assert read_duration(text) is None


def test_a_duration_counts_from_now_in_either_direction() -> None:
    before = time.time()
    assert read_moment("1h") - before == pytest.approx(3600, abs=60)
    assert before - read_moment("1h", back=True) == pytest.approx(3600, abs=60)


def test_iso_times_mean_what_they_say() -> None:
    assert read_moment("2030-01-31T18:00:00+00:00") == datetime(2030, 1, 31, 18, tzinfo=UTC).timestamp()
    assert show_moment(read_moment("2030-01-31T18:00")) == "2030-01-31 18:00:00"
    assert show_day(read_moment("2030-01-31")) == "2030-01-31 00:00"


@all_cases("text", ["soon", "2030-13-01", "9999999999d", "1900-01-01", "99999999999999y", "0001-01-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        read_moment(text)


def test_an_expiry_must_lie_ahead() -> None:
    with pytest.raises(click.BadParameter, match="past"):
        expiry_option(CONTEXT, OPTION, "2001-01-01")
    assert expiry_option(CONTEXT, OPTION, None) is None
    assert past_option(CONTEXT, OPTION, None) is None


def test_no_moment_is_never() -> None:
    assert show_moment(None) == "never"
    assert show_day(None) == ""
