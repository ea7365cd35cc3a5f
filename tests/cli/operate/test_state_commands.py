"""`db`, `ca` and `config`: what the state folder holds besides lists."""

import json
import os
import sqlite3
import ssl
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.processes.supervision.run_lock import RunLock

type Cli = Callable[..., Any]


def test_the_database_is_brought_up_to_date(cli: Cli, state: Path) -> None:
    assert cli("db", "status").code == 1
    assert not state.exists()
    before = cli("db", "status", "--json").json
    assert (before["up_to_date"], before["current"] or "") == (False, "")
    assert cli("db", "upgrade", "--json").json["after"] == before["head"]
    assert cli("db", "status", "--json").json["up_to_date"]
    assert "is up to date" in cli("db", "status").out
    assert "is up to date" in cli("db", "upgrade").out
    assert state.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "command", [["list", "show"], ["log", "tail"], ["queue", "stats"], ["db", "status"], ["db", "upgrade"], ["check", "a.test"]]
)
def test_a_file_that_is_no_database_is_said_in_one_sentence(command: list[str], cli: Cli, state: Path) -> None:
    state.mkdir(parents=True)
    (state / "gatewayfilter.sqlite3").write_bytes(b"this is no database" * 1000)
    assert "gatewayfilter.sqlite3" in cli(*command).complains()


