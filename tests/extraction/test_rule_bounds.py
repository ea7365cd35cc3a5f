"""Bounds of rules at their edges, files of rules that were written by hand, functions, and what a page's reading gives back."""

import fcntl
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from gatewayfilter.documents.sandbox import Sandbox
from gatewayfilter.errors import ClassifyError, StoreError
from gatewayfilter.extraction import functions, rule_book, rule_folder, rules
from gatewayfilter.extraction.functions import article_body, extraction_function, register
from gatewayfilter.extraction.match_counts import MatchCounts
from gatewayfilter.extraction.rule_book import RuleBook, RuleResult, extract, extract_confined
from gatewayfilter.extraction.rule_folder import RuleFolder
from gatewayfilter.extraction.rule_form import FieldRow, RuleForm
from gatewayfilter.extraction.rules import Extracted, parse_rule
from gatewayfilter.interfaces import Page, RuleMatches
from tests.case_tables import all_cases

RULE = "urls = 'https://a\\.example/.*'\n[fields.title]\ncss = 'h1'\n"


def page_of(html: str, content_type: str = "text/html") -> Page:
    return Page("https://a.example/", "https://a.example/", 200, {"content-type": content_type}, html.encode())


def test_numbers_of_fields_and_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_FIELDS", 2)
    monkeypatch.setattr(rules, "MAX_LINK_TABLES", 2)
    field, table = "[fields.f{}]\ncss = 'p'\n", "[[links]]\ncss = 'a'\n"
    rule = parse_rule("urls = 'x'\n" + field.format(1) + field.format(2) + table * 2, "n")
    assert (len(rule.fields), len(rule.links)) == (2, 2)
    for more in (field.format(1) + field.format(2) + field.format(3), table * 3):
        with pytest.raises(ClassifyError, match="at most 2 fields and 2 tables"):
            parse_rule("urls = 'x'\n" + more, "n")


@all_cases(
    ("table", "says"),
    [
        ("[fields.f]\ncss = 'p'\nlimit = 3", "unknown key 'limit' in the field 'f'$"),
        ("[fields.f]\ncss = 'p'\nzones = 'x'", "did you mean 'zone'\\?"),
        ("[[links]]\ncss = 'a'\nmany = true", "unknown key 'many' in table 1 of links$"),
        ("[[links]]\ncss = 'a'\nlimits = 1", "did you mean 'limit'\\?"),
        ("[[links]]\ncss = 'a'\n[[links]]\nx = 1", "in table 2 of links"),
        ("[fields.f]\nxpath = '//p'\nattribute = 'x'", "goes with css only"),
    ],
)  # fmt: skip
def test_keys_that_do_not_belong(table: str, says: str) -> None:
    with pytest.raises(ClassifyError, match=says):
        parse_rule(f"urls = 'x'\n{table}", "n")


def test_an_expression_may_be_as_long_as_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_EXPRESSION", 3)
    assert parse_rule("urls = 'x'\n[fields.f]\ncss = 'h12'", "n").fields[0].name == "f"
    with pytest.raises(ClassifyError, match="1 to 3 characters"):
        parse_rule("urls = 'x'\n[fields.f]\ncss = 'h123'", "n")


def test_what_cannot_be_read_is_told_with_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = parse_rule(RULE + "[[links]]\ncss = 'a'\n[[links]]\ncss = 'b'", "n")

    def fails(*_: object) -> None:
        raise ValueError("x" * 400)

    monkeypatch.setattr(rules, "values_of", fails)
    found = rule.extract("<h1>x", "https://a.example/")
    reason = f"ValueError: {'x' * 400}"[:300]
    assert found == Extracted({"title": []}, [], {"title": reason, "links 1": reason, "links 2": reason})


def test_functions_read_what_is_within(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "<script type=application/ld+json>{}</script>".format
    html = script("[1") + script(
        '{"a": "x", "articleBody": ["no", {"articleBody": "one"}], "b": [[{"articleBody": "two"}]], "c": 3}'
    )
    assert list(article_body(html, "")) == ["one", "two"]
    monkeypatch.setattr(functions, "MAX_DEPTH", 2)
    for inner, found in (
        ('[["x", {"n": "y"}]]', ["y"]),
        ('[[[{"n": "y"}]]]', []),
        ('{"a": {"b": {"n": "y"}}}', ["y"]),
        ('{"a": {"b": {"c": {"n": "y"}}}}', []),
    ):
        monkeypatch.setattr(functions, "_FUNCTIONS", {})
        assert list(functions._named(json.loads(inner), "n")) == found, inner
    assert register(article_body) is article_body
    assert extraction_function("article_body") is article_body


def test_the_longest_rule_is_read_and_a_longer_file_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_folder, "MAX_FILE", len(RULE))
    asked = list[int]()

    class File:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def read(self, size: int) -> bytes:
            asked.append(size)
            return RULE.encode()

    path: Any = SimpleNamespace(open=lambda _: File(), stem="n")
    assert rule_folder.read_rule_file(path).source == RULE
    assert asked == [4 * len(RULE) + 1], "as many bytes as that many characters may have, and one more"


