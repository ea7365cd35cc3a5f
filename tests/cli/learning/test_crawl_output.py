"""What `crawl`, `classify` and `crawler` print and end with: `gatewayfilter.cli.learning.crawl_command`,
`gatewayfilter.cli.learning.classify_command`, `gatewayfilter.cli.learning.crawler_commands`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.crawl import CrawlOutcome
from gatewayfilter.documents.html.references import PageImage, PageLink
from gatewayfilter.errors import FetchError
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.urls import parse_url
from tests.cli.test_command_doubles import SETTINGS, Doubled, called, table, texts

HARMLESS, HARMFUL = Classification("", 3.0, 20.0), Classification("gambling", 42.0, 20.0)
LINE = "HARMLESS: nearest to a limit with a score of 3.0 (limit 20.0)\n"
ONE = "gatewayfilter.use_cases.learning.single_page"


def outcome(host: str, classification: Classification | None = HARMLESS, **more: Any) -> CrawlOutcome:
    return CrawlOutcome(f"http://{host}/", status=200, classification=classification, elapsed_ms=7, **more)


@pytest.fixture
def crawled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The outcomes of a crawl, and how it was asked for."""
    holder: dict[str, Any] = {"outcomes": [], "asked": []}

    def crawl(
        settings: object, store: object, urls: list[str], show: Callable[[CrawlOutcome], None], *, task: str, progress: object
    ) -> list[CrawlOutcome]:
        assert (settings, store, progress is not None) == (SETTINGS, "store", True)
        holder["asked"].append((urls, task))
        for one in holder["outcomes"]:
            show(one)
        found: list[CrawlOutcome] = holder["outcomes"]
        return found

    monkeypatch.setattr("gatewayfilter.use_cases.learning.crawling.crawl_now", crawl)
    monkeypatch.setattr(
        "gatewayfilter.cli.learning.crawl_command.chosen_task", lambda _settings, task: holder["asked"].append(task)
    )
    return holder


def test_each_page_is_shown_and_several_summed_up(crawled: dict[str, Any]) -> None:
    crawled["outcomes"] = [outcome("a.example")]
    assert texts(Doubled("store"), "crawl", "a.example") == (0, f"http://a.example/ (status 200, 7 ms)\n{LINE}\n", "")
    assert crawled["asked"] == [(["http://a.example/"], "")]
    crawled["outcomes"] = [
        outcome("a.example", final_url="http://b.example/"),
        outcome("c.example", HARMFUL, final_url="http://c.example/"),
        outcome("d.example", None, error="no answer"),
        outcome("e.example", None, error="robots.txt", refused=True),
    ]
    code, out, err = texts(Doubled("store"), "crawl", "a.example", "c.example")
    assert (code, out.splitlines()[0], out.splitlines()[3]) == (
        1,
        "http://a.example/ → http://b.example/ (status 200, 7 ms)",
        "http://c.example/ (status 200, 7 ms)",
    )
    assert err == (
        "gatewayfilter: http://d.example/ was not judged: no answer\n"
        "gatewayfilter: http://e.example/ was refused: robots.txt\n"
        "4 pages: 1 harmful, 2 not judged.\n"
    )
    answer = called(Doubled("store"), "crawl", "a.example", "--json")
    assert ([line["url"] for line in answer.lines][1], answer.err, answer.code) == ("http://c.example/", "", 1)


def test_what_could_not_be_judged_counts_unless_links_led_there(crawled: dict[str, Any]) -> None:
    crawled["outcomes"] = [outcome("a.example"), outcome("d.example", None)]
    assert texts(Doubled("store"), "crawl", "a.example", "d.example")[0] == 2
    assert texts(Doubled("store"), "crawl", "a.example", "--task", "forums")[0] == 0
    assert texts(Doubled("store"), "crawl", "a.example", "d.example", "--task", "forums")[0] == 2
    assert crawled["asked"][1:3] == ["forums", (["http://a.example/"], "forums")]
    assert (
        "--rule and --task do not go together"
        in called(Doubled(), "crawl", "a.example", "--rule", "r", "--task", "t").complains()
    )


class Rule:
    """A rule for one host, with two fields."""

    name, version = "news", 3
    fields = (SimpleNamespace(name="title"), SimpleNamespace(name="body"))

    def matches(self, url: str) -> bool:
        return url == "http://a.example/"


