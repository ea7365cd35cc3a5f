from pathlib import Path

import pytest

from gatewayfilter.config import Loaded, load
from gatewayfilter.errors import ConfigError
from gatewayfilter.use_cases.setting_values import change_setting, shown_settings


def loaded(tmp_path: Path, environ: dict[str, str] | None = None) -> Loaded:
    return load(environ=environ or {}, options={"data_dir": tmp_path})


def test_settings_are_shown_with_their_origins_and_without_passwords(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[store]\nurl = "postgresql+psycopg://me:secret@db.example/x"\n')
    rows = {row.key: row for row in shown_settings(loaded(tmp_path, {"GATEWAYFILTER_LOG__LEVEL": "debug"}))}
    assert rows["store.url"].value == "postgresql+psycopg://me:…@db.example/x"
    assert rows["store.url"].origin.startswith("file ")
    assert rows["log.level"].origin == "environment GATEWAYFILTER_LOG__LEVEL"
    assert all(row.description for row in rows.values())
    assert not rows["store.url"].changeable
    assert rows["log.level"].changeable
    assert [row.key for row in shown_settings(loaded(tmp_path), ["log.level"])] == ["log.level"]
    with pytest.raises(ConfigError, match="did you mean 'log'"):
        shown_settings(loaded(tmp_path), ["logg"])


@pytest.mark.parametrize(
    ("key", "text", "line", "value"),
    [
        ("log.level", "debug", 'level = "debug"', "debug"),
        ("log.retention_days", "7", "retention_days = 7", 7),
        ("crawl.timeout_s", "2.5", "timeout_s = 2.5", 2.5),
        ("learn.enabled", "false", "enabled = false", False),
        ("log.ignored_hosts", "a.example, b.example", 'ignored_hosts = ["a.example", "b.example"]', ["a.example", "b.example"]),
        ("log.ignored_hosts", "", "ignored_hosts = []", []),
        ("proxy.brand_name", '5" ]\n[store]\nurl = "x', "brand_name = ", '5" ]\n[store]\nurl = "x'),
    ],
)
def test_a_value_is_changed_and_comments_stay(tmp_path: Path, key: str, text: str, line: str, value: object) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\n[proxy]\nworkers = 2  # two\n")
    changed = change_setting(loaded(tmp_path), file, key, text)
    assert (changed.after, changed.overruled_by) == (value, "")
    assert file.read_text().startswith("# mine\n[proxy]\nworkers = 2  # two\n")
    assert line in file.read_text()
    assert [row.value for row in shown_settings(loaded(tmp_path), [key])] == [value]


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("log.level", "loud", "setting 'log.level'"),
        ("log.retention_days", "soon", "must be a number"),
        ("log", "x", "is a section"),
        ("log.levle", "debug", "did you mean 'log.level'"),
        ("store.url", "sqlite:////tmp/x", "in the file"),
        ("notify.command", "/bin/sh", "in the file"),
        ("data_dir", "/tmp", "in the file"),
        ("learn.modes", "gambling=off", "in the file"),
        ("proxy.brand_name", "x" * 5000, "longer than 4,096"),
    ],
)
def test_what_cannot_be_set_leaves_the_file(tmp_path: Path, key: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        change_setting(loaded(tmp_path), tmp_path / "config.toml", key, text)
    assert not (tmp_path / "config.toml").exists()


def test_what_wins_over_the_file_is_named(tmp_path: Path) -> None:
    environ = {"GATEWAYFILTER_LOG__LEVEL": "error"}
    changed = change_setting(loaded(tmp_path, environ), tmp_path / "config.toml", "log.level", "debug")
    assert (changed.before, changed.after) == ("error", "debug")
    assert changed.overruled_by == "environment GATEWAYFILTER_LOG__LEVEL"
