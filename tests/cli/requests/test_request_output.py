"""What `request`, `bypass` and `notify` print, in full: `gatewayfilter.cli.requests.request_commands`,
`gatewayfilter.cli.requests.bypass_commands`, `gatewayfilter.cli.requests.notify_commands`,
`gatewayfilter.cli.requests.whom_options`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.interfaces import BypassLink, ChannelState, RequestState, UnblockRequest
from gatewayfilter.model import Client, EntryKind, ListAction, ManualRule
from gatewayfilter.use_cases.requests import Approval, Whom
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

DAY = "2023-11-14 22:13"
REQUEST = UnblockRequest("http://a.example/", "10.0.0.7", "adblock", "easylist", "", "ads", "", MOMENT, request_id=3)
LINK = BypassLink("http://a.example/", EntryKind.URL, "a.example/", "client:tv", MOMENT, False, MOMENT, link_id=5)
RULE = ManualRule(7, ListAction.ALLOW, EntryKind.DOMAIN, ".a.example", scope="client:tv", expires_at=MOMENT)


class Decisions:
    """Decides requests as it is told to, and notes what it was asked."""

    answers: Any = None
    asked: list[Any]

    def __init__(self, store: object) -> None:
        del store

    def _answer(self, name: str, *given: object, **named: object) -> Any:
        Decisions.asked.append((name, *given, named))
        return Decisions.answers

    def approve(self, number: int, **named: object) -> Any:
        return self._answer("approve", number, **named)

    def deny(self, number: int, word: str) -> Any:
        return self._answer("deny", number, word=word)

    def link(self, number: int, **named: object) -> Any:
        return self._answer("link", number, **named)

    def add_link(self, page: object, **named: object) -> Any:
        return self._answer("add", str(page), **named)


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was recorded in the audit log, without the store."""
    found: list[Any] = []
    Decisions.asked = []
    monkeypatch.setattr("gatewayfilter.use_cases.requests.RequestDecisions", Decisions)
    for name in ("request_commands", "bypass_commands"):
        monkeypatch.setattr(f"gatewayfilter.cli.requests.{name}.record", lambda _store, *given: found.append(given))
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    monkeypatch.setattr("gatewayfilter.store.secret_key.load_key", lambda _folder, _name: b"key")
    monkeypatch.setattr("gatewayfilter.use_cases.requests.address_of", lambda _key, link: f"http://open/{link.link_id}")
    return found


def test_requests_are_listed_with_their_decision() -> None:
    open_: list[UnblockRequest] = []
    every: list[UnblockRequest] = []
    store = SimpleNamespace(unblock=SimpleNamespace(requests=lambda: every, open_requests=lambda: open_))
    assert texts(Doubled(store), "request", "list") == (0, "No open requests.\n", "")
    assert texts(Doubled(store), "request", "list", "--all") == (0, "There are no requests.\n", "")
    open_ += [REQUEST, replace(REQUEST, request_id=4, times=2, comment="please", client_name="tv")]
    assert texts(Doubled(store), "request", "list") == (
        0,
        (
            f"3: {REQUEST.who} asked at {DAY} for http://a.example/\n   blocked by adblock, ads, easylist\n"
            f"4: tv asked at {DAY}, 2 times for http://a.example/\n   blocked by adblock, ads, easylist\n   note: please\n"
            "To approve: gatewayfilter request approve 3 --for 1h\n"
        ),
        "",
    )
    assert [one["request_id"] for one in called(Doubled(store), "request", "list", "--json").json] == [3, 4]
    approved = replace(
        REQUEST, state=RequestState.APPROVED, decided_at=MOMENT, until=None, scope="group:kids", rule_ids=(7, 8), word="ok"
    )
    every += [
        REQUEST,
        approved,
        replace(REQUEST, state=RequestState.CLOSED),
        replace(REQUEST, state=RequestState.DENIED, decided_at=MOMENT),
    ]
    lines = texts(Doubled(store), "request", "list", "--all")[1].splitlines()
    assert lines[2:] == [
        lines[0],
        lines[1],
        f"   approved for the group kids for ever (entry 7, 8) at {DAY} answer: ok",
        lines[0],
        lines[1],
        "   closed",
        lines[0],
        lines[1],
        f"   denied at {DAY}",
    ]


