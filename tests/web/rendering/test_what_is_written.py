"""Numbers, times, sentences, errors and pages as they are written: at the bounds, in both languages."""

from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from typing import Any

import babel.core
import babel.localedata
import pytest

from gatewayfilter.web.pages.system.reference import Field, operations_by_subject
from gatewayfilter.web.rendering.catalogs import best_language, read_catalog, translations
from gatewayfilter.web.rendering.explanation_texts import ExplanationTexts
from gatewayfilter.web.rendering.formats import Formats
from gatewayfilter.web.rendering.message_texts import MessageTexts
from gatewayfilter.web.rendering.navigation import Waiting, entries_for
from gatewayfilter.web.rendering.sentence_templates import Told, sentence_templates

EN, ZH = Formats("en", UTC), Formats("zh", timezone(timedelta(hours=8)))


def test_numbers_and_sizes() -> None:
    assert (EN.number(41_200), EN.number(1.5), ZH.number(0)) == ("41,200", "1.5", "0")
    assert [EN.percent(value) for value in (0, 0.0004, 0.076, 0.0999, 0.1, 0.756, 1)] == [
        "0%",
        "0.0%",
        "7.6%",
        "10.0%",
        "10%",
        "76%",
        "100%",
    ]
    sizes = {
        0: "0 B",
        999: "999 B",
        1_000: "1 KB",
        12_449_000: "12.4 MB",
        1e9: "1 GB",
        999e12: "999 TB",
        1.5e15: "1,500 TB",
        999.6: "1,000 B",
    }
    assert {value: EN.size(value) for value in sizes} == sizes


def test_times() -> None:
    at = 1_800_000_123.0
    assert (EN.moment(at), EN.minute(at), EN.day(at), EN.clock(at)) == (
        "15 Jan 2027, 08:02:03",
        "15 Jan 2027 08:02",
        "15 Jan 2027",
        "08:02:03",
    )
    assert (ZH.minute(at), ZH.day(at), ZH.clock(at)) == ("2027年1月15日 16:02", "2027年1月15日", "16:02:03")
    assert (EN.until(at, at - 20 * 3_600 + 1), EN.until(at, at - 20 * 3_600)) == ("08:02", "Fri 08:02")
    assert (EN.ago(at, at + 180), EN.ago(at + 7_200, at)) == ("3 minutes ago", "in 2 hours")
    assert [EN.duration(seconds) for seconds in (3 * 3_600, 71 * 60, 72 * 60, 70, 72)] == [
        "3 hours", "71 minutes", "1 hour", "70 seconds", "1 minute",
    ]  # fmt: skip
    assert EN.iso(at) == "2027-01-15T08:02:03+00:00"
    assert [EN.typed_time(text) for text in ("2027-01-15T08:02", "2027-01-15T08:02:03", "2027-01-15", "x")] == [
        "2027-01-15T08:02",
        "2027-01-15T08:02:03",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh", "zh"),
        ("fr, zh;q=0.2", "zh"),
        ("zh;q=0.5, en;q=0.6", "en"),
        ("en;q=0.5, zh;q=0.6", "zh"),
        ("zh;q=x, en;q=0.1", "en"),
        ("zh-TW, en", "zh"),
        ("en, zh", "en"),
        ("zh;q=1.0, en", "zh"),
        (f"{'x, ' * 133}zh", "en"),
        (f"{'x, ' * 132}zh", "zh"),
    ],
)
def test_the_language_of_a_browser(accepted: str, language: str) -> None:
    assert best_language(accepted) == language
    assert (best_language(accepted, "zh"), best_language(accepted, "fr")) == ("zh", language)


def test_catalogues() -> None:
    chinese = read_catalog("zh")
    assert len(chinese) > 1_000
    assert chinese["Saved."].string == translations("zh").gettext("Saved.") != "Saved."
    assert (len(read_catalog("en")), translations("en").gettext("Saved.")) == (0, "Saved.")
    assert translations("zh").ngettext("%(num)s rule", "%(num)s rules", 2)


def zh(**words: str) -> Any:
    return lambda text: words.get(text, f"<{text}>")


def test_sentences_are_found_by_their_templates() -> None:
    both, one = sentence_templates(["%(count)s of %(name)s.", "%(name)s (x)"], {"count": r"\d+"})
    assert (
        both.written("7 of a of b.", lambda text: f"«{text}»", lambda name, value: f"{name}={value}")
        == "«count=7 of name=a of b.»"
    )
    for text in ("x of a.", "7 of .", "7 of a", "a7 of b.", "7 from a."):
        assert both.written(text, str, lambda _, value: value) is None
    assert one.written("a\nb (x)", str, lambda _, value: value) == "a\nb (x)"


def test_refusals_in_another_language() -> None:
    texts = MessageTexts("zh", translations("zh").gettext)
    long = f"there is no account {'x' * 1_000}"
    assert texts(long) == Told(long, True)
    assert texts(f"there is no account {'x' * 980}").is_english is False
    assert texts("rules.txt: there is no rule 7").text == "rules.txt: 没有规则 7"
    deep = "a: b: c: there is no rule 7"
    assert (texts(deep).text, texts(f"d: {deep}").is_english) == ("a: b: c: 没有规则 7", True)
    assert texts("this needs the role king").text.endswith("king")
    assert texts("http://a/ may not be crawled: nonsense").text.endswith("nonsense")
    assert texts("http://a/ may not be crawled: not a URL").is_english is False
    assert texts("body.a: Field required; body.b").is_english is True
    assert texts("body.a: Field required").text.startswith("body.a: ")
    assert (texts.detail("x" * 1_001), texts.detail("role admin", "words.added"), texts.detail("")) == (
        "x" * 1_001,
        "role admin",
        "",
    )
    longest = f"name {'x' * 995}"
    assert (texts.detail(longest) != longest, texts.detail(f"{longest}x")) == (True, f"{longest}x")
    assert texts.detail("task 3, task 4, task 5") == texts.detail("tasks 3, 4, 5") != "tasks 3, 4, 5"
    english = MessageTexts("en", str)
    assert (english.detail("role admin"), english.action("rule.added"), english("x")) == (
        "role admin",
        "Rule added",
        Told("x", True),
    )