def test_files_are_private_whole_and_kept_by_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RuleFolder(tmp_path / "rules")
    synced = list[str]()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(os.pread(descriptor, 10_000, 0).decode())

    monkeypatch.setattr(os, "fsync", fsync)
    with folder.changing(), (tmp_path / "rules" / ".lock").open("w") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.add(parse_rule(RULE, "n"))
    assert synced == [RULE, RULE]
    assert [(tmp_path / "rules" / name).stat().st_mode & 0o777 for name in ("", "history", "history/n")] == [
        0o700,
        0o777 & ~_umask(),
        0o700,
    ]


def _umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def test_the_number_of_rules_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_folder, "MAX_RULES", 2)
    folder = RuleFolder(tmp_path)
    for name in ("a", "b", "b"):
        folder.add(parse_rule(RULE, name))
    with pytest.raises(ClassifyError, match="there are 2 rules already"):
        folder.add(parse_rule(RULE, "c"))
    assert folder.remove("c") is False
    assert folder.remove("b") is True
    assert folder.add(parse_rule(RULE, "c")).version == 1


def test_what_was_written_by_hand_becomes_a_version(tmp_path: Path) -> None:
    folder = RuleFolder(tmp_path)
    path = tmp_path / "n.toml"
    folder.keep("n")
    assert folder.history("n") == []
    path.write_text(RULE)
    for text, versions in ((RULE, [1]), (RULE, [1]), (RULE + "# more", [1, 2]), (RULE, [1, 2, 3])):
        path.write_text(text)
        folder.keep("n")
        assert [each.version for each in folder.history("n")] == versions
        assert folder.history("n")[-1].in_use
        assert folder.rule("n", versions[-1]).source == text
    path.write_bytes(b"\xff")
    folder.keep("n")
    assert [each.in_use for each in folder.history("n")] == [False, False, False]


@pytest.mark.parametrize("name", ["../x", "", "A", "a/b"])
def test_versions_do_not_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ClassifyError, match="a rule's name"):
        RuleFolder(tmp_path).rule(name, 1)


def test_text_that_no_file_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClassifyError, match="a character that is no text"):
        rule_folder._write(tmp_path / "x" / "n.toml", "\ud800")
    assert not (tmp_path / "x").exists()


class Answers:
    """A confined process as the test needs it."""

    def __init__(self, *_: object) -> None:
        self.closed = False
        self.asked = 0

    def ask(self, question: dict[str, str], body: bytes) -> dict[str, Any]:
        self.asked += 1
        assert not self.closed
        return extract_confined(question, body)

    def close(self) -> None:
        self.closed = True


def test_a_process_is_ended_by_who_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made, given = list[Answers](), Answers()

    def start(job: str, timeout_s: float) -> Answers:
        assert (job, timeout_s) == ("gatewayfilter.extraction.rule_book:extract_confined", rule_book.TIME_LIMIT_S)
        made.append(Answers())
        return made[-1]

    monkeypatch.setattr(rule_book, "Sandbox", start)
    rule = parse_rule(RULE, "n")
    found = extract(rule, page_of("<h1>T</h1>"))
    assert found == RuleResult(rule, Extracted({"title": ["T"]}, [], {}))
    assert [each.closed for each in made] == [True]
    confined = cast("Sandbox", given)
    assert extract(rule, page_of("<h1>T</h1>"), confined) == found
    assert (given.closed, len(made)) == (False, 1)


def test_which_pages_are_read_and_how_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_book, "Sandbox", Answers)
    RuleFolder(tmp_path).add(parse_rule(RULE, "n"))
    counted = list[tuple[str, bool]]()
    counts: Any = SimpleNamespace(count=lambda name, *, empty: counted.append((name, empty)))
    book = RuleBook(tmp_path, matches=counts)
    for page in (page_of("", "text/html"), page_of("<h1>x", "image/png")):
        assert book.read(page) is None
    page, empty = page_of("<h1>x"), page_of("<p>x")
    first = book.read(page)
    assert first is not None
    assert book.read(page) is first
    assert book.read(empty) is not None
    assert counted == [("n", False), ("n", True)]


def test_what_is_found_may_be_nothing() -> None:
    rule = parse_rule(RULE, "n")
    cases: list[tuple[dict[str, list[str]], list[tuple[str, str]], bool]] = [
        ({}, [], True), ({"a": []}, [], True), ({"a": ["x"]}, [], False), ({}, [("x", "")], False), ({}, [("x", "y")], False),
    ]  # fmt: skip
    for fields, links, is_empty in cases:
        assert RuleResult(rule, Extracted(fields, links, {})).is_empty is is_empty


def test_counts_that_were_not_written_are_kept() -> None:
    written = list[dict[str, RuleMatches]]()
    broken = [True]

    def write(counts: Any) -> None:
        if broken:
            raise StoreError("full")
        written.append(dict(counts))

    counts = MatchCounts(write, lambda: 5.0)
    counts.count("a", empty=True)
    with pytest.raises(StoreError):
        counts.flush()
    broken.clear()
    counts.count("a", empty=False)
    counts.flush()
    counts.flush()
    assert written == [{"a": RuleMatches(2, 1, 5.0)}]


def test_css_alone_takes_attributes() -> None:
    row = FieldRow("f", "xpath", "//p", attribute="x", text=True)
    assert "attribute" not in RuleForm("u", fields=(row,)).source()
    assert "text" not in RuleForm("u", fields=(row,)).source()
