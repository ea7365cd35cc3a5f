"""Each check of the doctor, made to fail for real, and made to pass."""

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gatewayfilter.certificates.authority import CA_FILE, ensure_ca, key_and_certificate
from gatewayfilter.config import Settings
from gatewayfilter.gateway.doctor import (
    CHECKS,
    Finding,
    Level,
    Patient,
    disk_checks,
    examine,
    list_checks,
    network_checks,
    policy_checks,
    process_checks,
)
from gatewayfilter.interfaces import ChannelState
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat
from gatewayfilter.sources.subscription import Definition, SourceState, write_json
from gatewayfilter.use_cases.filter_status import filter_status
from gatewayfilter.wiring import open_store
from tests.gateway.doctor.doctor_state import patient, running, says

OK, NOTE, WARNING, ERROR = Level.OK, Level.NOTE, Level.WARNING, Level.ERROR


def test_a_healthy_folder_has_no_errors_on_the_disk(state: Path) -> None:
    checks = (
        disk_checks.state_folder, disk_checks.certificate_authority, disk_checks.snapshot, disk_checks.clock,
        disk_checks.database,
    )  # fmt: skip
    for check in checks:
        assert check(patient(state)).level is OK, check(patient(state))


def loosen(state: Path) -> None:
    state.chmod(0o755)


def read_only(state: Path) -> None:
    state.rename(state.with_name("kept"))
    state.write_text("a file in its place")


def loosen_key(state: Path) -> None:
    (state / "ca" / CA_FILE).chmod(0o644)


def another_key(state: Path) -> None:
    other = ensure_ca(state / "other")
    certificate = (state / "ca" / "mitmproxy-ca-cert.pem").read_text()
    key = other.path.read_text().partition("-----BEGIN CERTIFICATE")[0]
    (state / "ca" / CA_FILE).write_text(key + certificate)
    (state / "ca" / CA_FILE).chmod(0o600)


def damage_ca(state: Path) -> None:
    (state / "ca" / CA_FILE).write_text("-----BEGIN NOTHING-----")


def damage_snapshot(state: Path) -> None:
    for path in (state / "snapshots").glob("*.gfs"):
        path.write_bytes(path.read_bytes()[:200])


def newer_snapshot(state: Path) -> None:
    for path in (state / "snapshots").glob("*.gfs"):
        os.utime(path, (time.time() + 9000, time.time() + 9000))


def damage_database(state: Path) -> None:
    path = state / "gatewayfilter.sqlite3"
    for extra in ("-wal", "-shm"):
        path.with_name(path.name + extra).unlink(missing_ok=True)
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 6] = b"\x55" * (4096 * 5)
    path.write_bytes(content)


def forget_version(state: Path) -> None:
    with sqlite3.connect(state / "gatewayfilter.sqlite3") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    connection.close()


@pytest.mark.parametrize(
    ("check", "harm", "level", "words"),
    [
        (disk_checks.state_folder, loosen, ERROR, "mode 755"),
        (disk_checks.state_folder, read_only, NOTE, "There is no"),
        (disk_checks.certificate_authority, loosen_key, ERROR, "pose as any site"),
        (disk_checks.certificate_authority, another_key, ERROR, "do not belong together"),
        (disk_checks.certificate_authority, damage_ca, ERROR, "cannot be used"),
        (disk_checks.snapshot, damage_snapshot, ERROR, "cannot be used"),
        (disk_checks.clock, newer_snapshot, ERROR, "behind the last snapshot"),
        (disk_checks.database, damage_database, ERROR, "damaged"),
        (disk_checks.database, forget_version, WARNING, "version 0001"),
    ],
)
def test_what_is_broken_on_the_disk_is_found(
    state: Path, check: Callable[[Patient], Finding], harm: Callable[[Path], None], level: Level, words: str
) -> None:
    harm(state)
    found = check(patient(state))
    assert (found.level, words in found.words) == (level, True), found
    assert found.mend


def test_a_database_that_cannot_be_read_is_not_called_damaged(state: Path) -> None:
    """On a disk that is read-only, or of another user's, a backup in its place mends nothing."""
    damage_database(state)
    assert disk_checks.database(patient(state)).mend == "stop the filter, then: gatewayfilter db repair"
    for path in state.glob("gatewayfilter.sqlite3*"):
        path.unlink()
    (state / "gatewayfilter.sqlite3").mkdir()
    found = disk_checks.database(patient(state))
    assert (found.level, found.words.partition(":")[0]) == (ERROR, "It cannot be read")
    assert "owner and mode" in found.mend


@pytest.mark.parametrize(("number", "mend"), [(errno.EROFS, "mount it"), (errno.EACCES, "chown")])
def test_a_state_folder_that_cannot_be_written(state: Path, number: int, mend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "touch", refuse)
    found = disk_checks.state_folder(patient(state))
    assert (found.level, mend in found.mend) == (ERROR, True), found


