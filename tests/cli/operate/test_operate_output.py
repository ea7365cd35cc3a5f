"""What `backup`, `restore`, `ca` and `db` print: `gatewayfilter.cli.operate.backup_commands`,
`gatewayfilter.cli.operate.ca_commands`, `gatewayfilter.cli.operate.db_commands`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from gatewayfilter.certificates.authority import RENEW_WITHIN_DAYS
from gatewayfilter.cli.operate.backup_commands import backup
from gatewayfilter.errors import SnapshotError, StoreError
from gatewayfilter.store.backup import Part
from gatewayfilter.use_cases.backup import BackupReport, KindChanges, RestoreReport, Wanted
from gatewayfilter.use_cases.backup.state_files import Places
from tests.cli.test_command_doubles import SETTINGS, Doubled, called, table, texts

PLACES = Places.of(SETTINGS, None)
LAST = "Without the certificate authority: on another machine each device needs a new one, unless you add --with-ca.\n"


@pytest.fixture
def backups(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    holder: dict[str, Any] = {"asked": [], "report": BackupReport(Path("/b"), {"manual rules": 1_000}, 2_500_000, False)}

    def back_up(*given: object, overwrite: bool) -> BackupReport:
        holder["asked"].append((*given, overwrite))
        found: BackupReport = holder["report"]
        return found

    monkeypatch.setattr("gatewayfilter.use_cases.backup.back_up", back_up)
    monkeypatch.delenv("GATEWAYFILTER_BACKUP_PASSPHRASE", raising=False)
    return holder


def test_a_backup_holds_what_is_wanted(backups: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    printed = "what          number\nmanual rules  1,000\n/b: 2.5 MB.\n"
    assert texts(Doubled("store"), "backup", "/b") == (0, printed + LAST, "")
    assert backups["asked"].pop() == ("store", PLACES, Path("/b"), Wanted(frozenset({Part.STATE}), True, None), False)
    secret = tmp_path / "secret"
    secret.write_text("correct horse\r\nmore\n")
    backups["report"] = replace(backups["report"], with_ca=True)
    arguments = ("--with-ca", "--with-fingerprints", "--with-log", "--no-lists", "--overwrite", "--passphrase-file", secret)
    assert texts(Doubled("store"), "backup", "/b", *arguments) == (0, printed, "")
    assert backups["asked"].pop()[3:] == (Wanted(frozenset(Part), False, "correct horse"), True)
    monkeypatch.setenv("GATEWAYFILTER_BACKUP_PASSPHRASE", "battery")
    assert called(Doubled("store"), "backup", "/b", "--with-ca", "--json").json["with_ca"] is True
    assert backups["asked"].pop()[3].passphrase == "battery"
    secret.write_bytes(b"\xff")
    assert "cannot read" in called(Doubled(), "backup", "/b", "--with-ca", "--passphrase-file", secret).complains()


def test_a_passphrase_is_typed_twice_at_a_terminal(backups: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    prompts: list[Any] = []

    def prompt(text: str, **how: object) -> str:
        prompts.append((text, how))
        return "typed"

    assert "a passphrase is needed" in called(Doubled(), "backup", "/b", "--with-ca").complains()
    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    backup.main(["/b", "--with-ca"], standalone_mode=False, obj=Doubled())
    assert prompts == [("Passphrase", {"hide_input": True, "confirmation_prompt": True, "err": True})]
    assert backups["asked"].pop()[3].passphrase == "typed"


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A restore of which each step is noted."""
    changes = [
        KindChanges("manual rules", 1_000),
        KindChanges("policies"),
        KindChanges("pages", 0, 2, 0),
        KindChanges("logs", 0, 0, 3),
    ]
    holder: dict[str, Any] = {"changes": changes, "files": frozenset(), "running": 0, "steps": []}

    class Job:
        def __init__(self, store: object, places: object, passphrase: str | None) -> None:
            holder["steps"].append((store, places, passphrase))

        def preview(self, path: Path) -> list[KindChanges]:
            holder["steps"].append(f"preview {path}")
            found: list[KindChanges] = holder["changes"]
            return found

        def carry_out(self, path: Path) -> RestoreReport:
            holder["steps"].append(f"restore {path}")
            return RestoreReport(holder["changes"], Path("/copy"), holder["files"])

    @contextmanager
    def lock(folder: Path) -> Iterator[None]:
        holder["steps"].append(f"lock {folder}")
        yield

    def publish(settings: object, store: object, progress: object) -> None:
        assert (settings, progress is not None) == (SETTINGS, True)
        holder["steps"].append(store)
        if holder.get("fails"):
            raise SnapshotError("no room")

    monkeypatch.setattr("gatewayfilter.use_cases.backup.Restore", Job)
    monkeypatch.setattr("gatewayfilter.processes.supervision.run_lock.RunLock", lock)
    monkeypatch.setattr("gatewayfilter.processes.supervision.run_lock.running_process", lambda _folder: holder["running"])
    monkeypatch.setattr("gatewayfilter.wiring.prepare_data_dir", lambda _settings: None)
    monkeypatch.setattr("gatewayfilter.wiring.publish_now", publish)
    opened = SimpleNamespace(close=lambda: holder["steps"].append("closed"))
    monkeypatch.setattr("gatewayfilter.cli.ui.command_context.open_store", lambda _settings: opened)
    return holder


