"""`gatewayfilter backup` and `gatewayfilter restore`."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.processes.supervision.run_lock import RunLock

type Cli = Callable[..., Any]


def test_a_backup_and_its_restore(cli: Cli, state: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.gfbackup"
    cli("list", "add", "--block", "a.test")
    made = cli("backup", file, "--json").json
    assert made["counts"]["manual rules"] == 1
    assert (made["with_ca"], made["size_bytes"]) == (False, file.stat().st_size)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "is there already" in cli("backup", file).complains()
    assert "Without the certificate authority" in cli("backup", file, "--overwrite").out
    assert "Nothing differs" in cli("restore", file, "--dry-run").out
    cli("list", "add", "--block", "b.test")
    preview = cli("restore", file, "--dry-run")
    assert "1 change; nothing was changed" in preview.out
    assert len(cli("list", "show", "--json").json) == 2
    report = cli("restore", file, "--json").json
    assert {"kind": "manual rules", "added": 0, "changed": 0, "removed": 1} in report["changes"]
    assert (report["published"], report["restart"]) == (True, False)
    assert [rule["pattern"] for rule in cli("list", "show", "--json").json] == [".a.test"]
    assert Path(report["safety_copy"]).parent == state / "backups"
    assert "manual rules" in cli("restore", report["safety_copy"]).out
    assert len(cli("list", "show", "--json").json) == 2


@pytest.mark.slow
def test_the_authority_needs_a_passphrase_and_a_filter_that_does_not_run(
    cli: Cli, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, secret = tmp_path / "b", tmp_path / "secret"
    fingerprint = cli("ca", "show", "--json").json["sha256"]
    assert "passphrase is needed" in cli("backup", file, "--with-ca").complains()
    assert "cannot read" in cli("backup", file, "--with-ca", "--passphrase-file", secret).complains()
    secret.write_text("correct horse battery\nmore\n")
    assert cli("backup", file, "--with-ca", "--passphrase-file", secret).code == 0
    (state / "ca" / "mitmproxy-ca.pem").unlink()
    (state / "ca" / "mitmproxy-ca-cert.pem").unlink()
    monkeypatch.setenv("GATEWAYFILTER_BACKUP_PASSPHRASE", "wrong horse battery")
    assert "passphrase is wrong" in cli("restore", file, "--with-ca").complains()
    monkeypatch.setenv("GATEWAYFILTER_BACKUP_PASSPHRASE", "correct horse battery")
    with RunLock(state):
        assert "stop it first" in cli("restore", file, "--with-ca").complains()
        assert cli("restore", file, "--with-ca", "--dry-run").code == 0
        assert cli("restore", file).code == 0
    assert cli("restore", file, "--with-ca").code == 0
    assert cli("ca", "show", "--json").json["sha256"] == fingerprint


@pytest.mark.parametrize("content", [b"", b"x" * 1000, b"PK\x05\x06" + bytes(18)])
def test_what_is_no_backup_is_said_in_one_sentence(content: bytes, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(content)
    assert "backup" in cli("restore", tmp_path / "b").complains()
    assert "backup" in cli("restore", tmp_path / "b", "--dry-run").complains()


def test_places_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    assert "cannot write" in cli("backup", tmp_path / "not" / "there").complains()
    assert "cannot read" in cli("restore", tmp_path / "missing").complains()
    assert "there already" in cli("backup", tmp_path).complains()


def test_what_an_interrupted_restore_left_is_taken_away_by_run(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.processes.run", lambda _settings: 0)
    (state / ".restore").mkdir(parents=True)
    (state / ".restore" / "file-0").write_text("half")
    assert cli("run").code == 0
    assert not (state / ".restore").exists()
    (state / ".restore").mkdir()
    (state / ".restore" / "journal.json").write_text("{")
    answer = cli("run")
    assert answer.code == 0
    assert "cannot be completed" in answer.err