def test_explanations_in_another_language() -> None:
    texts = ExplanationTexts("zh", zh(**{"; ": "、"}), lambda code: f"[{code}]")
    moment = "t{:.0f}".format
    head = "URLs on no list are allowed, and offered to the crawler"
    assert texts(head, moment) == Told(f"<{head}>", False)
    assert texts("nonsense", moment) == Told("nonsense", True)
    assert texts(f"nonsense; {head}", moment) == Told(f"nonsense; {head}", True)
    assert texts("nonsense; tls: on", moment) == Told("nonsense、<tls: on>", False)
    assert texts(f"{head}; nonsense; tls: on", moment).text == f"<{head}>; nonsense、<tls: on>"
    assert texts("block: ads, games", moment).text == "<block: [ads]、[games]>"
    until = "filtering is paused (all) until 1970-01-01T00:02+00:00"
    assert texts(until, moment).text == "<filtering is paused (all) until t120>"
    assert texts(until.replace("00:02+00:00", "99:99"), moment).text.endswith("until 1970-01-01T99:99>")
    why = "l lists k, but the category ads is switched off"
    assert texts(why, moment).text == "<l lists k, but <the category [ads] is switched off>>"
    assert texts("l lists k, but nonsense", moment).text == "<l lists k, but nonsense>"
    rules = texts("tls: on; also matching: ||a^ (x, line 3), ||b^ (y, line 4, important)", moment).text
    assert rules.endswith("<also matching: ||a^ (x<, line 3>), ||b^ (y<, line 4><, important>)>")
    assert len(texts("x" * 5_000, moment).text) == 4_000
    many = texts("; ".join(["tls: on"] * 80), moment).text
    assert (many.count("tls: on"), many.count("、")) == (61, 60)
    english = ExplanationTexts("en", str, str)
    assert english(f"{head}{'x' * 5_000}", moment) == Told(f"{head}{'x' * 5_000}"[:4_000], True)


def noting[T](notes: list[Any], result: T) -> Callable[..., T]:
    """Returns a function that notes what it is given, and returns a result."""

    def note(*given: Any) -> T:
        notes.append(given[0] if len(given) == 1 else given)
        return result

    return note


def test_entries_of_roles_and_what_waits() -> None:
    asked: list[Any] = []
    waiting = Waiting(noting(asked, {"requests": 3}))
    assert (asked, waiting.get("requests"), waiting.get("x"), len(asked)) == ([()], 3, 0, 1)
    assert {entry.key for entry in entries_for(3)} - {entry.key for entry in entries_for(2)} >= {"system", "users"}
    assert entries_for(0) == ()
    assert len(entries_for(1)) == len(entries_for(2)) > 10


DOCUMENT: dict[str, Any] = {
    "paths": {
        "/a": {
            "post": {
                "operationId": "add",
                "tags": ["things"],
                "summary": "s",
                "parameters": [
                    {"name": "n", "in": "query", "schema": {"type": "integer"}, "required": True, "description": "d"},
                    {"name": "m", "in": "path", "schema": {"type": "array"}},
                ],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                "responses": {
                    "4XX": {},
                    "201": {"content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/x/Thing"}}}}},
                },
            },
            "get": {"operationId": "read", "description": "long", "summary": "s", "responses": {"204": {}}},
        },
    },
    "components": {
        "schemas": {"Thing": {"properties": {"a": {"type": "string", "description": "of a"}, "b": {}}, "required": ["a"]}}
    },
}


def test_operations_of_the_reference() -> None:
    found = operations_by_subject(DOCUMENT)
    read, add = found["other"][0], found["things"][0]
    assert list(found) == ["other", "things"]
    assert (read.key, read.method, read.path, read.description, read.fields, read.answer, read.answer_fields) == (
        "read", "GET", "/a", "long", (), "", (),
    )  # fmt: skip
    assert (add.method, add.description, add.answer) == ("POST", "s", "list of Thing")
    of_thing = [("a", "string", "of a", True), ("b", "any", "", False)]
    assert add.fields == (
        Field("n", "integer", "query", "d", True), Field("m", "list of any", "path", "", False),
        *(Field(name, kind, "body", words, needed) for name, kind, words, needed in of_thing),
    )  # fmt: skip
    assert add.answer_fields == tuple(Field(name, kind, "answer", words, needed) for name, kind, words, needed in of_thing)


def test_a_small_process_drops_what_it_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    babel.core.get_global("likely_subtags")
    assert babel.core._global_data is not None
    copy = {name: dict(table) if isinstance(table, dict) else table for name, table in babel.core._global_data.items()}
    monkeypatch.setattr(babel.core, "_global_data", copy)
    monkeypatch.setattr(babel.localedata, "_cache", {})
    before = len(copy["likely_subtags"])
    assert (Formats("en", UTC).number(1), len(copy["likely_subtags"])) == ("1", before)
    assert (Formats("en", UTC, small=True).number(1), len(copy["likely_subtags"])) == ("1", 2)
