"""What messages say of each event, and how what others wrote is cut."""

import pytest

from gatewayfilter.interfaces import Notification
from gatewayfilter.notify.message import compose, one_line
from tests.case_tables import all_cases

EVENTS = [
    (
        "request",
        {"request": 7, "url": "http://a.example/b", "client": "10.0.0.7", "client_name": "Kim", "reason": "learned"},
        "Kim asks for a.example",
        (
            "Kim asks to unblock http://a.example/b\nBlocked by: learned\n"
            "To approve: gatewayfilter request approve 7 --for 1h\nTo deny: gatewayfilter request deny 7"
        ),
    ),
    (
        "request",
        {"request": 8, "url": "about:blank", "client": "10.0.0.7", "reason": "learned", "category": "ads", "comment": "please"},
        "10.0.0.7 asks for about:blank",
        (
            "10.0.0.7 asks to unblock about:blank\nBlocked by: learned, ads\nNote: please\n"
            "To approve: gatewayfilter request approve 8 --for 1h\nTo deny: gatewayfilter request deny 8"
        ),
    ),
    (
        "request",
        {},
        " asks for ",
        (
            " asks to unblock \nBlocked by: \n"
            "To approve: gatewayfilter request approve 0 --for 1h\nTo deny: gatewayfilter request deny 0"
        ),
    ),
    (
        "source",
        {"source": "mine", "days": 3, "error": "HTTP 404"},
        "the list mine is out of date",
        (
            "The list mine could not be updated for 3 days: HTTP 404\n"
            "Its last good copy is in use. See: gatewayfilter source status mine"
        ),
    ),
    (
        "source",
        {},
        "the list  is out of date",
        "The list  could not be updated for ? days: \nIts last good copy is in use. See: gatewayfilter source status ",
    ),
    (
        "device",
        {"mac": "02:00:00:00:00:01", "address": "10.0.0.9"},
        "new device 10.0.0.9",
        (
            "A device that is no client is on the network: 10.0.0.9, 02:00:00:00:00:01\n"
            "To name it: gatewayfilter client add NAME --address 02:00:00:00:00:01"
        ),
    ),
    ("test", {}, "test", "This is a test. Messages arrive."),
]


@all_cases("event, facts, title, text", EVENTS)
def test_what_is_said_of_an_event(event: str, facts: dict[str, object], title: str, text: str) -> None:
    message = compose([Notification(5, event, 2.0, facts)])
    assert (message.number, message.event, message.title, message.text) == (5, event, f"GatewayFilter: {title}", text)
    number = facts.get("request", 0)
    approve = {"approve": f"gatewayfilter request approve {number} --for 1h"} if event == "request" else {}
    assert message.events == [{"number": 5, "event": event, "at": 2.0, **facts, **approve}]
    assert (message.link, message.link in message.text) == ("", True)


def test_requests_alone_have_a_link() -> None:
    linked = {event: compose([Notification(1, event, 2.0, {})], "http://filter.example/") for event, *_ in EVENTS}
    assert {event for event, message in linked.items() if message.link} == {"request"}
    assert linked["request"].text.endswith("deny 0\n\nhttp://filter.example/requests")
    both = compose([Notification(1, "test", 2.0, {}), Notification(2, "request", 2.0, {})], "http://filter.example")
    assert (both.link, both.event, both.number) == ("http://filter.example/requests", "digest", 2)
    assert both.text.startswith("This is a test. Messages arrive.\n\n asks to unblock ")


@all_cases(
    "event, fact, most",
    [
        ("request", "client_name", 100),
        ("request", "client", 100),
        ("request", "reason", 100),
        ("request", "category", 100),
        ("request", "url", 400),
        ("request", "comment", 400),
        ("source", "source", 100),
        ("source", "error", 400),
        ("device", "mac", 40),
        ("device", "address", 60),
    ],
)
def test_facts_are_cut(event: str, fact: str, most: int) -> None:
    for length, shown in ((most, "x" * most), (most + 1, f"{'x' * most}…")):
        text = compose([Notification(1, event, 2.0, {fact: "x" * length})]).text
        assert shown in text
        assert f"x{shown}" not in text
        assert ("…" in text) is (length > most)


@pytest.mark.parametrize("url", ["x" * 100, "http://[" + "x" * 100])
def test_an_address_without_a_host_is_cut_in_titles(url: str) -> None:
    message = compose([Notification(1, "request", 2.0, {"url": url, "client": "kim"})])
    assert message.title == f"GatewayFilter: kim asks for {url[:60]}"


def test_titles_are_cut() -> None:
    title = compose([Notification(1, "request", 2.0, {"url": f"http://{'x' * 300}/", "client": "kim"})]).title
    assert title == ("GatewayFilter: kim asks for " + "x" * 300)[:120]


@all_cases(
    "text, most, line",
    [
        ("a\r\n b\t\x00c", 9, "a b c"),
        ("\u202eabc", 9, "abc"),
        (17, 9, "17"),
        ("abc", 3, "abc"),
        ("abcd", 3, "abc…"),
    ],
)
def test_one_line(text: object, most: int, line: str) -> None:
    assert one_line(text, most) == line