ROWS = [["manual rules", "1,000", "0", "0"], ["pages", "0", "2", "0"], ["logs", "0", "0", "3"]]


def test_a_restore_shows_what_it_changed(restored: dict[str, Any]) -> None:
    context = Doubled("store")
    code, out, _ = texts(context, "restore", "/b")
    assert (code, table(out)) == (0, [["what", "added", "changed", "removed"], *ROWS, ["The state before is in /copy."]])
    assert restored["steps"][:3] == ["lock /dev/null/state", ("store", PLACES, None), "restore /b"]
    assert (restored["steps"][-1], context.recorded[0].action) == ("closed", "backup.restored")
    context = Doubled("store")
    code, out, _ = texts(context, "restore", "/b", "--dry-run")
    assert table(out)[0] == ["what", "would be added", "would be changed", "would be removed"]
    assert (out.splitlines()[-1], context.recorded) == ("1,005 changes; nothing was changed.", [])
    assert "lock /dev/null/state" not in restored["steps"][-2:]
    changes = called(Doubled(), "restore", "/b", "--dry-run", "--json").json["changes"]
    assert changes[2] == {"kind": "pages", "added": 0, "changed": 2, "removed": 0}
    restored["changes"] = [KindChanges("pages")]
    assert texts(Doubled(), "restore", "/b", "--dry-run")[1] == "Nothing differs from the backup.\n"


