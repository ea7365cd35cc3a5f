"""docs/configuration.md against the settings: a setting without its row there fails, and so does a row that lags behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import ENV_PREFIX, Settings, default_data_dir, known_keys
from tests.case_tables import all_cases

DOCS = Path(__file__).parents[2] / "docs"
ENGLISH = (DOCS / "configuration.md").read_text(encoding="utf-8")
CHINESE = (DOCS / "zh" / "configuration.md").read_text(encoding="utf-8")
SCHEMA = Settings.model_json_schema()
KEYS = dict(known_keys())


def _schema(key: str) -> dict[str, Any]:
    *sections, name = key.split(".")
    table = SCHEMA
    for section in sections:
        table = SCHEMA["$defs"][table["properties"][section]["$ref"].rpartition("/")[2]]
    found: dict[str, Any] = table["properties"][name]
    return {**found, **SCHEMA["$defs"][found["$ref"].rpartition("/")[2]], **found} if "$ref" in found else found


def _range(schema: dict[str, Any]) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    bounds = f" {low:,} to {high:,}" if high is not None else f" from {low:,}" if low is not None else ""
    return f"{bounds}, not 0" if "exclusiveMinimum" in schema and high is None else bounds


def _type(key: str) -> str:
    schema = _schema(key)
    if "enum" in schema:
        return " · ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema or schema.get("format") == "path":
        return "path"
    kind = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "array": "list"}.get(
        schema["type"], "table"
    )
    return kind + _range(schema)


def _default(key: str) -> str:
    if key == "data_dir":
        return "`~/.local/state/gatewayfilter`"
    value = _schema(key).get("default")
    return "none" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _environment(key: str) -> str:
    return f"`{ENV_PREFIX}{key.upper().replace('.', '__')}`"


def _row(key: str) -> str:
    meaning = KEYS[key].replace("|", "\\|")
    return f"| `{key}` | {_type(key)} | {_default(key)} | {meaning} | {_environment(key)} |"


@all_cases("key", KEYS)
def test_every_setting_has_its_row(key: str) -> None:
    assert _row(key) in ENGLISH.splitlines()


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_no_row_is_about_a_setting_that_is_gone(text: str) -> None:
    rows = [line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")]
    assert set(rows) == set(KEYS)


@all_cases("key", KEYS)
def test_the_chinese_page_names_default_and_environment(key: str) -> None:
    (row,) = [line for line in CHINESE.splitlines() if line.startswith(f"| `{key}` |")]
    assert _default(key).replace("none", "无") in row
    assert _environment(key) in row


def test_the_state_folder_is_where_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/kim")
    assert default_data_dir() == Path("/home/kim/.local/state/gatewayfilter")