@pytest.mark.parametrize(("days", "level"), [(-1, ERROR), (10, WARNING), (59, WARNING), (70, OK)])
def test_the_end_of_the_authority_is_told_in_time(state: Path, days: int, level: Level) -> None:
    path = state / "ca" / CA_FILE
    raw = path.read_bytes()
    key: Any = load_pem_private_key(raw, None)
    old = x509.load_pem_x509_certificates(raw)[0]
    end = datetime.now(UTC) + timedelta(days=days, hours=1)
    builder = x509.CertificateBuilder().subject_name(old.subject).issuer_name(old.subject).public_key(old.public_key())
    builder = builder.serial_number(1).not_valid_before(end - timedelta(days=100)).not_valid_after(end)
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415  used once

    path.write_bytes(key_and_certificate(key, builder.sign(key, SHA256())))
    found = disk_checks.certificate_authority(patient(state))
    assert found.level is level, found


def test_a_clock_before_the_authority_is_wrong(state: Path) -> None:
    for path in (state / "snapshots").glob("*.gfs"):
        os.utime(path, (0, 0))
    found = disk_checks.clock(patient(state, now=1_000_000_000))
    assert found.level is ERROR
    assert "beginning" in found.words


def test_lists_from_outside_grow_stale(state: Path) -> None:
    later = time.time() + 10 * 86400
    assert disk_checks.snapshot(patient(state, now=later)).level is OK  # bundled lists do not change
    (state / "sources" / "easylist").mkdir(parents=True)
    (state / "sources" / "easylist" / "source.json").write_text("{}")
    found = disk_checks.snapshot(patient(state, now=later))
    assert (found.level, "10 days old" in found.words) == (WARNING, True)


@pytest.mark.parametrize(("low", "empty", "level"), [(0, 0, OK), (1e12, 0, WARNING), (1e12, 1e12, ERROR)])
def test_a_full_disk_is_found(state: Path, low: float, empty: float, level: Level) -> None:
    assert disk_checks.disk(patient(state), low_mb=low, empty_mb=empty).level is level


@pytest.mark.parametrize(
    ("mode", "url", "level"),
    [
        (0o644, "", OK),
        (0o666, "", ERROR),
        (0o620, "", ERROR),
        (0o644, "postgresql+psycopg://filter:secret@db/filter", ERROR),
        (0o640, "postgresql+psycopg://filter:secret@db/filter", OK),
    ],
)
def test_who_may_read_and_write_the_configuration(state: Path, tmp_path: Path, mode: int, url: str, level: Level) -> None:
    path = tmp_path / "gatewayfilter.toml"
    path.write_text("")
    path.chmod(mode)
    assert disk_checks.config_file(patient(state, config=path, store={"url": url})).level is level


def test_no_configuration_is_no_fault(state: Path) -> None:
    assert disk_checks.config_file(patient(state)).level is NOTE


class TestProcesses:
    def test_a_filter_that_does_not_run_is_a_note(self, state: Path) -> None:
        assert process_checks.workers(patient(state)).level is NOTE
        assert process_checks.learner(patient(state)).level is NOTE

    def test_workers_that_serve(self, state: Path) -> None:
        running(state)
        says(state, "proxy-0", state="serving")
        assert process_checks.workers(patient(state)).level is OK

    @pytest.mark.parametrize(
        "facts", [{"state": "starting"}, {"state": "serving", "at": 1.0}, {"state": "serving", "pid": 2**22 + 1}]
    )
    def test_a_worker_that_is_silent_or_dead_is_found(self, state: Path, facts: dict[str, Any]) -> None:
        running(state)
        says(state, "proxy-0", **facts)
        assert process_checks.workers(patient(state)).level is ERROR

    @pytest.mark.parametrize(("stalls", "words"), [(0, "after 3 restarts."), (2, "3 restarts, 2 of them because a worker hung.")])
    def test_restarts_are_told(self, state: Path, stalls: int, words: str) -> None:
        says(state, "supervisor", listen="127.0.0.1:1", children={"proxy-0": {"restarts": 3, "stalls": stalls}})
        says(state, "proxy-0", state="serving")
        found = process_checks.workers(patient(state))
        assert (found.level, words in found.words) == (WARNING, True)

    def test_a_dead_learner_is_found(self, state: Path) -> None:
        running(state)
        assert process_checks.learner(patient(state)).level is ERROR
        says(state, "learner", state="learning")
        assert process_checks.learner(patient(state)).level is OK

    @pytest.mark.parametrize(("files", "level"), [(512, WARNING), (4096, OK)])
    def test_a_low_file_limit_is_found(self, state: Path, files: int, level: Level) -> None:
        command = f"ulimit -n {files}; exec {sys.executable} -c 'import time; print(1, flush=True); time.sleep(60)'"
        with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True) as worker:
            try:
                assert worker.stdout is not None
                worker.stdout.readline()
                says(state, "proxy-0", pid=worker.pid, state="serving")
                assert process_checks.file_limit(patient(state)).level is level
            finally:
                worker.kill()

    def test_without_a_worker_this_users_limit_counts(self, state: Path) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        level = WARNING if 0 <= hard < process_checks.ENOUGH_FILES else OK
        assert process_checks.file_limit(patient(state)).level is level


