"""Issue forms, the pull-request template and the pre-commit file: well formed, and naming only what there is."""

import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.case_tables import all_cases
from tests.docs.markdown_pages import ROOT, read_page
from tests.docs.test_docs_pages import wrong_commands

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TEMPLATES = [*FORMS, ROOT / ".github" / "pull_request_template.md"]


def read_yaml(text: str) -> Any:
    return YAML(typ="safe").load(text)


@all_cases("path", TEMPLATES)
def test_commands_that_templates_name_exist(path: Any) -> None:
    assert wrong_commands(read_page(path)) == []


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: path.stem)
def test_forms_ask_each_thing_once(path: Any) -> None:
    form = read_yaml(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in fields]
    assert len(ids) == len(set(ids))
    assert all(field["type"] in {"input", "textarea", "dropdown"} and field["attributes"]["label"] for field in fields)
    assert "version" in ids


def test_there_is_a_form_for_each_kind_of_report() -> None:
    assert {path.stem for path in FORMS} == {"config", "crash", "missed-block", "wrong-block"}


def test_before_a_commit_runs_what_check_runs_before_the_tests() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    check = re.search(r"^check: (.*?) ##", makefile, re.MULTILINE)
    assert check is not None
    hooks = [
        hook
        for repo in read_yaml((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
        for hook in repo["hooks"]
    ]
    assert [hook["id"] for hook in hooks] == check[1].split()[:-1]
    assert [hook["entry"].split()[-1] for hook in hooks] == [hook["id"] for hook in hooks]
