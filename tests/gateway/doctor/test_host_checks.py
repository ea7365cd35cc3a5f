"""The checks of the machine, made to fail for real, and made to pass."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.gateway.doctor import Level, Patient, disk_checks, host_checks
from gatewayfilter.gateway.doctor.finding import Check
from gatewayfilter.store import schema_status
from tests.gateway.doctor.doctor_state import patient

OK, NOTE, WARNING, ERROR = Level.OK, Level.NOTE, Level.WARNING, Level.ERROR
MEMINFO = "MemTotal: {} kB\nMemAvailable: {} kB\n"
ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0101A8C0\t3\t0\t0\t0\t00000000\n"


@pytest.fixture
def machine(state: Path, tmp_path: Path) -> Patient:
    """Two cores, 4 GB, a default route, systemd with both units enabled."""
    root = tmp_path / "root"
    for folder in ("run/systemd/system", "usr/lib/systemd/system", "etc/systemd/system/multi-user.target.wants", "proc/net"):
        (root / folder).mkdir(parents=True)
    for name in ("gatewayfilter.service", "gatewayfilter-gateway.service"):
        unit = root / "usr/lib/systemd/system" / name
        unit.touch()
        (root / "etc/systemd/system/multi-user.target.wants" / name).symlink_to(unit)
    (root / "proc/meminfo").write_text(MEMINFO.format(4_000_000, 3_000_000))
    (root / "proc/cpuinfo").write_text("processor : 0\nprocessor : 1\n")
    (root / "proc/net/route").write_text(ROUTES)
    return replace(patient(state), proc=root / "proc", root=root, trusted=str(state / "ca/mitmproxy-ca-cert.pem"))


CHECKS: list[Check] = [host_checks.owner, host_checks.memory, host_checks.trust, host_checks.service, host_checks.route]


@pytest.mark.parametrize("check", CHECKS)
def test_a_machine_that_is_set_up_has_no_finding(check: Check, machine: Patient) -> None:
    assert check(machine).level is OK, check(machine)


def poor(machine: Patient) -> None:
    (machine.proc / "meminfo").write_text(MEMINFO.format(300_000, 250_000))


def crowded(machine: Patient) -> None:
    (machine.proc / "meminfo").write_text(MEMINFO.format(4_000_000, 50_000))


def stranded(machine: Patient) -> None:
    (machine.proc / "net/route").write_text(ROUTES.splitlines()[0] + "\n")


def disabled(machine: Patient) -> None:
    (machine.root / "etc/systemd/system/multi-user.target.wants/gatewayfilter.service").unlink()


def without_unit(machine: Patient) -> None:
    (machine.root / "usr/lib/systemd/system/gatewayfilter.service").unlink()


def without_systemd(machine: Patient) -> None:
    (machine.root / "run/systemd/system").rmdir()


def untrusted(machine: Patient) -> None:
    (machine.settings.data_dir / "ca/mitmproxy-ca-cert.pem").rename(machine.root / "away.pem")


@pytest.mark.parametrize(
    ("change", "check", "level", "words"),
    [
        (poor, host_checks.memory, ERROR, "has 300 MB, the filter with 2 workers takes some 350"),
        (crowded, host_checks.memory, WARNING, "50 of 4,000 MB are free"),
        (stranded, host_checks.route, ERROR, "no default route"),
        (disabled, host_checks.service, WARNING, "Not started with the machine: gatewayfilter."),
        (without_unit, host_checks.service, NOTE, "No unit is installed"),
        (without_systemd, host_checks.service, NOTE, "not run by systemd"),
        (untrusted, host_checks.trust, NOTE, "no certificate authority"),
    ],
)
def test_each_mistake_is_found(change: object, check: Check, level: Level, words: str, machine: Patient) -> None:
    assert callable(change)
    change(machine)
    found = check(machine)
    assert found.level is level
    assert words in found.words


def test_an_authority_that_is_not_in_the_store_is_a_note(machine: Patient) -> None:
    found = host_checks.trust(replace(machine, trusted="/dev/null"))
    assert found.level is NOTE
    assert "do not trust" in found.words


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_file_of_another_user_is_found(machine: Patient) -> None:
    os.chown(machine.settings.data_dir / "gatewayfilter.sqlite3", 65534, 65534)
    found = host_checks.owner(machine)
    assert found.level is ERROR
    assert "gatewayfilter.sqlite3" in found.words
    assert "chown -R --reference=" in found.mend


def test_a_database_of_a_later_version_is_an_error_with_advice(machine: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = replace(schema_status(machine.settings.store_url), current="9999")
    monkeypatch.setattr(disk_checks, "schema_status", lambda _: newer)
    found = disk_checks.database(machine)
    assert found.level is ERROR
    assert "gatewayfilter db rollback" in found.mend
