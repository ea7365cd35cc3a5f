"""The checks of the machine, made to fail for real, and made to pass."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.control import Gateway, GatewayState, GatewayStatus
from gatewayfilter.gateway.doctor import Level, Patient, disk_checks, host_checks
from gatewayfilter.gateway.doctor.finding import Check
from gatewayfilter.store import schema_status
from tests.gateway.doctor.doctor_state import patient, running

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


def test_a_folder_that_is_not_there_or_cannot_be_read(machine: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert host_checks.owner(patient(tmp_path / "none")).level is NOTE

    def refuse(_: Path) -> list[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(host_checks, "_below", refuse)
    found = host_checks.owner(machine)
    assert (found.level, found.words) == (ERROR, f"{machine.settings.data_dir} cannot be read: Permission denied.")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(("user", "level"), [(0, OK), (65_533, OK), (1, ERROR), (65_534, ERROR)])
def test_whose_the_filter_is(machine: Patient, user: int, level: Level) -> None:
    folder = machine.settings.data_dir
    running(folder)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65_533, 65_533, follow_symlinks=False)
    (machine.proc / str(os.getpid())).mkdir()
    (machine.proc / str(os.getpid()) / "stat").write_text("7 (python) S 1")
    os.chown(machine.proc / str(os.getpid()), user, user)
    found = host_checks.owner(machine)
    assert found.level is level, found


def test_a_folder_of_millions_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_checks, "_SEEN_FILES", 3)
    for number in range(5):
        (tmp_path / str(number)).touch()
    assert len(list(host_checks._below(tmp_path))) == 3
    (tmp_path / "0").unlink()
    (tmp_path / "1").unlink()
    assert len(list(host_checks._below(tmp_path))) == 3


@pytest.mark.parametrize(
    ("total", "free", "workers", "runs", "level"),
    [
        (350, 350, 0, False, OK),
        (349, 349, 0, False, ERROR),
        (420, 420, 3, False, OK),
        (419, 419, 3, False, ERROR),
        (4_000, 349, 0, False, WARNING),
        (4_000, 100, 0, True, OK),
        (4_000, 70, 0, True, OK),
        (4_000, 69, 0, True, WARNING),
    ],
)
def test_the_bounds_of_memory(machine: Patient, total: int, free: int, workers: int, level: Level, *, runs: bool) -> None:
    (machine.proc / "meminfo").write_text(MEMINFO.format(total * 1_000, free * 1_000))
    subject = replace(patient(machine.settings.data_dir, proxy={"workers": workers}), proc=machine.proc)
    if runs:
        running(machine.settings.data_dir)
        (machine.proc / str(os.getpid())).mkdir()
        (machine.proc / str(os.getpid()) / "stat").write_text("7 (python) S 1")
    assert host_checks.memory(subject).level is level
    (machine.proc / "meminfo").write_text(f"MemTotal: {total * 1_000} kB\n")  # an old kernel
    assert host_checks.memory(subject).level is (ERROR if level is ERROR else OK)


def test_a_store_of_authorities_that_cannot_be_read(machine: Patient) -> None:
    for store in ("/nowhere.pem", str(machine.proc / "meminfo")):
        assert host_checks.trust(replace(machine, trusted=store)).level is NOTE
    assert host_checks.trust(replace(machine, trusted=None)).level is NOTE  # the system's has no such authority


@pytest.mark.parametrize(
    ("sections", "level", "words"),
    [
        ({}, OK, "It starts with the machine."),
        ({"gateway": {"lan": ["lan0"]}}, WARNING, "Not started with the machine: gatewayfilter-gateway."),
        ({"proxy": {"mode": "transparent"}}, WARNING, "Not started with the machine: gatewayfilter-gateway."),
    ],
)
@pytest.mark.parametrize("away", ["usr/lib/systemd/system", "etc/systemd/system/multi-user.target.wants"])
def test_which_units_a_machine_needs(machine: Patient, sections: dict[str, Any], level: Level, words: str, away: str) -> None:
    (machine.root / away / "gatewayfilter-gateway.service").unlink()
    subject = replace(patient(machine.settings.data_dir, **sections), root=machine.root, proc=machine.proc)
    found = host_checks.service(subject)
    assert (found.level, found.words) == (level, words)


ROUTE6 = "{} {} " + "0" * 32 + " 00 " + "0" * 32 + " 00000400 00000001 00000000 00200200       {}\n"


@pytest.mark.parametrize(
    ("routes", "routes6", "level"),
    [
        ("", ROUTE6.format("0" * 32, "00", "eth0"), OK),
        ("", ROUTE6.format("0" * 32, "00", "lo"), ERROR),
        ("", ROUTE6.format("0" * 32, "40", "eth0"), ERROR),
        ("", ROUTE6.format("2" * 32, "00", "eth0"), ERROR),
        ("eth0\t0001A8C0\t00000000\t1\t0\t0\t0\t00000000\n", "", ERROR),
        ("eth0\t00000000\t0101A8C0\t3\t0\t0\t0\t000000FF\n", "", ERROR),
        ("eth0\t0001A8C0\t00000000\t1\t0\t0\t0\t00FFFFFF\n" + ROUTES.splitlines()[1] + "\n", "", OK),
        (None, None, ERROR),
    ],
)
def test_what_a_default_route_is(machine: Patient, routes: str | None, routes6: str | None, level: Level) -> None:
    (machine.proc / "net/route").unlink()
    if routes is not None and routes6 is not None:
        (machine.proc / "net/route").write_text(f"{ROUTES.splitlines()[0]}\n{routes}")
        (machine.proc / "net/ipv6_route").write_text(routes6)
    assert host_checks.route(machine).level is level


@pytest.mark.parametrize(
    ("answer", "level", "words"),
    [
        ((GatewayState.UP, 0), WARNING, "No connection of the LAN has come through"),
        ((GatewayState.UP, 1), OK, "and devices come through this machine."),
        ((GatewayState.OPEN, 0), OK, "There is a default route"),
        (None, NOTE, "cannot be looked at: nft is not permitted."),
    ],
)
def test_whether_devices_come_through(
    machine: Patient, monkeypatch: pytest.MonkeyPatch, answer: tuple[GatewayState, int] | None, level: Level, words: str
) -> None:
    def status(_: object) -> GatewayStatus:
        if answer is None:
            raise GatewayError("nft is not permitted")
        return GatewayStatus(answer[0], (), (4,), (4,), answer[1], 0, fail_open=False, watched=False)

    monkeypatch.setattr(Gateway, "status", status)
    sections: dict[str, Any] = {"proxy": {"mode": "transparent", "listen": "[::]:8080"}, "gateway": {"lan": ["lan0"]}}
    found = host_checks.route(replace(patient(machine.settings.data_dir, **sections), proc=machine.proc))
    assert (found.level, words in found.words) == (level, True), found