def test_a_request_is_approved(recorded: list[Any]) -> None:
    Decisions.answers = Approval((REQUEST,), (RULE,))
    allows = f"3: entry 7 allows .a.example for the client tv until {DAY}.\n"
    assert texts(Doubled(), "request", "approve", "3") == (0, allows, "")
    usual = {"lifetime_s": 3_600.0, "site": None, "whom": Whom("", "", False), "word": "", "once": False}
    assert Decisions.asked.pop() == ("approve", 3, usual)
    action, url, detail, undo = recorded.pop()
    assert (action, url, detail, undo is not None) == (
        "request.approved",
        "http://a.example/",
        f"3 of {REQUEST.who}, for 1h",
        True,
    )
    client = Client("tv", ())
    Decisions.answers = Approval(
        (REQUEST,), (replace(RULE, expires_at=None, scope=""),), page_alone=True, client=client, link=LINK
    )
    arguments = ("--for", " Once ", "--site", "--client", "c", "--group", "g", "--all", "--word", "have fun")
    assert texts(Doubled(), "request", "approve", "3", *arguments)[1] == (
        "The device 10.0.0.7 is the client tv from now on.\n3: entry 7 allows .a.example for everybody for ever.\n"
        f"3: approved one visit of a.example/ for the client tv until {DAY}; the user opens it from the block page.\n"
        "   (this page alone: it was judged by itself, the rest of the site was not)\n"
    )
    once = {"lifetime_s": None, "site": True, "whom": Whom("c", "g", True), "word": "have fun", "once": True}
    assert Decisions.asked.pop() == ("approve", 3, once)
    document = called(Doubled(), "request", "approve", "3", "--for", "ever", "--page", "--json").json
    assert (document["client"], document["link"]["link_id"], document["rules"][0]["rule_id"]) == ("tv", 5, 7)
    assert document["requests"][0]["request_id"] == 3
    forever = Decisions.asked.pop()[2]
    assert (forever["lifetime_s"], forever["site"], forever["once"]) == (None, False, False)
    Decisions.answers = Approval((REQUEST,), (), site="a.example")
    site = "   (this page alone; for the whole site: gatewayfilter request approve 3 --for 1d --site)\n"
    assert texts(Doubled(), "request", "approve", "3", "--for", "1d")[1] == site
    assert called(Doubled(), "request", "approve", "3", "--json").json["client"] == ""
    assert "is no duration: write 1h, 1d, 10min or ever" in called(Doubled(), "request", "approve", "3", "--for", "x").complains()
    assert called(Doubled(), "request", "approve", "3", "--word", "x" * 5_000).code == 2


def test_a_request_is_denied(recorded: list[Any]) -> None:
    Decisions.answers = REQUEST
    assert texts(Doubled(), "request", "deny", "3", "--word", "no") == (
        0,
        f"3: denied http://a.example/ for {REQUEST.who}.\n",
        "",
    )
    assert recorded == [("request.denied", "http://a.example/", f"3 of {REQUEST.who}")]
    assert Decisions.asked == [("deny", 3, {"word": "no"})]
    assert called(Doubled(), "request", "deny", "3", "--json").json["request_id"] == 3


def test_links_are_made_for_requests_and_pages(recorded: list[Any]) -> None:
    Decisions.answers = LINK
    found = [REQUEST]
    store = SimpleNamespace(unblock=SimpleNamespace(find=lambda number: found[0] if number == 3 and found else None))
    shown = f"5: allows a.example/ for the client tv until {DAY}.\nhttp://open/5\n"
    assert texts(Doubled(store), "request", "link", "3") == (0, shown, "")
    usual = {"lifetime_s": 3_600.0, "once": False, "site": None, "whom": Whom("", "", False)}
    assert Decisions.asked.pop() == ("link", 3, usual)
    action, url, detail, undo = recorded.pop()
    assert (action, url, detail, undo is not None) == ("request.approved", "http://a.example/", "3, link for 1h", True)
    found.clear()
    Decisions.answers = replace(LINK, once=True, scope="")
    arguments = ("--for", "30min", "--once", "--page", "--client", "tv")
    once = f"5: allows one visit of a.example/ for everybody until {DAY}.\nhttp://open/5\n"
    assert texts(Doubled(store), "request", "link", "3", *arguments)[1] == once
    assert Decisions.asked.pop()[2] == {"lifetime_s": 1_800.0, "once": True, "site": False, "whom": Whom("tv", "", False)}
    assert recorded.pop()[3] is None
    answer = called(Doubled(store), "request", "link", "3", "--json").json
    assert (answer["address"], answer["link"]["link_id"]) == ("http://open/5", 5)
    Decisions.answers = LINK
    assert texts(Doubled(), "bypass", "add", "a.example") == (0, shown, "")
    assert Decisions.asked.pop() == (
        "add",
        "http://a.example/",
        {"lifetime_s": 600.0, "once": False, "site": False, "whom": Whom("", "", False)},
    )
    action, url, detail, undo = recorded.pop()
    assert (action, url, detail, undo is not None) == ("link.added", "http://a.example/", "for the client tv", True)
    texts(Doubled(), "bypass", "add", "a.example", "--for", "1d", "--once", "--site", "--group", "g", "--all")
    assert Decisions.asked.pop()[2] == {"lifetime_s": 86_400.0, "once": True, "site": True, "whom": Whom("", "g", True)}
    for command in (("request", "link", "3"), ("bypass", "add", "a.example")):
        assert "a link ends: write 10min, 1h or 1d" in called(Doubled(), *command, "--for", "ever").complains()