def test_a_rule_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rule, asked = Rule(), []
    found: dict[str, Any] = {"fields": {"title": ["T"], "body": ["x" * 300, "x" * 301]}, "errors": {}}

    def extract(settings: object, used: object, url: object) -> tuple[SimpleNamespace, list[Any]]:
        asked.append((settings, used, str(url)))
        if "refused" in str(url):
            raise FetchError("refused")
        return SimpleNamespace(extracted=SimpleNamespace(**found)), [parse_url("http://a.example/2")]

    file = tmp_path / "news.toml"
    monkeypatch.setattr(
        "gatewayfilter.wiring.rules_folder", lambda _settings: SimpleNamespace(rule=lambda _name: rule, names=lambda: ["news"])
    )
    monkeypatch.setattr("gatewayfilter.classify.read_rule_file", lambda path: rule if path == file else None)
    monkeypatch.setattr(f"{ONE}.extract_now", extract)
    code, out, _ = texts(Doubled(), "crawl", "--rule", "news", "a.example")
    assert (code, table(out)) == (
        0,
        [
            ["http://a.example/"],
            ["field", "value"],
            ["title", "T"],
            ["body", "x" * 300],
            ["body", f"{'x' * 300} … (301 characters)"],
            ["link", "http://a.example/2"],
        ],
    )
    assert asked == [(SETTINGS, rule, "http://a.example/")]
    code, out, err = texts(Doubled(), "crawl", "--rule", file, "refused.example", "b.example", "a.example")
    assert (code, out.splitlines()[0]) == (2, "http://b.example/ (the rule 'news' is not for this URL)")
    assert err == "gatewayfilter: http://refused.example/ was not read: refused\n"
    assert texts(Doubled(), "crawl", "--rule", "news", "b.example", "a.example")[0] == 1
    assert texts(Doubled(), "crawl", "--rule", "news", "b.example", "refused.example")[0] == 2
    found.update(fields={"title": [], "body": ["x"]}, errors={"links": "too deep"})
    code, out, _ = texts(Doubled(), "crawl", "--rule", "news", "a.example")
    assert (code, table(out)[2:]) == (
        1,
        [["title", "not found"], ["body", "x"], ["link", "http://a.example/2"], ["links", "too deep"]],
    )
    found.update(fields={"title": [], "body": ["x"]}, errors={"title": "no element"})
    code, out, _ = texts(Doubled(), "crawl", "--rule", "news", "a.example")
    assert (code, table(out)[2:4], len(table(out))) == (1, [["title", "no element"], ["body", "x"]], 5)
    answer = called(Doubled(), "crawl", "--rule", "news", "b.example", "--json")
    assert answer.lines == [
        {
            "url": "http://b.example/",
            "rule": "news",
            "version": 3,
            "matches": False,
            "fields": {"title": [], "body": ["x"]},
            "links": ["http://a.example/2"],
            "errors": {"title": "no element"},
        }
    ]
    found.update(fields={"title": ["T"], "body": ["x"]}, errors={"links": "too deep"})
    assert texts(Doubled(), "crawl", "--rule", "news", "a.example")[0] == 1
    monkeypatch.chdir(tmp_path)
    Path("news").touch()
    monkeypatch.setattr("gatewayfilter.classify.read_rule_file", lambda path: rule if path == Path("news") else None)
    asked.clear()
    texts(Doubled(), "crawl", "--rule", "news", "a.example")
    assert asked[0][1] is rule, "a file of that name comes first"


PAGE = Page("http://a.example/", "http://b.example/", 200, {"content-type": "text/html"}, b"<p>page", elapsed_ms=7)


def test_a_page_is_fetched_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[Page, Classification | None]] = [(PAGE, HARMLESS)]
    asked: list[object] = []

    def judge(settings: object, url: object) -> tuple[Page, Classification | None]:
        asked.append((settings, str(url)))
        if not found:
            raise FetchError("refused")
        return found[0]

    monkeypatch.setattr(f"{ONE}.judge_now", judge)
    assert texts(Doubled(), "classify", "a.example") == (0, f"http://b.example/ (status 200, 7 ms)\n{LINE}", "")
    assert asked == [(SETTINGS, "http://a.example/")]
    found[0] = (PAGE, HARMFUL)
    answer = called(Doubled(), "classify", "http://a.example/", "--json")
    assert (answer.code, answer.json["category"]) == (1, "gambling")
    for kind, said in (("image/x-icon", "image/x-icon"), ("", "unknown")):
        found[0] = (Page("u", "u", 204, {"content-type": kind}, b""), None)
        refused = called(Doubled(), "classify", "a.example").complains()
        assert refused == f"http://a.example/ is not classified: status 204, type {said}"
    found.clear()
    assert called(Doubled(), "classify", "a.example").complains() == "http://a.example/ was not fetched: refused"


