"""Conditions on log records, and the parts of a logged URL that they look at."""

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.model.log_query import LONGEST_SEARCHED, LogBucket, LogQuery, client_of, host_of, is_below, searched_part

RECORD = LogRecord(
    at=100.0,
    client="10.0.0.2",
    method="GET",
    url="http://www.Example.org:8080/Some/path?q",
    resource_type="document",
    action="block",
    reason="list",
    source_list="ut1",
    category="gambling",
    user="anna",
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (LogQuery(), True),
        (LogQuery(since=100.0), True),  # the first that counts
        (LogQuery(since=100.5), False),
        (LogQuery(until=100.0), False),  # the first that no longer counts
        (LogQuery(until=100.5), True),
        (LogQuery(since=0.0, until=0.0), False),
        (LogQuery(clients=frozenset({"10.0.0.2"})), True),
        (LogQuery(clients=frozenset({"user:anna"})), True),
        (LogQuery(clients=frozenset({"10.0.0.3", "user:ben"})), False),
        (LogQuery(clients=frozenset()), False),
        (LogQuery(action="block"), True),
        (LogQuery(action="allow"), False),
        (LogQuery(reason="list"), True),
        (LogQuery(reason="learned"), False),
        (LogQuery(action="block", reason="learned"), False),
        (LogQuery(category="gambling"), True),
        (LogQuery(category="adult"), False),
        (LogQuery(source_list="ut1"), True),
        (LogQuery(source_list="other"), False),
        (LogQuery(category="gambling", source_list="other"), False),
        (LogQuery(host="www.Example.org"), True),
        (LogQuery(host="Example.org"), True),
        (LogQuery(host="ample.org"), False),
        (LogQuery(text="example"), True),
        (LogQuery(text="SOME/PATH"), True),
        (LogQuery(text="ww"), True),  # short: the beginning alone
        (LogQuery(text="xa"), False),
        (LogQuery(text="exa"), True),
        (LogQuery(text="http://www.e"), True),  # the scheme does not count
        (LogQuery(text="nowhere"), False),
        (LogQuery(text="example", host="other.org"), False),
    ],
)
def test_all_conditions_must_hold(query: LogQuery, *, expected: bool) -> None:
    assert query.matches(RECORD) is expected


def test_who_logged_in_to_nothing_is_no_user() -> None:
    record = RECORD._replace(user="")
    assert not LogQuery(clients=frozenset({"user:", "user:anna"})).matches(record)
    assert (client_of(record), client_of(RECORD)) == ("10.0.0.2", "user:anna")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://a.org/b", "a.org"),
        ("https://a.org:8443/b", "a.org"),
        ("a.org", "a.org"),
        ("a.org:443", "a.org"),
        ("a.org?b=c/d", "a.org"),
        ("http://[::1]/b", "[::1]"),
        ("http://[2001:db8::1]:80/", "[2001:db8::1]"),
        ("http://a.org:/", "a.org:"),
        ("", ""),
    ],
)
def test_the_host_of_a_logged_url(url: str, host: str) -> None:
    assert host_of(url) == host


def test_domains_and_what_is_below() -> None:
    assert [is_below(host, "a.org") for host in ("a.org", "b.a.org", "ba.org", "org", "")] == [True, True, False, False, False]


def test_what_is_searched_is_bounded() -> None:
    assert searched_part("HTTP://" + "A" * (LONGEST_SEARCHED + 1)) == "a" * LONGEST_SEARCHED


def test_a_part_of_a_chart_has_all_decisions() -> None:
    assert LogBucket(0.0, allowed=1, blocked=2, unknown=4, learned=3).decisions == 7
