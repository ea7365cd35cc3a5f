"""The check of an address, single sign-on and live decisions, by pages and API: what is asked, and what is told of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import PolicyError, StoreError
from gatewayfilter.model import Action, DeciderAnswer, LogQuery, Reason, ResourceType, Role, Verdict
from gatewayfilter.use_cases.access.log_in import LogInResult, LogInStatus
from gatewayfilter.use_cases.sign_on.failures import SignOnError, SignOnReason
from gatewayfilter.use_cases.sign_on.flow import Answer
from gatewayfilter.use_cases.traffic.live_log import LiveBatch
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.access.identity import Role as WebRole
from gatewayfilter.web.api.traffic import events
from gatewayfilter.web.pages.traffic import log
from tests.web.pages.test_page_values import NOW, Kept, kept
from tests.web.people_fakes import TABLET, household
from tests.web.traffic_log import decision
from tests.web.web_fakes import ADMIN, CSRF, VIEWER

SIGN_ON = "/login/oidc"
BLOCK = Verdict(Action.BLOCK, Reason.BLACKLIST, "l", "r", 7, "ads", "d")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    oidc = {
        f"web__oidc__{name}": value
        for name, value in (("issuer", "https://id.example"), ("client_id", "c"), ("client_secret", "s"))
    }
    with kept(tmp_path_factory.mktemp("other"), filter__timezone="UTC", **oidc) as web:
        household(web.services.store, NOW)
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.who.identity = ADMIN
    opened.client.cookies.clear()


@dataclass
class Value:
    """A value of a policy, or what is left of a quota."""

    key: str = "k"
    value: str = "v"
    origin: str = "settings"
    policy: str = ""


def found(**more: Any) -> Any:
    answers = (DeciderAnswer("manual", "miss", "none"), DeciderAnswer("blacklist", "block", "it is", BLOCK))
    facts: dict[str, Any] = {
        "explanation": SimpleNamespace(
            request=SimpleNamespace(url=SimpleNamespace(text="http://a.example/")), verdict=BLOCK, answers=answers
        ),
        "client": None,
        "connection": None,
        "judged": None,
        "quotas": [],
        "policy": SimpleNamespace(policies=("kids",), values=[Value()], schedules=[SimpleNamespace(name="s")]),
    }
    return SimpleNamespace(**(facts | more))


def test_a_check_is_asked_for_by_the_page(web: Kept) -> None:
    shown = web.get("/check")
    assert (shown["found"], shown["steps"], shown["problem"], shown["active"], web.child.jobs) == (None, (), "", "check", [])
    assert (shown["names"], shown["types"]) == ([TABLET, "laptop", "tv"], [kind.value for kind in ResourceType])
    assert shown["services_by_id"] == web.services.services
    assert web.get("/check?url=%20")["found"] is None
    web.child.results = {"check": found()}
    query = {"url": " a.example/x ", "client": " tv ", "at": "2027-01-15T18:00", "source": " b.example ", "type": "script"}
    shown = web.get("/check", params=query)
    asked, client, now, at = web.child.jobs[-1][1][1:]
    assert (asked.url.text, asked.source.text, asked.resource_type, asked.method) == (
        "http://a.example/x", "http://b.example/", ResourceType.SCRIPT, "GET",
    )  # fmt: skip
    assert (client, now, at) == ("tv", NOW, datetime(2027, 1, 15, 18, tzinfo=UTC).timestamp())
    assert ([step.wins for step in shown["steps"]], shown["form"].client, shown["problem"]) == ([False, True], " tv ", "")
    web.get("/check?url=a.example&type=nonsense")
    asked, client, _, at = web.child.jobs[-1][1][1:]
    assert (asked.source, asked.resource_type, client, at) == (None, ResourceType.DOCUMENT, "", None)
    web.child.results = {"check": PolicyError("no client")}
    assert web.client.get("/check?url=a.example").status_code == 422
    assert (web.pages.values["problem"], web.pages.values["found"], web.pages.values["steps"]) == ("no client", None, ())
    web.child.results = {"check": StoreError("away")}
    assert web.client.get("/check?url=a.example").status_code == 503


def test_a_check_is_asked_for_by_the_api(web: Kept) -> None:
    web.child.results = {"check": found()}
    verdict = {
        "action": "block",
        "reason": "blacklist",
        "list": "l",
        "rule": "r",
        "line": 7,
        "category": "ads",
        "detail": "d",
        "unknown": False,
    }
    plain = web.client.get("/api/v1/check", params={"url": "a.example"}).json()
    assert plain == {
        "url": "http://a.example/",
        "client": "",
        "verdict": verdict,
        "unread": False,
        "policies": ["kids"],
        "schedules": ["s"],
        "quotas": [],
        "values": [{"key": "k", "value": "v", "origin": "settings", "policy": ""}],
        "classification": "",
        "answers": [
            {"decider": "manual", "answer": "miss", "explanation": "none", "verdict": None},
            {"decider": "blacklist", "answer": "block", "explanation": "it is", "verdict": verdict},
        ],
    }
    asked, client, now, at = web.child.jobs[-1][1][1:]
    assert (asked.method, asked.source, asked.resource_type, client, now, at) == (
        "GET",
        None,
        ResourceType.DOCUMENT,
        "",
        NOW,
        None,
    )
    judged = (SimpleNamespace(summary=lambda: "score 42"), 1.0)
    more = {
        "client": SimpleNamespace(name="tv"),
        "connection": SimpleNamespace(unread=True),
        "judged": judged,
        "quotas": [Value()],
    }
    web.child.results = {"check": found(**more)}
    query = {
        "url": "a.example",
        "source": "b.example",
        "type": "script",
        "method": "post",
        "client": "tv",
        "at": "2027-01-15T18:00",
    }
    full = web.client.get("/api/v1/check", params=query).json()
    assert (full["client"], full["unread"], full["classification"], full["quotas"][0]["key"]) == ("tv", True, "score 42", "k")
    asked, client, _, at = web.child.jobs[-1][1][1:]
    assert (asked.method, asked.source.text, asked.resource_type, client, at) == (
        "POST",
        "http://b.example/",
        ResourceType.SCRIPT,
        "tv",
        datetime(2027, 1, 15, 18, tzinfo=UTC).timestamp(),
    )
    web.child.results = {"check": found(connection=SimpleNamespace(unread=False))}
    assert web.client.get("/api/v1/check?url=a.example").json()["unread"] is False


class SignOn:
    """A provider that answers as the test wants."""

    def __init__(self) -> None:
        self.error: SignOnError | None = None
        self.asked: list[tuple[Any, ...]] = []
        self.result: Any = None

    def begin(self, *given: Any) -> tuple[str, str]:
        self.asked.append(given)
        if self.error is not None:
            raise self.error
        return "https://id.example/authorize", "kept"

    def complete(self, *given: Any) -> tuple[LogInResult, str]:
        self.asked.append(given)
        if self.error is not None:
            raise self.error
        return self.result, "/rules"


def test_a_log_in_goes_to_the_provider_and_back(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = SignOn()
    web.services.__dict__["sign_on"] = provider
    access = web.services.access
    account = access.accounts.add("ada", Role.ADMIN, None, external_id="https://id.example x")
    for asked, place in (("/rules", "/rules"), ("//evil", "/")):
        assert web.led(f"{SIGN_ON}?next={asked}") == place
    web.who.identity = None
    answer = web.client.get(f"{SIGN_ON}?next=/rules")
    back = "http://127.0.0.1:8081/login/oidc/callback"
    assert (answer.status_code, answer.headers["location"], provider.asked) == (
        303,
        "https://id.example/authorize",
        [("/rules", back)],
    )
    assert "gatewayfilter-sign-on=kept; " in answer.headers["set-cookie"]
    before = access.sessions.open(account, "n", "a")[1]
    web.who.identity = Identity("ada", WebRole.ADMIN, CSRF, account_id=account.account_id, session=before)
    provider.result = LogInResult(LogInStatus.DONE, account, None, "s3cret", "m4rk")
    answer = web.client.get(f"{SIGN_ON}/callback?state=s&code=c&iss=i")
    assert (answer.status_code, web.pages.template, web.pages.values) == (200, "system/signed_on.html", {"target": "/rules"})
    told, cookie, uri, source = provider.asked[-1]
    assert (told, cookie, uri, source.agent) == (Answer("s", "c", "", "i"), "kept", back, "testclient")
    cookies = answer.headers.get_list("set-cookie")
    assert ["s3cret" in cookies[0], "m4rk" in cookies[1], 'gatewayfilter-sign-on=""' in cookies[2]] == [True] * 3
    assert web.services.store.sessions.of_account(account.account_id) == []
    web.who.identity = None
    for reason, status in (
        (SignOnReason.WAIT, 429), (SignOnReason.BUSY, 503), (SignOnReason.PROVIDER, 502), (SignOnReason.SECRET, 500),
        (next(one for one in SignOnReason if one.name not in {"WAIT", "BUSY", "PROVIDER", "SECRET"}), 403),
    ):  # fmt: skip
        provider.error = SignOnError(reason, "d", "subject")
        for path in (SIGN_ON, f"{SIGN_ON}/callback"):
            answer = web.client.get(path)
            assert (answer.status_code, web.pages.values) == (
                status, {"reason": reason.value, "subject": "subject", "provider": "id.example"},
            )  # fmt: skip
            assert 'gatewayfilter-sign-on=""' in answer.headers["set-cookie"]
    monkeypatch.setattr(access, "has_accounts", lambda: False)
    assert web.led(SIGN_ON) == "/setup"
    web.services.__dict__["sign_on"] = None
    for path in (SIGN_ON, f"{SIGN_ON}/callback"):
        assert web.client.get(path).status_code == 404
    assert web.pages.values["detail"] == "there is no single sign-on; the setting web.oidc.issuer turns it on"


def test_live_decisions_are_sent_as_rows_and_as_json(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Any, ...]] = []

    async def stream(*values: Any) -> Any:
        given.append(values)
        yield b"end"

    monkeypatch.setattr(log, "stream", stream)
    monkeypatch.setattr(events, "stream", stream)
    records = [(number, decision(NOW, f"http://h{number}.example/", "192.0.2.10")) for number in range(1, 43)]
    batch = LiveBatch(tuple(records), 42, 3)
    web.who.identity = VIEWER
    answer = web.client.get("/log/live?site=a.example", headers={"last-event-id": "7"})
    assert (answer.text, answer.headers["cache-control"], answer.headers["content-type"][:17]) == (
        "end",
        "no-store",
        "text/event-stream",
    )
    _, batches, query, writer, start = given.pop()
    assert (batches is web.services.live_batches, query, start, writer.form) == (
        True,
        LogQuery(host="a.example"),
        7,
        ("en", False),
    )
    sent = writer.write(batch)
    data = json.loads(sent.partition("data: ")[2].partition("\n")[0])
    assert (sent[:18], data) == ("id: 42\nevent: rows", {"html": "", "rows": 40, "skipped": 5})
    assert ([row.number for row in web.pages.values["rows"]], web.pages.values["may_act"]) == (list(range(42, 2, -1)), False)
    web.who.identity = ADMIN
    web.client.get("/log/live", headers={"accept-language": "zh"})
    _, _, query, writer, start = given.pop()
    assert (query, writer.form, start) == (LogQuery(), ("zh", True), 0)
    answer = web.client.get("/api/v1/events?site=a.example", headers={"last-event-id": "9"})
    assert (answer.text, answer.headers["x-accel-buffering"]) == ("end", "no")
    _, batches, query, writer, start, state = given.pop()
    assert (batches is web.services.live_batches, query, start, writer.form) == (True, LogQuery(host="a.example"), 9, "json")
    broken = "||a.example^\u2028$\u0085"  # Python ends lines at these; within an event they would end its JSON
    sent = writer.write(LiveBatch(((1, decision(NOW, "http://h1.example/", "192.0.2.10", rule=broken)),), 1, 2))
    data = json.loads(sent.partition("data: ")[2].partition("\n")[0])
    assert (sent.partition("data")[0], data["skipped"], data["items"][0]["client_name"], data["items"][0]["rule"]) == (
        "id: 1\nevent: decisions\n",
        2,
        TABLET,
        broken,
    )
    assert state() == 'event: state\ndata: {"requests": 0, "reviews": 0}\n\n'