def test_a_filter_that_runs_is_told_what_to_do(restored: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    restored["running"] = 77
    told = "Restart the filter: it reads its settings and secrets when it starts."
    assert texts(Doubled(), "restore", "/b")[1].splitlines()[-1] == "The state before is in /copy."
    assert not any(str(step).startswith("lock") for step in restored["steps"])
    for files in ({"settings"}, {"secrets of this installation", "x"}, {"pinned apps"}):
        restored["files"] = frozenset(files)
        assert texts(Doubled(), "restore", "/b")[1].splitlines()[-1] == told
    assert called(Doubled(), "restore", "/b", "--json").json["restart"] is True
    monkeypatch.setenv("GATEWAYFILTER_BACKUP_PASSPHRASE", "battery")
    assert "the filter (process 77) runs: stop it first" in called(Doubled(), "restore", "/b", "--with-ca").complains()
    assert called(Doubled(), "restore", "/b", "--with-ca", "--dry-run").code == 0
    restored["running"] = 0
    answer = called(Doubled(), "restore", "/b", "--with-ca", "--json")
    assert answer.json == {
        "changes": [
            {"kind": one.kind, "added": one.added, "changed": one.changed, "removed": one.removed} for one in restored["changes"]
        ],
        "safety_copy": "/copy",
        "published": True,
        "restart": False,
    }
    assert (None, PLACES, "battery") in restored["steps"]
    restored["fails"] = True
    assert called(Doubled(), "restore", "/b").err.endswith("gatewayfilter: restored, but the lists were not published: no room\n")
    assert called(Doubled(), "restore", "/b", "--json").json["published"] is False


class Authority:
    """A certificate authority without a key."""

    def __init__(self, name: str, days: float = 400.0) -> None:
        self.name, self.fingerprint, self.path = name, "ab:cd", Path(f"/ca/{name}.pem")
        self.certificate_path = Path(f"/ca/{name}-cert.pem")
        self.expires_at = datetime.now(UTC) + timedelta(days=days, seconds=60)

    def export(self, form: str) -> bytes:
        return form.encode()


@pytest.fixture
def authorities(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {"now": Authority("now"), "next": None, "folders": []}

    def made(folder: Path) -> Authority:
        found["folders"].append(folder)
        authority: Authority = found["now"]
        return authority

    monkeypatch.setattr("gatewayfilter.wiring.prepare_data_dir", lambda _settings: None)
    monkeypatch.setattr("gatewayfilter.certificates.authority.ensure_ca", made)
    monkeypatch.setattr(
        "gatewayfilter.certificates.renewal.next_authority", lambda folder: found["next"] if folder == Path("/ca") else None
    )
    for name in ("make_next", "activate_next", "renew_same_key"):
        monkeypatch.setattr(f"gatewayfilter.certificates.renewal.{name}", lambda folder, name=name: Authority(f"{name} {folder}"))
    return found


def test_the_authority_and_the_next_one_are_shown(authorities: dict[str, Any]) -> None:
    code, out, err = texts(Doubled(), "ca", "show")
    rows = table(out)
    assert (code, err, [row[0] for row in rows]) == (0, "", ["what", "name", "sha256", "expires", "certificate", "private key"])
    assert (rows[1][1], rows[2][1], rows[4][1], rows[5][1]) == (
        "now",
        "ab:cd",
        "/ca/now-cert.pem",
        "/ca/now.pem (stays on this machine)",
    )
    answer = called(Doubled(), "ca", "show", "--json").json
    assert (answer["days_left"], answer["next"], answer["key_file"], answer["file"]) == (
        400,
        None,
        "/ca/now.pem",
        "/ca/now-cert.pem",
    )
    authorities["next"] = Authority("later")
    out = texts(Doubled(), "ca", "show")[1]
    assert (out.count("\n\n"), table(out)[6], table(out)[10][1]) == (1, ["next", "value"], "gatewayfilter ca export --next")
    assert called(Doubled(), "ca", "show", "--json").json["next"]["name"] == "later"
    authorities["now"] = Authority("now", RENEW_WITHIN_DAYS - 1)
    assert texts(Doubled(), "ca", "show")[2] == f"It expires in {RENEW_WITHIN_DAYS - 1} days: gatewayfilter ca renew\n"
    authorities["now"] = Authority("now", RENEW_WITHIN_DAYS)
    assert texts(Doubled(), "ca", "show")[2] == ""
    assert set(authorities["folders"]) == {SETTINGS.data_dir / "ca"}


def test_an_authority_is_exported_and_renewed(authorities: dict[str, Any], tmp_path: Path) -> None:
    assert texts(Doubled(), "ca", "export", "--output", "-") == (0, "pem", "")
    file = tmp_path / "ca.cer"
    wrote = f"Wrote the certificate to {file}. Install it on each client as a trusted root certificate.\n"
    assert texts(Doubled(), "ca", "export", "--format", "der", "-o", file) == (0, wrote, "")
    assert file.read_bytes() == b"der"
    authorities["next"] = SimpleNamespace(export=lambda form: f"next {form}".encode())
    assert texts(Doubled(), "ca", "export", "--next")[1] == "next pem"
    folder = SETTINGS.data_dir / "ca"
    for options, name, begin in (
        ((), "renew_same_key", "Renewed. Start the filter again"),
        (("--new-key",), "make_next", "The next authority is made, and not in force"),
        (("--activate",), "activate_next", "A running filter still signs with the old authority"),
    ):
        context = Doubled()
        rows = table(texts(context, "ca", "renew", *options)[1])
        assert (rows[1][1], rows[6][0].startswith(begin), context.recorded[0].action) == (f"{name} {folder}", True, "ca.renewed")
        assert (rows[4][1] == "gatewayfilter ca export --next") is (options == ("--new-key",))
        assert called(Doubled(), "ca", "renew", *options, "--json").json["name"] == f"{name} {folder}"


def test_the_version_of_the_database_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(current="0007", head="0007", is_newer=False)
    monkeypatch.setattr("gatewayfilter.store.schema_status", lambda _url: found)
    assert texts(Doubled(), "db", "status") == (0, "The database is up to date (version 0007).\n", "")
    found.current = ""
    needs = "The database is at version {}, this program needs 0007: gatewayfilter db upgrade\n"
    assert texts(Doubled(), "db", "status") == (1, needs.format("none"), "")
    found.current = "0003"
    assert texts(Doubled(), "db", "status") == (1, needs.format("0003"), "")
    found.is_newer = True
    assert texts(Doubled(), "db", "status")[::2] == (1, "")
    answer = called(Doubled(), "db", "status", "--json")
    assert (answer.code, answer.json) == (1, {"current": "0003", "head": "0007", "up_to_date": False})


def test_an_upgrade_tells_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    versions: list[str] = []
    monkeypatch.setattr("gatewayfilter.wiring.prepare_data_dir", lambda _settings: None)
    monkeypatch.setattr("gatewayfilter.store.schema_status", lambda _url: SimpleNamespace(current=versions.pop(0)))
    monkeypatch.setattr("gatewayfilter.store.Store.open", lambda _url: SimpleNamespace(close=lambda: None))
    for before, after, told in (
        ("7", "7", "The database is up to date (version 7)."),
        ("", "7", "The database went from version none to 7."),
        ("3", "7", "The database went from version 3 to 7."),
    ):
        versions[:] = [before, after] * 2
        assert texts(Doubled(), "db", "upgrade") == (0, f"{told}\n", "")
        assert called(Doubled(), "db", "upgrade", "--json").json == {"before": before, "after": after}


def test_the_database_is_checked_repaired_and_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[str] = []
    monkeypatch.setattr("gatewayfilter.store.faults_of", lambda _url: list(faults))
    assert texts(Doubled(), "db", "check") == (0, "The database is whole.\n", "")
    faults += ["row 1", "row 2"]
    assert texts(Doubled(), "db", "check") == (1, "row 1\nrow 2\n", "")
    answer = called(Doubled(), "db", "check", "--json")
    assert (answer.code, answer.json) == (1, {"faults": faults})

    def refuse(_url: str) -> list[str]:
        raise StoreError("it is no database")

    monkeypatch.setattr("gatewayfilter.store.faults_of", refuse)
    assert texts(Doubled(), "db", "check") == (1, "it is no database\n", "")
    monkeypatch.setattr("gatewayfilter.processes.supervision.run_lock.RunLock", lambda _folder: nullcontext())
    done = SimpleNamespace(moved_to=Path("/bad"), manual_rules=2, learned=3)
    monkeypatch.setattr("gatewayfilter.use_cases.backup.database_repair.repair_database", lambda _settings: done)
    made = "A new one was made, with 2 manual rules and 3 learned entries of the snapshot.\n"
    assert texts(Doubled(), "db", "repair")[1] == f"The damaged database was moved to /bad.\n{made}"
    assert called(Doubled(), "db", "repair", "--json").json == {"moved_to": "/bad", "manual_rules": 2, "learned": 3}
    done.moved_to = None
    assert texts(Doubled(), "db", "repair")[1] == made
    found = SimpleNamespace(current="", is_newer=False)
    monkeypatch.setattr("gatewayfilter.store.schema_status", lambda _url: found)
    monkeypatch.setattr("gatewayfilter.store.go_back", lambda path: (path.with_suffix(".copy"), path.with_suffix(".new")))
    assert "(version none): nothing was changed" in called(Doubled(), "db", "rollback").complains()
    found.is_newer = True
    base = SETTINGS.data_dir / "gatewayfilter"
    told = f"The database is again as in {base}.copy.\nThe newer one was moved to {base}.new.\n"
    assert texts(Doubled(), "db", "rollback") == (0, told, "")
    assert called(Doubled(), "db", "rollback", "--json").json == {"copy": f"{base}.copy", "moved_to": f"{base}.new"}
    other = SETTINGS.model_copy(update={"store": SETTINGS.store.model_copy(update={"url": "postgresql://x"})})
    assert "restore the one in store.url from its own dump" in called(Doubled(settings=other), "db", "rollback").complains()