def test_a_file_is_judged_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "page"
    file.write_bytes(b"<p>casino")
    pages: list[Page] = []

    def judged(page: Page) -> Classification:
        pages.append(page)
        return HARMFUL

    monkeypatch.setattr("gatewayfilter.wiring.classifier", lambda _settings: SimpleNamespace(classify_page=judged))
    code, out, _ = texts(Doubled(), "classify", file)
    assert (code, out.startswith("GAMBLING: score 42.0")) == (1, True)
    assert called(Doubled(), "classify", "-", stdin=b"%PDF-1").code == 1
    assert [(page.body, page.content_type) for page in pages] == [(b"<p>casino", "text/html"), (b"%PDF-1", "application/pdf")]


def test_names_that_are_files_or_urls() -> None:
    for name in ("/dev/null/none", "./page", "~/page", "page.HTML", "page.jsonl"):
        assert called(Doubled(), "classify", name).complains() == f"there is no file {name}"
    assert called(Doubled(), "classify", "http://[").complains() == "there is no file 'http://[', and it is no URL either"
    assert called(Doubled(), "classify").complains().startswith("name one page, or give --lines FILE")
    assert called(Doubled(), "classify", "page", "--lines", "-").complains().startswith("name one page, or give --lines FILE")
    assert called(Doubled(), "classify", "--parts", "--lines", "-").complains().startswith("--parts is for a single page")


def test_the_parts_of_a_page_are_a_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "page"
    file.write_bytes(b"<p>file")
    parts = SimpleNamespace(
        title="T",
        description="",
        keywords="k",
        main=("one", ""),
        rest=("two",),
        links=(PageLink("/a", "A"), PageLink("/b", "B", on_page=False)),
        images=(PageImage("/i", "alt"),),
    )
    pages: list[Page] = []

    def parts_of(page: Page) -> SimpleNamespace:
        pages.append(page)
        return parts

    monkeypatch.setattr("gatewayfilter.classify.parts_of", parts_of)
    monkeypatch.setattr(
        f"{ONE}.fetch_now", lambda settings, url: PAGE if (settings, str(url)) == (SETTINGS, "http://a.example/") else None
    )
    code, out, _ = texts(Doubled(), "classify", "--parts", "a.example")
    assert (code, [line.split(None, 1) for line in out.splitlines()]) == (
        0,
        [
            ["part", "text"],
            ["title", "T"],
            ["keywords", "k"],
            ["main", "one"],
            ["rest", "two"],
            ["link", "/a  A"],
            ["image", "/i  alt"],
        ],
    )
    answer = called(Doubled(), "classify", "--parts", file, "--json")
    assert (answer.code, "namespace" in answer.out) == (0, True)
    assert called(Doubled(), "classify", "--parts", "-", stdin=b"input").code == 0
    assert [page.body for page in pages] == [b"<p>page", b"<p>file", b"input"]

    def refuse(*_: object) -> Page:
        raise FetchError("refused")

    monkeypatch.setattr(f"{ONE}.fetch_now", refuse)
    assert called(Doubled(), "classify", "--parts", "a.example").complains() == "http://a.example/ was not fetched: refused"


def module(name: str, **content: object) -> ModuleType:
    found = ModuleType(name)
    found.__dict__.update(content)
    return found


KAFKA = SETTINGS.model_copy(update={"kafka": SETTINGS.kafka.model_copy(update={"brokers": "own:9092"})})


def test_each_module_of_the_crawler_is_run_by_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[Any] = []
    file = tmp_path / "kafka"
    file.write_text("security.protocol=ssl\n")
    monkeypatch.setitem(
        sys.modules,
        "gatewayfilter.processes.sharing.crawl_modules",
        module("m", ModuleOptions=lambda topics, **more: (topics, more), Role=str, run_module=lambda *given: ran.append(given)),
    )
    monkeypatch.setitem(
        sys.modules,
        "gatewayfilter.scaleout.kafka.module_topics",
        module("t", ModuleTopics=lambda brokers, prefix, properties: (brokers, prefix, properties)),
    )
    usual = {"on_the_way": 400, "partitions": 12}
    for name in ("schedule", "fetch", "parse", "store"):
        assert texts(Doubled(), "crawler", name, "--brokers", "k:9092", "--prefix", "p") == (0, "", "")
        assert ran.pop() == (name, SETTINGS, (("k:9092", "p", {}), usual if name == "schedule" else {}))
    arguments = ("--kafka-config", file, "--on-the-way", "7", "--partitions", "3")
    assert texts(Doubled(settings=KAFKA), "crawler", "schedule", *arguments)[0] == 0
    topics = ("own:9092", "gatewayfilter-crawl", {"security.protocol": "ssl"})
    assert ran.pop() == ("schedule", KAFKA, (topics, {"on_the_way": 7, "partitions": 3}))
    with_file = KAFKA.model_copy(update={"kafka": KAFKA.kafka.model_copy(update={"config_file": file})})
    assert texts(Doubled(settings=with_file), "crawler", "fetch")[0] == 0
    assert ran.pop()[2][0][2] == {"security.protocol": "ssl"}
    assert called(Doubled(), "crawler", "fetch").complains().startswith("--brokers, or kafka.brokers in the settings, is needed")
    monkeypatch.setitem(sys.modules, "gatewayfilter.scaleout.kafka.module_topics", None)
    assert "install the extra gatewayfilter[kafka]" in called(Doubled(settings=KAFKA), "crawler", "fetch").complains()


