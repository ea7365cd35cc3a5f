# ruff: noqa: RUF001  Chinese
"""Explanations of the engine in Chinese: every sentence that it makes has a template, and hostile values stay values."""

import re
import time
from contextlib import closing
from datetime import UTC
from pathlib import Path

import pytest

from gatewayfilter import wiring
from gatewayfilter.model import (
    Action,
    CategoryAction,
    Client,
    Group,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    Request,
    ResourceType,
    Schedule,
    ScheduleEffect,
    UnknownAction,
    Window,
    parse_matcher,
)
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.url_check import check_url
from gatewayfilter.web.rendering.catalogs import translations
from gatewayfilter.web.rendering.category_titles import CategoryTitles
from gatewayfilter.web.rendering.explanation_texts import ExplanationTexts
from gatewayfilter.web.rendering.formats import Formats
from gatewayfilter.web.rendering.sentence_templates import Told
from tests.web.web_fakes import dashboard, loaded_for

ZONE = "UTC"
MOMENT = Formats("zh", UTC).moment
ALWAYS = (Window(0, 1440),)
PLAIN = re.compile(r"^[\x00-\x7f]+$")


@pytest.fixture(scope="module")
def explained() -> ExplanationTexts:
    return ExplanationTexts("zh", translations("zh").gettext, CategoryTitles("zh"))


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("no rule in force blocks it", "没有生效的规则拦截它"),
        (
            (
                "||a.example^ of easylist, line 7 blocks it, the stub noop.js stands in for it; "
                "also matching: ||b^ (x, line 3, important)"
            ),
            "easylist 第 7 行的规则 ||a.example^ 拦截它，并以替代资源 noop.js 应答；同时匹配：||b^ (x，第 3 行，重要)",
        ),
        ("fritz (ads) lists a.example: why", "fritz（广告）中有 a.example：why"),
        ("mine lists .a.example", "mine 中有 .a.example"),
        ("mine lists .a.example, but that has expired", "mine 中有 .a.example，但已经过期"),
        ("in force: night; night blocks everything", "正在生效：night；night 拦截一切"),
        ("block: ads, games; source x: off; tls: splice", "拦截：广告、游戏；名单 x：停用；加密连接：splice"),
        ("belongs to tiktok: the policy kids blocks TikTok", "属于 tiktok：策略 kids 拦截 TikTok"),
        ("kids blocks a search for cats", "kids 拦截对“cats”的搜索"),
        ("something new", "something new"),
        ("a person's rule blocks /a; b/", "自己的规则拦截 /a; b/"),
        ("filtering is paused (all) until 2026-99-99T00:00", "过滤已暂停（all），直到 2026-99-99T00:00"),
    ],
)
def test_sentences(explained: ExplanationTexts, english: str, chinese: str) -> None:
    assert explained(english, MOMENT) == Told(chinese, is_english=english == chinese)


def test_english_stays_as_it_is() -> None:
    english = ExplanationTexts("en", translations("en").gettext, CategoryTitles("en"))
    assert english("no rule in force blocks it; x", MOMENT) == Told("no rule in force blocks it; x", is_english=True)


@pytest.mark.parametrize(
    "text", [" of " * 900, " lists a" * 500, "; " * 2000, " instead and leaves out x: " * 150, "%(rule)s %s %", ""]
)
def test_hostile_sentences_take_no_time(explained: ExplanationTexts, text: str) -> None:
    began = time.process_time()
    for sentence in (text, f"it asks for {text}", f"a {text}, line 3 blocks it", f"client {text}, group g, policies {text}"):
        assert isinstance(explained(sentence, MOMENT).text, str)
    assert time.process_time() - began < 2.0


@pytest.mark.slow
def test_every_sentence_of_the_engine_has_a_template(explained: ExplanationTexts, tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        web.client.post("/api/v1/rules", json={"patterns": ["own.example"], "action": "block"})
        web.client.post("/api/v1/rules", json={"patterns": ["kind.example", "kind.example/x"], "action": "allow"})
    settings = loaded_for(tmp_path).settings
    with closing(wiring.open_store(settings)) as store:
        now = time.time()
        items: list[PolicyItem] = [
            Policy(
                "kids", services={"tiktok": True}, requests={"safesearch": "on", "block-search": "cats", "block-files": "apk"}
            ),
            Policy("night", block_all=True),
            Policy("odd", sources={"starter-ads": False}, categories={"ads": CategoryAction.REVIEW}, unknown=UnknownAction.BLOCK),
            Group("kids", "kids"),
            Client("tablet", (parse_matcher("192.0.2.1"),), "kids"),
            Client("tv", (parse_matcher("192.0.2.2"),), policy="night"),
            Client("odd", (parse_matcher("192.0.2.3"),), policy="odd"),
            Client("free", (parse_matcher("192.0.2.4"),)),
            Schedule("nights", "kids", ScheduleEffect.BLOCK_CATEGORY, ALWAYS, ZONE, target="games"),
            Schedule("never", "odd", ScheduleEffect.BLOCK_ALL, ALWAYS, ZONE),
            Pause(PauseScope.CLIENT, "free", now + 900),
        ]
        store.policies.change(lambda _: [(item, True) for item in items], now)
        engine = wiring.open_engine(settings, store)
        seen: set[str] = set()
        blocked = 0
        for client in ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.9"):
            for url in ADDRESSES:
                request = Request(parse_url(url), parse_url("http://page.example/"), ResourceType.SCRIPT, client=client)
                found = check_url(settings, store, engine, request, "", time.time).explanation
                blocked += found.verdict.action is Action.BLOCK
                seen |= {answer.explanation for answer in found.answers}
        foreign = sorted(text for text in seen if PLAIN.match(explained(text, MOMENT).text) and "=" not in text)
        assert foreign == []
        assert blocked > 5
        assert len(seen) > 15


ADDRESSES = (
    "http://own.example/",
    "http://kind.example/x",
    "http://doubleclick.net/ad.js",
    "http://www.google-analytics.com/analytics.js",
    "http://www.tiktok.com/",
    "http://www.google.com/search?q=cats",
    "http://files.example/a.apk",
    "http://unknown.example/a//b/../c",
    "http://blocked.test.gatewayfilter.example/",
)
