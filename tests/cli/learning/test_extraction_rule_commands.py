"""`rules` and `crawl --rule`: tried, added, changed, put back."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.learning.test_learning_commands import site  # noqa: F401  the loopback server

RULE = "urls = 'http://127\\.0\\.0\\.1:\\d+/.*'\n[fields.first]\ncss = 'p, body'\n[[links]]\ncss = 'a'\n"


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    path = tmp_path / "news.toml"
    path.write_text(RULE, encoding="utf-8")
    return path


def test_a_rule_is_tried_before_it_is_used(cli: Cli, site: str, rule: Path) -> None:  # noqa: F811
    answer = cli("crawl", "--rule", str(rule), f"{site}/calm", "--json")
    assert answer.code == 0, answer.err
    [found] = answer.lines
    assert (found["rule"], found["matches"], found["errors"]) == ("news", True, {})
    assert found["fields"]["first"]
    assert cli("rules", "list", "--json").json == []
    assert cli("queue", "stats", "--json").json["waiting"] == 0
    cli("rules", "add", str(rule))
    assert "first" in cli("crawl", "--rule", "news", f"{site}/calm").out


@pytest.mark.slow
def test_the_fields_of_a_rule_in_use_are_kept_and_shown(cli: Cli, site: str, rule: Path) -> None:  # noqa: F811
    cli("rules", "add", str(rule))
    fields = cli("crawl", f"{site}/calm", "--json").lines[0]["classification"]["fields"]
    assert list(fields) == ["first"]
    assert fields["first"][0]
    assert cli("check", f"{site}/calm", "--json").json["classification"]["classification"]["fields"] == fields
    assert fields["first"][0] in cli("check", f"{site}/calm").out


def test_a_rule_for_other_urls_or_without_its_field_ends_with_1(cli: Cli, site: str, rule: Path) -> None:  # noqa: F811
    rule.write_text(RULE.replace("127", "128"), encoding="utf-8")
    answer = cli("crawl", "--rule", str(rule), f"{site}/calm")
    assert (answer.code, "is not for this URL" in answer.out) == (1, True)
    rule.write_text(RULE.replace("p, body", "video"), encoding="utf-8")
    answer = cli("crawl", "--rule", str(rule), f"{site}/calm")
    assert (answer.code, "not found" in answer.out) == (1, True)
    assert cli("crawl", "--rule", str(rule), "http://127.0.0.1:9/").code == 2


def test_versions_by_command(cli: Cli, rule: Path) -> None:
    assert cli("rules", "add", str(rule), "--json").json[0]["version"] == 1
    rule.write_text(RULE.replace("first", "lead"), encoding="utf-8")
    assert "version 2" in cli("rules", "add", str(rule)).out
    assert cli("rules", "show", "news").out == rule.read_text(encoding="utf-8")
    assert cli("rules", "show", "news", "--version", "1").out == RULE
    assert [row["in_use"] for row in cli("rules", "history", "news", "--json").json] == [False, True]
    assert cli("rules", "restore", "news", "1", "--json").json["version"] == 3
    [listed] = cli("rules", "list", "--json").json
    assert (listed["name"], listed["version"], listed["fields"], listed["links"]) == ("news", 3, ["first"], 1)
    assert "first" in cli("rules", "list").out
    assert "in use" in cli("rules", "history", "news").out
    assert cli("rules", "remove", "news", "other", "--json").json == {"removed": ["news"], "missing": ["other"]}
    assert cli("rules", "remove", "news").code == 1


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["rules", "add", "/nonexistent.toml"], "cannot read"),
        (["rules", "show", "news"], "no rule 'news'; there are: none"),
        (["rules", "history", "news"], "there never was"),
        (["rules", "restore", "news", "4"], "no version 4"),
        (["crawl", "--rule", "/nonexistent.toml", "http://a.example/"], "cannot read"),
    ],
)
def test_bad_input(cli: Cli, command: list[str], says: str) -> None:
    assert says in cli(*command).complains()


def test_a_damaged_rule_is_listed_as_such(cli: Cli, rule: Path, state: Path) -> None:
    cli("rules", "add", str(rule))
    (state / "rules" / "news.toml").write_text("urls = ", encoding="utf-8")
    answer = cli("rules", "list")
    assert (answer.code, "not valid TOML" in answer.out.replace("\n", " ")) == (1, True)