SPARK = {
    "source": "kafka",
    "brokers": "k:9092",
    "topic": "t",
    "folder": "",
    "checkpoint": "/c",
    "output": "/o",
    "output_topic": "",
    "dead_topic": "",
    "window_s": 60,
    "every_s": 5.0,
    "most": 1_000_000,
}


def test_the_spark_job_gets_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    served: list[Any] = []
    spark = ("stream", "spark", "--checkpoint", "/c")
    job = module("j", JobOptions=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "gatewayfilter.scaleout.spark.job", job)
    monkeypatch.setitem(
        sys.modules,
        "gatewayfilter.scaleout.spark.service",
        module("s", LIGHT_JVM="light", serve=lambda *given, once: served.append((*given, once)), session=lambda *given: given),
    )
    kafka = ("--brokers", "k:9092", "--topic", "t")
    assert texts(Doubled(), *spark, *kafka, "--output", "/o") == (0, "", "")
    session, options, once = served.pop()
    assert (session, once) == (("local[*]", "", "light"), False)
    assert vars(options) == {**SPARK, "rules": SETTINGS.data_dir / "snapshots", "off_categories": ()}
    off = SETTINGS.model_copy(update={"filter": SETTINGS.filter.model_copy(update={"disabled_categories": ["ads"]})})
    more = ("--output", "s3://o", "--once", "--master", "m", "--jars", "j", "--rules", tmp_path)
    assert texts(Doubled(settings=off), *spark, *kafka, *more)[0] == 0
    session, options, once = served.pop()
    assert (session, once, options.rules, options.off_categories) == (("m", "j", None), True, tmp_path, ("ads",))
    assert texts(Doubled(), *spark, "--source", "json", "--folder", "/f", "--output-topic", "o")[0] == 0
    session, options, _ = served.pop()
    assert (session[2], options.folder, options.output_topic) == (None, "/f", "o")
    for given, why in (
        (("--brokers", "k", "--output", "/o"), "--source kafka needs --brokers and --topic"),
        (("--topic", "t", "--output", "/o"), "--source kafka needs --brokers and --topic"),
        (("--source", "parquet", "--output", "/o"), "--source parquet needs --folder"),
        (kafka, "there is no output: give --output or --output-topic"),
    ):
        assert called(Doubled(), *spark, *given).complains().startswith(why)
    monkeypatch.setitem(sys.modules, "gatewayfilter.scaleout.spark.service", None)
    assert "install the extra gatewayfilter[spark]" in called(Doubled(), *spark, *kafka, "--output", "/o").complains()


def test_how_far_decisions_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(topic="d", state="sent", fault="", position=7, waiting=2, brokers="k:9092", sentence="2 wait.")
    again: list[object] = []
    monkeypatch.setattr("gatewayfilter.use_cases.metrics.decision_stream.decision_stream", lambda _settings, _store: found)
    monkeypatch.setattr("gatewayfilter.use_cases.metrics.decision_stream.send_from_oldest", again.append)
    sends = SETTINGS.model_copy(update={"kafka": SETTINGS.kafka.model_copy(update={"decisions": "d"})})
    assert "kafka.decisions is not set" in called(Doubled(), "stream", "decisions").complains()
    assert texts(Doubled("store", sends), "stream", "decisions") == (0, "d at k:9092: 2 wait.\n", "")
    assert again == []
    found.fault = "away"
    assert texts(Doubled("store", sends), "stream", "decisions", "--from-oldest")[0] == 1
    assert again == ["store"]
    answer = called(Doubled("store", sends), "stream", "decisions", "--json")
    assert (answer.code, answer.json) == (1, {"topic": "d", "state": "sent", "fault": "away", "sent_to": 7, "waiting": 2})