@pytest.mark.parametrize(
    ("render", "process", "owner", "level"),
    [
        ("off", "learner", 0, OK),
        ("auto", "none", 0, Level.NOTE),
        ("auto", "learner", 0, Level.WARNING),
        ("auto", "learner", 1000, OK),
    ],
)
def test_scripts_of_strangers_are_not_run_by_root(
    state: Path, monkeypatch: pytest.MonkeyPatch, render: str, process: str, owner: int, level: Level
) -> None:
    says(state, process)
    monkeypatch.setattr(process_checks, "_owner", lambda *_: owner)
    assert process_checks.rendering(patient(state, crawl={"render": render})).level is level


def test_a_check_that_fails_itself_is_a_finding(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Patient) -> Finding:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("gatewayfilter.gateway.doctor.runner.CHECKS", (broken, disk_checks.clock))
    first, second = examine(patient(state))
    assert (first.level, first.check) == (ERROR, "broken")
    assert second.check == "clock"


def test_every_check_has_its_own_name(state: Path) -> None:
    names = [check(patient(state)).check for check in CHECKS if check is not network_checks.dns]
    assert len(names) == len(set(names)) == len(CHECKS) - 1


def _subscribe(state: Path, *, fetched: bool = True, **facts: Any) -> None:
    folder = state / "sources" / "mine"
    folder.mkdir(parents=True)
    address = "https://lists.test/hosts.txt"
    known = Definition("mine", address, ListFormat.HOSTS, "ads", ListAction.BLOCK, interval_h=24)
    write_json(folder / "source.json", known)
    write_json(folder / "state.json", replace(SourceState(), **facts))
    if fetched:
        (folder / "list").write_text("0.0.0.0 ads.example\n")


def test_lists(state: Path) -> None:
    found = list_checks.subscriptions(patient(state))
    assert (found.level, found.words) == (OK, "There are no subscriptions.")
    now = time.time()
    _subscribe(state, fetched=False, checked_at=now, failures=1, error="cannot reach it")
    pending = list_checks.subscriptions(patient(state))
    assert (pending.level, pending.words) == (WARNING, "mine was never fetched (cannot reach it).")
    shutil.rmtree(state / "sources" / "mine")
    _subscribe(state, checked_at=now - 3_600, changed_at=now - 3_600)
    assert list_checks.subscriptions(patient(state)).level == OK
    shutil.rmtree(state / "sources" / "mine")
    _subscribe(state, checked_at=now - 3_600, failures=10, error="HTTP 404")
    failing = list_checks.subscriptions(patient(state))
    assert failing.level == WARNING
    assert failing.words == "mine failed 10 times (HTTP 404); the last good copy is in use."
    shutil.rmtree(state / "sources" / "mine")
    _subscribe(state, checked_at=now - 30 * 86_400, changed_at=now - 30 * 86_400)
    assert "was due 29 days ago" in list_checks.subscriptions(patient(state)).words


def test_protection(state: Path) -> None:
    bare = list_checks.protection(patient(state))
    assert (bare.level, bare.mend) == (WARNING, "gatewayfilter setup; or gatewayfilter source add --defaults")
    assert "Only the starter lists are on" in bare.words
    _subscribe(state, fetched=False, checked_at=time.time())
    assert list_checks.protection(patient(state)).level == WARNING
    shutil.rmtree(state / "sources" / "mine")
    _subscribe(state, checked_at=time.time())
    assert list_checks.protection(patient(state)).level == OK


def test_reach(state: Path) -> None:
    near = network_checks.reach(patient(state))
    assert near.level == NOTE
    assert "Only this machine can use the filter" in near.words
    assert network_checks.reach(patient(state, proxy={"listen": "0.0.0.0:8080"})).level == OK


def test_a_channel_that_fails_is_found(state: Path) -> None:
    assert policy_checks.messages(patient(state)).level is OK
    notify = {"webhook_url": "http://127.0.0.1:1/"}
    store = open_store(Settings(data_dir=state))
    store.notifications.channel("webhook")
    assert policy_checks.messages(patient(state, notify=notify)).level is OK
    store.notifications.put_channel("webhook", ChannelState(1, 0.0, 4, 0.0, 1_750_000_000.0, "connection refused"))
    found = policy_checks.messages(patient(state, notify=notify))
    assert (found.level, found.words) == (WARNING, "webhook failed 4 times since 2025-06-15 15:06 UTC (connection refused).")
    status = filter_status(Settings.model_validate({"data_dir": state, "notify": notify}), store)
    assert any(one.words.endswith(": connection refused.") for one in status.attention)
    assert policy_checks.messages(patient(state)).level is OK  # it is not set up any more
    store.close()


def test_a_wrong_catalogue_of_services_is_found(state: Path) -> None:
    assert policy_checks.services(patient(state)).level is OK
    (state / "services.toml").write_text("[club]\nhosts = ['com']\n", encoding="utf-8")
    assert policy_checks.services(patient(state)).level is ERROR
    settings = Settings(data_dir=state)
    store = open_store(settings)
    assert any("public suffix" in one.words for one in filter_status(settings, store).attention)
    store.close()
