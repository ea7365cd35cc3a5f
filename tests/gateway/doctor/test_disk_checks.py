"""What the doctor says of files, at each bound."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509

from gatewayfilter.certificates.authority import CA_FILE
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.errors import StoreError
from gatewayfilter.gateway.doctor import Finding, Level, Patient, disk_checks
from gatewayfilter.store import schema_status
from tests.gateway.doctor.doctor_state import patient

OK, NOTE, WARNING, ERROR = Level.OK, Level.NOTE, Level.WARNING, Level.ERROR
DAY = 86_400


def _created(state: Path) -> float:
    found, _ = SnapshotFolder(state / "snapshots").open_newest()
    with_time = found.info.created_at
    found.close()
    return float(with_time)


def test_a_folder_that_refuses_is_found(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = disk_checks.state_folder(patient(state))
    assert (good.level, good.words) == (OK, f"{state} is writable and private.")
    assert list(state.glob(".doctor*")) == []
    config = tmp_path / "gone.toml"
    found = disk_checks.config_file(patient(state, config=config))
    assert (found.level, found.words) == (ERROR, f"{config} cannot be read: No such file or directory.")

    def refuse(_: Path) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(disk_checks, "mode_of", refuse)
    found = disk_checks.state_folder(patient(state))
    assert (found.level, found.words) == (ERROR, f"{state} cannot be used: Permission denied.")


@pytest.mark.parametrize(
    ("mode", "url", "level"),
    [
        (0o645, "", OK),
        (0o620, "", ERROR),
        (0o602, "", ERROR),
        (0o641, "postgresql+psycopg://filter:secret@db/filter", OK),
        (0o604, "postgresql+psycopg://db/filter", OK),
    ],
)
def test_which_rights_of_the_configuration_count(state: Path, tmp_path: Path, mode: int, url: str, level: Level) -> None:
    path = tmp_path / "gatewayfilter.toml"
    path.write_text("")
    path.chmod(mode)
    assert disk_checks.config_file(patient(state, config=path, store={"url": url})).level is level


def test_an_authority_that_is_not_there_yet_is_a_note(state: Path) -> None:
    for path in (state / "ca").iterdir():
        path.unlink()
    found = disk_checks.certificate_authority(patient(state))
    assert (found.level, found.mend) == (NOTE, "gatewayfilter run makes it")
    assert disk_checks.clock(patient(state)).level is OK


@pytest.mark.parametrize(
    ("before_end_s", "level", "words"),
    [
        (0, ERROR, "It expired on "),
        (1, WARNING, "in 0 days."),
        (DAY, WARNING, "in 1 days."),
        (60 * DAY - 1, WARNING, "in 59 days."),
        (60 * DAY, OK, "It is private and valid until "),
    ],
)
def test_the_bounds_of_the_authoritys_time(state: Path, before_end_s: int, level: Level, words: str) -> None:
    raw = (state / "ca" / CA_FILE).read_bytes()
    end = x509.load_pem_x509_certificates(raw)[0].not_valid_after_utc
    found = disk_checks.certificate_authority(patient(state, now=end.timestamp() - before_end_s))
    assert (found.level, words in found.words) == (level, True), found
    assert f"{end:%Y-%m-%d}" in found.words


@pytest.mark.parametrize(
    ("free", "level", "words"),
    [
        (disk_checks.EMPTY_MB * 1_000_000 - 1, ERROR, "50 MB are free: nothing is learned"),
        (disk_checks.EMPTY_MB * 1_000_000, WARNING, "50 MB are free: the next snapshot may not fit."),
        (disk_checks.LOW_MB * 1_000_000 - 1, WARNING, "500 MB are free"),
        (disk_checks.LOW_MB * 1_000_000, OK, "500 MB are free."),
    ],
)
def test_the_bounds_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: Level, words: str) -> None:
    asked: list[Path] = []

    def usage(folder: Path) -> SimpleNamespace:
        asked.append(folder)
        return SimpleNamespace(free=free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    found = disk_checks.disk(patient(tmp_path / "not" / "yet"))
    assert (found.level, words in found.words, asked) == (level, True, [tmp_path])


@pytest.mark.parametrize(
    ("age_s", "outside", "level", "words"),
    [
        (-3_600, False, OK, "It is good and 0 h old."),
        (0, False, OK, "It is good and 0 h old."),
        (2_000 * 3_600, False, OK, "It is good and 2000 h old."),
        (72 * 3_600, True, OK, "It is good and 72 h old."),
        (73 * 3_600, True, WARNING, "It is 3 days old."),
        (100 * DAY, True, WARNING, "It is 100 days old."),
    ],
)
def test_the_age_of_a_snapshot(state: Path, age_s: int, level: Level, words: str, *, outside: bool) -> None:
    if outside:
        (state / "sources" / "easylist").mkdir(parents=True)
        (state / "sources" / "easylist" / "source.json").write_text("{}")
    found = disk_checks.snapshot(patient(state, now=_created(state) + age_s, sources={"interval_h": 6}))
    assert (found.level, found.words) == (level, words)
    assert disk_checks.snapshot(patient(state, now=_created(state) + age_s, sources={"interval_h": 2_000})).level is OK


def test_no_snapshot(state: Path, tmp_path: Path) -> None:
    none = disk_checks.snapshot(patient(tmp_path / "none"))
    assert (none.level, none.words) == (NOTE, "There is none yet.")
    for path in (state / "snapshots").iterdir():
        path.unlink()
    found = disk_checks.snapshot(patient(state))
    assert (found.level, found.words[0].isupper(), found.words[1:].lower()) == (ERROR, True, found.words[1:]), found
    assert len(found.words) > 20


@pytest.mark.parametrize(
    ("ahead_s", "words"), [(120, ""), (121, "It is 0.0 h behind"), (3_600_000, "It is 1000.0 h behind the last")]
)
def test_how_far_a_clock_may_be_behind(state: Path, ahead_s: int, words: str) -> None:
    now = int(time.time())
    for number, path in enumerate((state / "snapshots").glob("*.gfs")):
        os.utime(path, (now + ahead_s - number,) * 2)
    found = disk_checks.clock(patient(state, now=now))
    assert found.level is (ERROR if words else OK)
    assert words in found.words


def test_a_clock_at_the_authoritys_beginning(state: Path, tmp_path: Path) -> None:
    raw = (state / "ca" / "mitmproxy-ca-cert.pem").read_bytes()
    begins = x509.load_pem_x509_certificate(raw).not_valid_before_utc
    for path in (state / "snapshots").glob("*.gfs"):
        os.utime(path, (0, 0))
    for before_s, level in ((0, OK), (1, ERROR)):
        assert disk_checks.clock(patient(state, now=begins.timestamp() - before_s)).level is level
    found = disk_checks.clock(patient(tmp_path / "none", now=0.0))
    assert (found.level, found.words) == (OK, "It says 1970-01-01 00:00 UTC.")
    assert (
        f"{datetime.fromtimestamp(begins.timestamp(), UTC):%H:%M}"
        in disk_checks.clock(patient(state, now=begins.timestamp())).words
    )


def test_a_database_elsewhere_and_none(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = disk_checks.database(patient(tmp_path / "none"))
    assert (none.level, none.words) == (NOTE, "There is none yet.")
    moved = tmp_path / "moved.sqlite3"
    shutil.copy(state / "gatewayfilter.sqlite3", moved)
    elsewhere = patient(tmp_path / "none", store={"url": f"sqlite:///{moved}"})
    assert disk_checks.database(elsewhere).level is OK
    head = schema_status(f"sqlite:///{moved}").head
    assert disk_checks.database(elsewhere).words == f"It is whole and at version {head}."
    answers: list[Callable[[str], object]] = [
        lambda _: SimpleNamespace(is_newer=False, current="", head="7"),
        lambda _: SimpleNamespace(is_newer=False, current="6", head="7"),
    ]
    for answer, words in zip(answers, ("It is at version none, not 7.", "It is at version 6, not 7."), strict=True):
        monkeypatch.setattr(disk_checks, "schema_status", answer)
        found = disk_checks.database(elsewhere)
        assert (found.level, found.words) == (WARNING, words)

    def fail(_: str) -> object:
        raise StoreError("it cannot be reached")

    monkeypatch.setattr(disk_checks, "schema_status", fail)
    assert _told(elsewhere) == (ERROR, "it cannot be reached.")
    moved.write_bytes(b"no database" * 100)
    found = disk_checks.database(elsewhere)
    assert (found.level, found.words) == (ERROR, "It is damaged: file is not a database.")


def _told(subject: Patient) -> tuple[Level, str]:
    found: Finding = disk_checks.database(replace(subject))
    return found.level, found.words
