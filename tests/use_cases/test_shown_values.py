"""Values of settings as they are shown, in the types of JSON, without secrets; sections, and what wins over the file."""

from pathlib import Path

import pytest

from gatewayfilter.config import Loaded, load
from gatewayfilter.errors import ConfigError
from gatewayfilter.use_cases.setting_values import change_setting, setting_value, shown_settings


def loaded(tmp_path: Path, **options: object) -> Loaded:
    given = {key.replace("__", "."): value for key, value in options.items()}
    return load(environ={}, options={"data_dir": tmp_path, **given})


def test_values_in_the_types_of_json(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        crawl__proxies=["http://user:secret@proxy.example:1", "plain.example:2"],
        crawl__tasks={"news": {"depth": 2}},
        cache__url="redis://:secret@cache.example/0",
        proxy__auth_file=tmp_path / "users",
        log__privacy="off",
    ).settings
    assert setting_value(settings, "crawl.proxies") == ["http://user:…@proxy.example:1", "plain.example:2"]
    assert "secret" not in str(setting_value(settings, "cache.url"))
    assert setting_value(settings, "cache.url")
    assert setting_value(settings, "proxy.auth_file") == str(tmp_path / "users")
    assert (type(setting_value(settings, "log.privacy")), setting_value(settings, "log.privacy")) == (str, "off")
    tasks = setting_value(settings, "crawl.tasks")
    assert isinstance(tasks, dict)
    assert (tasks["news"]["depth"], tasks["news"]["follow"]) == (2, "all")
    assert setting_value(settings, "learn.enabled") is True
    assert setting_value(settings, "proxy.hold_ms") == settings.proxy.hold_ms


def test_secrets_are_told_to_be_set_or_not(tmp_path: Path) -> None:
    settings = loaded(tmp_path).settings
    assert setting_value(settings, "fleet.token") == ""
    environ = {"GATEWAYFILTER_FLEET__TOKEN": "gwf_secret", "GATEWAYFILTER_DATA_DIR": str(tmp_path)}
    assert setting_value(load(environ=environ).settings, "fleet.token") == "(set)"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db.example/x", "postgresql://me:…@db.example/x"),
        ("postgresql://db.example/x?user=me&password=secret&a=b", "postgresql://db.example/x?user=me&password=…&a=b"),
        ("postgresql://db.example/x?sslpassword=secret", "postgresql://db.example/x?sslpassword=…"),
        ("postgresql://me@db.example/x", "postgresql://me@db.example/x"),
    ],
)
def test_passwords_in_addresses_are_left_out(url: str, shown: str, tmp_path: Path) -> None:
    assert setting_value(loaded(tmp_path, store__url=url).settings, "store.url") == shown


def test_sections_and_settings_are_chosen_by_name(tmp_path: Path) -> None:
    rows = [row.key for row in shown_settings(loaded(tmp_path), ["web.oidc", "log.level"])]
    assert "log.level" in rows
    assert "web.oidc.issuer" in rows
    assert {key.rpartition(".")[0] for key in rows} == {"web.oidc", "log"}
    assert len([key for key in rows if key.startswith("log.")]) == 1
    assert "web.listen" in [row.key for row in shown_settings(loaded(tmp_path), ["web"])]
    with pytest.raises(ConfigError, match=r"no setting 'zzzzzz'$"):
        shown_settings(loaded(tmp_path), ["zzzzzz"])


def test_what_can_be_changed(tmp_path: Path) -> None:
    changeable = {row.key: row.changeable for row in shown_settings(loaded(tmp_path))}
    assert changeable["log.level"]
    assert not any(changeable[key] for key in ("data_dir", "store.url", "notify.command", "crawl.tasks", "fleet.token"))


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        ("log.privacy", "off", 'privacy = "off"'),
        ("crawl.archive_mb", "7", "archive_mb = 7"),
        ("crawl.proxies", "http://u:p@a.example:1,,b.example:2 ", 'proxies = ["http://u:p@a.example:1", "b.example:2"]'),
        ("proxy.hold_ms", "0", "hold_ms = 0"),
    ],
)
def test_values_are_written_as_they_are_read(key: str, text: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    changed = change_setting(loaded(tmp_path), file, key, text)
    assert line in file.read_text()
    assert (changed.key, changed.file, changed.overruled_by) == (key, file, "")
    assert changed.before == setting_value(loaded(tmp_path / "none").settings, key)
    assert ":p@" not in str(changed.after)


def test_the_longest_value_is_written(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    with pytest.raises(ConfigError, match="longer than 4,096"):
        change_setting(loaded(tmp_path), file, "log.ignored_hosts", "a" * 4_097)
    with pytest.raises(ConfigError) as caught:
        change_setting(loaded(tmp_path), file, "log.ignored_hosts", "a" * 4_096)
    assert "4,096" not in str(caught.value)
    assert not file.exists()


def test_what_an_option_sets_wins(tmp_path: Path) -> None:
    changed = change_setting(loaded(tmp_path, log__level="error"), tmp_path / "config.toml", "log.level", "debug")
    assert (changed.before, changed.after, changed.overruled_by) == ("error", "debug", "option")