def test_the_database_url_may_be_wrong(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_STORE__URL", "nonsense")
    assert "store.url" in cli("list", "show").complains()


def test_a_state_folder_that_cannot_be_made(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "state folder" in cli("list", "show", "--data-dir", tmp_path / "file" / "x").complains()


def test_the_authority_is_made_once_and_its_key_stays(cli: Cli, state: Path, tmp_path: Path) -> None:
    shown = cli("ca", "show", "--json").json
    assert cli("ca", "show", "--json").json == shown
    assert shown["sha256"] in cli("ca", "show").out
    assert "PRIVATE" not in Path(shown["file"]).read_text()
    assert "PRIVATE" in Path(shown["key_file"]).read_text()
    assert f"certificate  {shown['file']}" in cli("ca", "show").out
    assert shown["expires"] > time.time()
    pem = cli("ca", "export").out
    assert pem.startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE" not in pem
    for form in ("pem", "der", "p12"):
        assert cli("ca", "export", "--format", form, "--output", tmp_path / f"ca.{form}").code == 0
    assert ssl.PEM_cert_to_DER_cert(pem) == (tmp_path / "ca.der").read_bytes()
    assert (tmp_path / "ca.pem").read_text() == pem
    assert (state / "ca").stat().st_mode & 0o777 == 0o700


def test_a_damaged_authority_is_said_in_one_sentence(cli: Cli, state: Path) -> None:
    cli("ca", "show")
    (state / "ca" / "mitmproxy-ca.pem").write_text("nonsense")
    assert "is damaged" in cli("ca", "export").complains()


def test_a_certificate_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    assert "cannot write" in cli("ca", "export", "--output", tmp_path / "not" / "there").complains()


def test_settings_show_where_they_came_from(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.mkdir(parents=True)
    (state / "config.toml").write_text("[proxy]\nworkers = 2\n[log]\nprivacy = 'host'\n")
    monkeypatch.setenv("GATEWAYFILTER_PROXY__WORKERS", "3")
    monkeypatch.setenv("GATEWAYFILTER_STORE__URL", "postgresql+psycopg://me:quiet-word@db.example/x")
    monkeypatch.setenv("GATEWAYFILTER_WEB__OIDC__CLIENT_SECRET", "other-quiet-word")
    shown = cli("config", "show", "--json").json
    assert shown["proxy.workers"] == {"value": 3, "origin": "environment GATEWAYFILTER_PROXY__WORKERS"}
    assert shown["log.privacy"] == {"value": "host", "origin": f"file {state / 'config.toml'}"}
    assert shown["log.level"]["origin"] == "default"
    assert shown["crawl.allow_ports"]["value"] == [80, 443]
    assert shown["store.url"]["value"] == "postgresql+psycopg://me:…@db.example/x"
    assert "quiet-word" not in cli("config", "show").out + cli("config", "show", "--json").out
    assert set(cli("config", "show", "log", "--json").json) == {key for key in shown if key.startswith("log.")}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("STORE__URL", "postgresql://db.example/x?user=me&password=secret&sslmode=require",
         "postgresql://db.example/x?user=me&password=…&sslmode=require"),
        ("CRAWL__PROXIES", "http://me:secret@192.0.2.1:3128,192.0.2.2:80", ["http://me:…@192.0.2.1:3128", "192.0.2.2:80"]),
    ],
)  # fmt: skip
def test_no_password_is_shown(name: str, value: str, shown: object, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"GATEWAYFILTER_{name}", value)
    key = name.lower().replace("__", ".")
    assert cli("config", "show", key, "--json").json[key]["value"] == shown


def test_settings_are_checked(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    file.write_text("[proxy]\nworkers = 2\n")
    assert cli("config", "check", file).out == "The settings are good: 1 value given, the others at their defaults.\n"
    assert cli("config", "check", file, "--json").json == {"ok": True, "given": {"proxy.workers": f"file {file}"}}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[proxy]\nlisen = 'x'", "unknown setting 'proxy.lisen'"),
        ("[proxy]\nlisen = 'x'", "did you mean 'proxy.listen'?"),
        ("[prox]\nlisten = 'x'", "unknown setting"),
        ("[proxy]\nworkers = 'many'", "setting 'proxy.workers' (file"),
        ("[proxy", "is not valid TOML"),
        ("[crawl]\nallow_networks = ['everywhere']", "setting 'crawl.allow_networks'"),
        ("proxy = 3", "unknown setting 'proxy'"),
    ],
)
@pytest.mark.parametrize("command", [["config", "check"], ["list", "show"], ["run"], ["check", "a.test"]])
def test_bad_settings_stop_every_command(
    content: str, sentence: str, command: list[str], cli: Cli, state: Path, tmp_path: Path
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(content)
    assert sentence in cli(*command, "--config", file).complains()
    assert not state.exists()


def test_bad_settings_in_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_PROXY__LISEN", "x")
    assert "did you mean 'proxy.listen'?" in cli("list", "show").complains()


def test_a_configuration_that_is_not_text(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(b"\xff\xfe")
    assert "cannot read the configuration" in cli("config", "check", file).complains()
    assert "cannot read the configuration" in cli("config", "check", tmp_path).complains()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_configuration_that_may_not_be_read(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.touch(mode=0o000)
    assert "Permission denied" in cli("config", "check", file).complains()


def test_the_schema_is_json_schema(cli: Cli) -> None:
    schema = json.loads(cli("config", "schema").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "proxy" in schema["properties"]


def test_names_of_earlier_releases_are_warned_of_in_one_line(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text("[tls]\npass_through_days = 3\npass_through_after = 4\n")
    answer = cli("config", "show", "tls.pass_through_days", "--json", "--config", file)
    assert answer.json["tls.pinned_apps_days"]["value"] == 3.0
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("gatewayfilter: setting 'tls.pass_through_days'")
    assert "is now called 'tls.pinned_apps_days'; setting 'tls.pass_through_after'" in answer.err
    assert cli("config", "check", "--config", file).code == 0


def test_a_command_does_not_migrate_under_a_running_filter(cli: Cli, state: Path) -> None:
    cli("list", "add", "a.example")
    with closing(sqlite3.connect(state / "gatewayfilter.sqlite3")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0011'")
    with RunLock(state):
        for command in (["list", "show"], ["check", "a.example"], ["publish"]):
            assert f"a filter of an earlier version (process {os.getpid()}) runs on" in cli(*command).complains()
    assert cli("db", "status", "--json").json["current"] == "0011"