def test_links_are_listed_and_revoked(recorded: list[Any]) -> None:
    links = [replace(LINK, until=MOMENT + 60), replace(LINK, link_id=4, once=True, scope="")]
    store = SimpleNamespace(
        bypass=SimpleNamespace(links=lambda: links, revoke=lambda number, now: LINK if (number, now) == (5, MOMENT) else None)
    )
    rows = table(texts(Doubled(store), "bypass", "list")[1])
    assert rows[0] == ["id", "state", "for", "until", "once", "url"]
    assert [(row[0], row[2], row[3], row[4], row[5]) for row in rows[1:]] == [
        ("5", "the client tv", "2023-11-14 22:14", "no", "http://a.example/"),
        ("4", "everybody", DAY, "yes", "http://a.example/"),
    ]
    assert rows[1][1] != rows[2][1], "one has ended"
    assert [link["link_id"] for link in called(Doubled(store), "bypass", "list", "--json").json] == [5, 4]
    links.clear()
    assert texts(Doubled(store), "bypass", "list") == (0, "There are no links.\n", "")
    assert texts(Doubled(store), "bypass", "revoke", "5") == (0, "Revoked the link 5.\n", "")
    assert texts(Doubled(store), "bypass", "revoke", "6") == (1, "", "There is no link 6.\n")
    assert recorded == [("link.revoked", "http://a.example/")]
    answer = called(Doubled(store), "bypass", "revoke", "6", "--json")
    assert (answer.code, answer.json) == (1, {"revoked": False})


def test_channels_are_tried_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    results: dict[str, str] = {}
    states: dict[str, ChannelState | None] = {}
    none = "No channel is set up: see notify.webhook_url, notify.ntfy_url, notify.smtp_host, notify.command.\n"
    module = "gatewayfilter.use_cases.operation.notifications"
    monkeypatch.setattr(f"{module}.send_test", lambda settings, now: results if (settings, now) == (SETTINGS, MOMENT) else None)
    monkeypatch.setattr(
        f"{module}.channel_states", lambda settings, store: states if (settings, store) == (SETTINGS, "store") else None
    )
    assert texts(Doubled(), "notify", "test") == (1, none, "")
    assert texts(Doubled("store"), "notify", "status") == (0, none, "")
    results["ntfy"] = ""
    assert texts(Doubled(), "notify", "test") == (0, "ntfy: sent\n", "")
    results["mail"] = "refused"
    assert texts(Doubled(), "notify", "test") == (1, "ntfy: sent\nmail: refused\n", "")
    document = {"ntfy": {"sent": True, "error": ""}, "mail": {"sent": False, "error": "refused"}}
    assert called(Doubled(), "notify", "test", "--json").json == document
    states |= {
        "new": None,
        "good": ChannelState(1, MOMENT),
        "idle": ChannelState(1),
        "bad": ChannelState(1, MOMENT, 2, failing_since=MOMENT + 60, error="refused"),
    }
    assert table(texts(Doubled("store"), "notify", "status")[1]) == [
        ["channel", "state", "last message", "failures", "since", "last error"],
        ["new", "not used yet", "0"],
        ["good", "good", DAY, "0"],
        ["idle", "good", "0"],
        ["bad", "fails", DAY, "2", "2023-11-14 22:14", "refused"],
    ]
    assert called(Doubled("store"), "notify", "status", "--json").json["bad"]["failures"] == 2
