"""The overview and the report as pages."""

import html
import inspect
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gatewayfilter import wiring
from gatewayfilter.errors import StoreError
from gatewayfilter.gateway.doh_servers import WELL_KNOWN, blocked_resolvers
from gatewayfilter.gateway.runtime_state import RuntimeState
from gatewayfilter.interfaces import CrawlRequest, UnblockRequest
from gatewayfilter.use_cases import filter_status
from gatewayfilter.use_cases.filter_status import Attention
from gatewayfilter.use_cases.traffic.health_facts import GatewayLeaks, HealthFacts, health_facts
from gatewayfilter.web.app import create_app
from gatewayfilter.web.rendering.pages import Pages
from gatewayfilter.web.services import WebServices
from tests.web.template_preview import HOSTILE
from tests.web.traffic_log import TABLET, decision, fill, usual
from tests.web.web_fakes import VIEWER, Dashboard, dashboard, loaded_for

PARTIAL = {"hx-request": "true"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    fill(tmp_path, usual(time.time()))
    with dashboard(tmp_path) as found:
        yield found


@pytest.mark.parametrize("span", ["day", "week", "month"])
def test_numbers_lead_to_the_log_that_proves_them(web: Dashboard, span: str) -> None:
    page = html.unescape(web.client.get(f"/?span={span}").text)
    assert "6 requests" in page
    for url in re.findall(r'class="stat" href="(/log[^"]*outcome=blocked[^"]*)"', page):
        assert web.client.get(url).status_code == 200
    chart = json.loads(re.findall(r"data-timeline='([^']+)'", page)[0])
    assert sum(chart["blocked"]) + sum(chart["learned"]) == 3
    assert sum(chart["allowed"]) == 3
    assert len(chart["edges"]) == len(chart["at"]) + 1


def test_what_is_wrong_comes_first(web: Dashboard) -> None:
    page = web.client.get("/").text
    assert page.index("The filter does not run") < page.index("6 requests")
    assert "All is well" not in page


def test_the_share_that_was_blocked_and_devices_that_are_new(web: Dashboard) -> None:
    page = web.client.get("/").text
    assert "3 blocked (50%)" in page
    assert '<a class="grow" href="/clients#new-devices">1 new device has no name yet</a>' in page


def test_empty_log(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        page = web.client.get("/").text
        assert "0 requests" in page
        assert page.count("Nothing was blocked.") == 4
        assert web.client.get("/reports").status_code == 200


def test_a_request_that_waits_has_its_answer_beside_it(tmp_path: Path) -> None:
    with closing(wiring.open_store(loaded_for(tmp_path).settings)) as store:
        asked = UnblockRequest("https://poki.example/", TABLET, "schedule", "", "bedtime", "games", "homework", time.time())
        store.unblock.ask([asked])
    with dashboard(tmp_path) as web:
        page = web.client.get("/").text
        assert "homework" in page
        assert "/requests/1/answer" in page
        web.who.identity = VIEWER
        assert "/requests/1/answer" not in web.client.get("/").text


def test_pause_and_resume(web: Dashboard) -> None:
    answer = web.client.post("/pauses", data={"minutes": "15", "whom": "client:Kim's tablet", "next": "/"}, headers=PARTIAL)
    assert "Filtering is paused for Kim's tablet" in html.unescape(answer.text)
    (pause,) = web.services.store.policies.read().pauses.values()
    assert abs(pause.until - time.time() - 900) < 30
    answer = web.client.post("/pauses/end", data={"whom": "client:Kim's tablet", "next": "/"}, headers=PARTIAL)
    assert not web.services.store.policies.read().pauses
    assert web.client.post("/pauses", data={"minutes": "15", "next": "/"}).headers["location"] == "/"


@pytest.mark.parametrize(
    "data", [{"minutes": "0"}, {"minutes": "5", "whom": "client:nobody"}, {"minutes": "5", "whom": "dog:x"}, {}]
)
def test_bad_pauses_are_refused(web: Dashboard, data: dict[str, str]) -> None:
    assert web.client.post("/pauses", data=data | {"next": "/"}, headers=PARTIAL).status_code in {404, 422}
    assert not web.services.store.policies.read().pauses


def test_viewers_pause_nothing(web: Dashboard) -> None:
    web.who.identity = VIEWER
    assert 'action="/pauses"' not in web.client.get("/").text
    assert web.client.post("/pauses", data={"minutes": "5"}).status_code == 403


@pytest.mark.parametrize("span", ["today", "yesterday", "week", "month"])
def test_report(web: Dashboard, span: str) -> None:
    answer = web.client.get(f"/reports?span={span}")
    assert answer.status_code == 200
    if span == "week":
        page = html.unescape(answer.text)
        assert "6 requests, 3 of them blocked (50%)." in page
        assert "Kim's tablet" in page
        assert "easylist" in page


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_text(tmp_path: Path, text: str) -> None:
    now = time.time()
    record = decision(now, "https://evil.example/", text[:60], "block", "blacklist", source_list=text[:60], category=text[:60])
    fill(tmp_path, [record])
    with dashboard(tmp_path) as web:
        for url in ("/", "/reports?span=week"):
            page = web.client.get(url).text
            assert "<script>alert" not in page
            assert "<img" not in page


def test_health_leads_to_the_pages_that_show_it(tmp_path: Path) -> None:
    now = time.time()
    with closing(wiring.open_store(loaded_for(tmp_path).settings)) as store:
        store.frontier.add([CrawlRequest(f"https://unknown.example/{number}") for number in range(3)], now - 7200)
    with dashboard(tmp_path) as web:
        page = html.unescape(web.client.get("/").text)
        assert '<a href="/crawler">3 pages</a>' in page
        assert "2 hours ago" in page.partition('href="/crawler">3 pages')[2][:400]
        assert re.search(r'<a href="/https">until \d{1,2} \w{3,4} 20\d\d</a>', page)
        assert "QUIC" not in page
        assert re.search(r'href="/https">[^<]*20\d\d年\d+月\d+日', web.client.get("/", headers={"accept-language": "zh"}).text)
        web.who.identity = VIEWER
        assert 'href="/https"' not in web.client.get("/").text


def test_a_certificate_that_ends_soon_is_marked(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        end = web.services.health().ca_days
        assert end is not None
        later = WebServices(web.services.loaded, web.services.store, lambda: time.time() + (end - 30) * 86400)
        page = TestClient(create_app(later, web.who), base_url="http://127.0.0.1:8081").get("/").text
        assert re.search(r'<a href="/https" class="health__amber">ends in (29|30|31) days</a>', page)


@pytest.mark.parametrize("refused", [True, False])
def test_ways_past_a_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, refused: bool) -> None:
    monkeypatch.setattr(
        "gatewayfilter.gateway.runtime_state.RuntimeStateFile.read", lambda _: RuntimeState(quic_rejected=refused)
    )
    with dashboard(tmp_path, proxy__mode="transparent") as web:
        page = html.unescape(web.client.get("/").text)
        quic = '<a href="/settings#gateway.reject_quic">refused</a>'
        assert (quic in page) is refused
        assert ("goes past the filter" in page) is not refused
        assert "servers blocked" not in page  # there is no snapshot yet
        rules = tmp_path / "rules.txt"
        rules.write_text("[Adblock Plus 2.0]\n||dns.google^\n")
        engine = wiring.engine_for_lists([rules])
        leaks = health_facts(web.services.settings, web.services.store, lambda: blocked_resolvers(engine), time.time()).leaks
        assert leaks == GatewayLeaks(refused, 1, len(WELL_KNOWN))


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    with dashboard(tmp_path, learn__enabled=False) as web:
        (tmp_path / "ca" / "mitmproxy-ca-cert.pem").write_text("-----BEGIN CERTIFICATE-----\nnothing\n")
        assert web.services.health() == HealthFacts(None, None, None, None)
        assert "/crawler" not in web.client.get("/").text.partition('id="health-title"')[2].partition("</dl>")[0]


CODES: dict[str, dict[str, str | int | float]] = {
    "stopped": {},
    "workers": {"serving": 1, "all": 2},
    "learner": {},
    "restarts": {"count": 2},
    "lists": {},
    "pending": {"names": "easylist, urlhaus"},
    "failing": {"names": "easylist"},
    "disk": {"bytes": 9e7},
    "hook_errors": {"count": 1},
    "store_errors": {"count": 2},
    "log_dropped": {"count": 3},
    "snapshot_refused": {"count": 4},
    "channel": {"name": "webhook", "since": 1e9, "error": "<b>refused"},
    "services": {"error": "<b>no TOML"},
    "fleet": {"error": "<b>refused"},
    "clock": {},
}


@pytest.mark.parametrize("code", CODES)
def test_what_needs_attention_is_said_in_the_language_of_the_page(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dashboard(tmp_path) as web:
        found = replace(web.services.status(), attention=(Attention("English words.", "gatewayfilter mend", code, CODES[code]),))
        monkeypatch.setattr(web.services, "status", lambda: found)
        for url in ("/", "/system"):
            page = web.client.get(url, headers={"accept-language": "zh"}).text
            assert "English words" not in page
            assert "<b>refused" not in page
            assert "<b>no TOML" not in page
            assert "All is well" not in page
        for link in re.findall(r'href="(/(?:setup|settings|lists|system)[^"#]*)', web.client.get("/").text):
            assert web.client.get(link).status_code == 200


def test_every_code_of_the_status_has_words() -> None:
    source = inspect.getsource(filter_status)
    given = set(re.findall(r'"gatewayfilter [^"]+",\s+"(\w+)"', source)) | set(
        re.findall(r'^    "(\w+)": "', source, re.MULTILINE)
    )
    assert given == set(CODES)


@pytest.mark.parametrize(
    ("fault", "told"),
    [(StoreError("<b>the disk</b> is away"), "&lt;b&gt;the disk&lt;/b&gt; is away"), (ValueError("x"), "a fault of the program")],
)
def test_the_frame_is_sent_before_anything_is_counted(
    web: Dashboard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception, told: str
) -> None:
    events, parts = list[str](), Pages.parts

    def seen(pages: Pages, *values: Any, **named: Any) -> Iterator[str]:
        for part in parts(pages, *values, **named):
            events.append(part)
            yield part

    def fails(*_: object) -> None:
        events.append("counted")
        raise fault

    monkeypatch.setattr(Pages, "parts", seen)
    monkeypatch.setattr("gatewayfilter.web.pages.traffic.overview.make_overview", fails)
    answer = web.client.get("/")
    assert (answer.status_code, answer.text) == (200, events[0] + events[2])
    assert 'class="rail"' in events[0]
    assert (events[1], told in events[2], answer.text.count("</html>")) == ("counted", True, 1)
    assert events[2].count('class="bar"') == 1  # a phone has no other way to the other pages
    assert "GET /" in caplog.text


def test_a_fault_in_the_frame_is_answered_as_one(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Iterator[str]:
        yield str(1 // 0)

    monkeypatch.setattr(Pages, "parts", fails)
    answer = web.client.get("/")
    assert (answer.status_code, "a fault of the program" in answer.text) == (500, True)
