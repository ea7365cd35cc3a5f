"""The log as a page: filters, groups, the drawer "Why?", actions, the live log."""

import html
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.urls import parse_url
from tests.web.template_preview import HOSTILE
from tests.web.traffic_log import OTHER, TABLET, decision, fill, publish, usual
from tests.web.web_fakes import VIEWER, Dashboard, dashboard

PARTIAL = {"hx-request": "true"}
ROW = re.compile(r'<tr class="log-row">.*?</tr>', re.DOTALL)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    fill(tmp_path, usual(time.time()))
    publish(tmp_path)
    with dashboard(tmp_path) as found:
        yield found


def rows(web: Dashboard, url: str) -> list[str]:
    answer = web.client.get(url)
    assert answer.status_code == 200, answer.text[:500]
    return ROW.findall(answer.text)


@pytest.mark.parametrize(
    ("conditions", "count"),
    [
        ("", 6),
        ("outcome=blocked", 3),
        ("client=Kim's tablet", 4),
        ("group=kids&outcome=learned", 1),
        ("q=bonus&view=all", 2),
        ("since=10min", 1),
    ],
)
def test_filters(web: Dashboard, conditions: str, count: int) -> None:
    assert len(rows(web, f"/log?{conditions}")) == count


def test_wrong_filter_is_told_and_the_page_still_there(web: Dashboard) -> None:
    page = web.client.get("/log?client=nobody at all").text
    assert "neither an address nor the name of a client" in html.unescape(page)
    assert 'class="chips"' in page


def test_requests_of_a_site_are_one_line_that_leads_to_all(tmp_path: Path) -> None:
    minute = (time.time() - 600) // 60 * 60
    fill(tmp_path, [decision(minute + at, f"https://a.poki.example/{at}", action=("allow", "block")[at % 2]) for at in range(10)])
    with dashboard(tmp_path) as web:
        (line,) = rows(web, "/log")
        assert "5 of 10 blocked" in line
        more = html.unescape(re.findall(r'log-more" href="([^"]+)"', line)[0])
        assert len(rows(web, more)) == 10


def test_pages_follow_each_other(tmp_path: Path) -> None:
    now = time.time()
    fill(tmp_path, [decision(now - 6000 + 60 * at, f"https://s{at}.example/") for at in range(70)])
    with dashboard(tmp_path) as web:
        first = web.client.get("/log").text
        older = html.unescape(re.findall(r'rel="next" href="([^"]+)"', first)[0])
        assert len(ROW.findall(first)) == 50
        assert len(rows(web, older)) == 20


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_urls_are_text(tmp_path: Path, text: str) -> None:
    url = f"https://evil.example/{text.replace(chr(0), '')[:1800]}"
    record = decision(time.time(), url, rule=text, source_list=text[:50], action="block", reason="blacklist")
    fill(tmp_path, [record])
    with dashboard(tmp_path) as web:
        for url in ("/log", "/log?view=all", "/log/1/why"):
            page = web.client.get(url).text
            assert "<script>alert" not in page
            assert "<img" not in page
            assert not re.search(r'href="\s*javascript', page)


def test_why_names_what_decided_and_where_values_come_from(web: Dashboard) -> None:
    web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".lucky.example")
    page = html.unescape(web.client.get("/log/3/why", headers=PARTIAL).text)
    assert "<!DOCTYPE" not in page
    assert page.index("step--wins") < page.index("a person's rule blocks .lucky.example")
    assert "Comes from" in page
    assert "learned: Gambling" in page


def test_what_if_it_were_another_client_or_time(web: Dashboard) -> None:
    page = web.client.get("/log/3/why?client=laptop&at=2040-01-31T18:00").text
    assert 'role="status"' in page
    assert "is no time" in html.unescape(web.client.get("/log/3/why?at=soon").text)


def test_allow_for_this_device_for_an_hour(web: Dashboard) -> None:
    data = {"action": "allow", "extent": "site", "whom": "client:Kim's tablet", "lifetime": "1h"}
    answer = web.client.post("/log/3/act", data=data, headers=PARTIAL)
    assert answer.status_code == 200
    assert "lucky.example is allowed for Kim's tablet until" in html.unescape(answer.text)
    (rule,) = web.services.store.lists.rules()
    assert (rule.pattern, rule.scope, rule.action) == (".lucky.example", "client:Kim's tablet", ListAction.ALLOW)
    assert rule.expires_at is not None
    assert abs(rule.expires_at - time.time() - 3600) < 60


