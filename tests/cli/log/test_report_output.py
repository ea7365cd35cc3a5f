"""What `gatewayfilter report` prints and writes, in full: `gatewayfilter.cli.log.report_view`,
`gatewayfilter.cli.log.report_html`, `gatewayfilter.cli.log.report_command`.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.cli.log.report_html import html_of
from gatewayfilter.cli.log.report_view import bars_of, lists_of, sections_of, span_of, total_of
from gatewayfilter.interfaces import RequestState, UnblockRequest
from gatewayfilter.model import LearnedEntry, ListAction, LogCount, LogHour, LogSummary
from gatewayfilter.use_cases.traffic.log_report import NewDevice, Report
from tests.cli.log.test_log_output import SUMMARY
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, texts

REQUEST = UnblockRequest(
    "http://r.example/" + "x" * 90, "10.0.0.9", "adblock", "", "", "", "please", MOMENT, state=RequestState.DENIED
)
REPORT = Report(
    MOMENT - 800,
    MOMENT + 10_000,
    MOMENT,
    SUMMARY,
    (LogCount("kim", 1_000, 2), LogCount("", 3, 1)),
    (NewDevice("10.0.0.9", "", MOMENT), NewDevice("10.0.0.7", "kim", MOMENT)),
    (REQUEST, replace(REQUEST, client_name="kim", word="no", url="http://s.example/")),
    (LearnedEntry("k", ListAction.BLOCK, "ads", "http://l.example/", "", MOMENT, MOMENT),),
    1_000,
    2,
    ("ut1", "ads"),
)
DAY = "2023-11-14 22:13"


def test_the_sections_of_a_report() -> None:
    who, hosts, categories, sources, reasons, devices, requests, learned = sections_of(REPORT, "en")
    assert (who.title, who.columns, who.rows) == (
        "By client",
        ("name", "requests", "blocked"),
        (("kim", "1,000", "2"), ("(others)", "3", "1")),
    )
    assert [section.title for section in (hosts, categories, sources, reasons)] == [
        "Blocked sites",
        "Blocked by category",
        "Blocked by list",
        "Reasons of blocks",
    ]
    assert (categories.columns, sources.rows, reasons.rows) == (("name", "blocked"), (), (("adblock", "30"),))
    assert (devices.columns, devices.rows) == (("name", "client", "since"), (("-", "10.0.0.9", DAY), ("kim", "10.0.0.7", DAY)))
    assert requests.columns == ("page", "client", "comment", "state", "answer", "since")
    assert requests.rows == (
        (f"{REQUEST.url[:100]}…", "10.0.0.9", "please", "denied", "", DAY),
        ("http://s.example/", "kim", "please", "denied", "no", DAY),
    )
    assert (learned.title, learned.rows) == (
        "Pages that were learned to be harmful: 1,000",
        (("http://l.example/", "ads", DAY),),
    )
    assert learned.columns == ("page", "category", "since")


def test_the_sentences_of_a_report() -> None:
    assert total_of(REPORT, "en") == "51 requests, 6 of them blocked (12 %). 1 newer requests are not counted yet."
    assert total_of(replace(REPORT, summary=LogSummary(None, None)), "en") == "0 requests, 0 of them blocked (0 %)."
    assert lists_of(REPORT, "en") == "2 lists are subscribed; the last update of these failed: ut1, ads."
    assert lists_of(replace(REPORT, failing=()), "en") == "2 lists are subscribed; all of their last updates succeeded."
    assert lists_of(replace(REPORT, sources=0), "en") == "No lists are subscribed."
    assert span_of(REPORT, "en") == "2023-11-14 22:00 to 2023-11-15 01:00"
    assert [(bar.label, bar.decisions, bar.blocked) for bar in bars_of(REPORT)] == [
        ("11-14 22:00", 10, 5),
        ("11-14 23:00", 40, 0),
        ("11-15 00:00", 1, 1),
    ]
    for hours, bars in ((60, 60), (61, 4)):
        summary = replace(SUMMARY, hours=tuple(LogHour(MOMENT + 3_600 * hour, 1, 0) for hour in range(hours)))
        assert len(bars_of(replace(REPORT, summary=summary))) == bars
    days = tuple(LogHour(MOMENT + 86_400 * day, 1, 0) for day in range(62))
    assert bars_of(replace(REPORT, summary=replace(SUMMARY, hours=days)))[0].label == "2023-11-16"


def test_the_html_of_a_report() -> None:
    html = html_of(REPORT, "en")
    assert '<html lang="en">' in html
    assert "<title>Filter report: 2023-11-14 22:00 to 2023-11-15 01:00</title>" in html
    assert '<svg viewBox="0 0 30 100"' in html
    bars = re.findall(r"<g><title>(.*?)</title>(.*?)</g>", html)
    assert bars == [
        (
            "11-14 22:00: 10 requests, 5 blocked",
            '<rect class="a" x="1" y="75.0" width="8" height="25.0"/><rect class="b" x="1" y="87.5" width="8" height="12.5"/>',
        ),
        (
            "11-14 23:00: 40 requests, 0 blocked",
            '<rect class="a" x="11" y="0.0" width="8" height="100.0"/><rect class="b" x="11" y="100.0" width="8" height="0.0"/>',
        ),
        (
            "11-15 00:00: 1 requests, 1 blocked",
            '<rect class="a" x="21" y="97.5" width="8" height="2.5"/><rect class="b" x="21" y="97.5" width="8" height="2.5"/>',
        ),
    ]
    assert '<p class="soft">11-14 22:00 – 11-15 00:00, ≤ 40</p>' in html  # noqa: RUF001  the page's own dash
    assert '<th>name</th><th class="n">requests</th><th class="n">blocked</th>' in html
    assert '<tr><td>kim</td><td class="n">1,000</td><td class="n">2</td></tr>' in html
    assert "<section><h2>Blocked by list</h2><p class=soft>None.</p></section>" in html
    assert f"<footer>Made {DAY} by GatewayFilter." in html
    many = replace(SUMMARY, hours=(LogHour(MOMENT, 1_000, 1), LogHour(MOMENT + 3_600, 1, 1)))
    assert 'height="0.5"/>' in html_of(replace(REPORT, summary=many), "en"), "the least that is seen"
    assert "<svg" not in html_of(replace(REPORT, summary=LogSummary(None, None)), "en")


def test_a_report_is_printed_written_or_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    def make(*given: object) -> Report:
        asked.append(given)
        return REPORT

    monkeypatch.setattr("gatewayfilter.use_cases.traffic.log_report.make_report", make)
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    _, out, _ = texts(Doubled("store"), "report")
    assert out.startswith(
        f"Filter report: 2023-11-14 22:00 to 2023-11-15 01:00\n{total_of(REPORT, 'en')}\n{lists_of(REPORT, 'en')}\n\n11-14 22"
    )
    assert "\n\nBy client\nname      requests  blocked\nkim       1,000     2\n(others)  3         1\n\nBlocked sites\n" in out
    assert "\n\nBlocked by list\nNone.\n" in out
    assert asked.pop() == ("store", SETTINGS, MOMENT - 7 * 86_400.0, None)
    file = tmp_path / "r.html"
    since = ("--since", "2023-11-14T00:00:00+00:00", "--until", "2023-11-14T00:00:01+00:00")
    assert texts(Doubled("store"), "report", "--html", file, *since, "--language", "zh") == (0, "", f"Written to {file}.\n")
    assert (asked.pop()[2:], file.read_text(encoding="utf-8")) == ((1_699_920_000.0, 1_699_920_001.0), html_of(REPORT, "zh"))
    answer = called(Doubled("store"), "report", "--json", "--html", file)
    assert (answer.json["learned_count"], file.exists()) == (1_000, True)
    for until in ("2023-11-14T00:00:00+00:00", "2023-11-13"):
        refused = called(Doubled(), "report", *since[:2], "--until", until).complains()
        assert refused.startswith("the report ends before it begins")