def test_block_for_a_device_without_a_name(web: Dashboard) -> None:
    data = {"url": "https://bank.example/", "whom": f"device:{OTHER}", "extent": "page"}
    answer = web.client.post("/log/block", data=data, headers=PARTIAL)
    assert "is blocked for 192.168.1.77" in answer.text
    assert OTHER in web.services.store.policies.read().clients


@pytest.mark.parametrize(
    ("url", "action", "kind", "pattern"),
    [
        ("https://lucky.example/bonus?", "allow", EntryKind.WILDCARD, "lucky.example/bonus?*"),
        ("https://[2001:db8::1]:81/?", "allow", EntryKind.WILDCARD, "[2001:db8::1]:81/?*"),
        ("https://lucky.example/*?", "allow", EntryKind.URL, "lucky.example/*"),
        ("https://lucky.example/bonus?", "block", EntryKind.URL, "lucky.example/bonus"),
        ("https://lucky.example/bonus", "allow", EntryKind.URL, "lucky.example/bonus"),
    ],
)
def test_a_page_whose_query_was_not_kept(tmp_path: Path, url: str, action: str, kind: EntryKind, pattern: str) -> None:
    fill(tmp_path, [decision(time.time(), url)])
    publish(tmp_path)
    with dashboard(tmp_path) as web:
        text = web.client.post("/log/1/act", data={"action": action, "extent": "page"}, headers=PARTIAL).text
        (rule,) = web.services.store.lists.rules()
        assert (rule.kind, rule.pattern) == (kind, pattern)
        rules, asked = ManualRules([rule]), parse_url(f"{url}?x=1".replace("??", "?"))
        assert (rules.find(asked, rules.for_host(asked), 0.0) is rule) == (kind is EntryKind.WILDCARD or action == "block")
        assert ("what follows the question mark" in text, "It is still decided" in text) == (url.endswith("?"), False)


def test_without_scripts_a_form_leads_back(web: Dashboard) -> None:
    answer = web.client.post("/log/3/act", data={"action": "block", "whom": ""})
    assert (answer.status_code, answer.headers["location"]) == (303, "/log/3/why")


@pytest.mark.parametrize(
    "data",
    [
        {"action": "splice"},
        {"action": "allow", "lifetime": "2h"},
        {"action": "allow", "whom": "client:none"},
        {"action": "allow", "whom": "device:x y"},
        {"action": "allow", "extent": "all"},
    ],
)
def test_bad_actions_are_refused_and_change_nothing(web: Dashboard, data: dict[str, str]) -> None:
    assert web.client.post("/log/3/act", data=data, headers=PARTIAL).status_code in {404, 422}
    assert web.services.store.lists.rules() == []
    assert len(web.services.store.policies.read().clients) == 2


def test_viewers_see_no_actions(web: Dashboard) -> None:
    web.who.identity = VIEWER
    assert "/log/allow" not in web.client.get("/log").text
    assert "why-act" not in web.client.get("/log/3/why").text
    assert web.client.post("/log/3/act", data={"action": "allow"}).status_code == 403


def test_no_such_decision(web: Dashboard) -> None:
    for number in ("99", "0", "-1", str(1 << 70)):
        assert web.client.get(f"/log/{number}/why").status_code in {404, 422}


def test_live_rows(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.web.access.event_stream.LONGEST_S", 0.5)
    text = web.client.get("/log/live?outcome=blocked", headers={"last-event-id": "1"}).text
    (data,) = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    batch = json.loads(data)
    assert batch["rows"] == 3
    assert len(ROW.findall(batch["html"])) == 3
    assert TABLET not in batch["html"]


def test_a_live_batch_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.web.access.event_stream.LONGEST_S", 0.5)
    fill(tmp_path, [decision(time.time(), f"https://s{at}.example/") for at in range(300)])
    with dashboard(tmp_path) as web:
        text = web.client.get("/log/live", headers={"last-event-id": "1"}).text
        batch = json.loads(next(line for line in text.splitlines() if line.startswith("data: ")).removeprefix("data: "))
        assert (batch["rows"], batch["skipped"]) == (40, 259)
