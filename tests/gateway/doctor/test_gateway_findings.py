"""What the doctor says of a gateway's kernel, of DNS and of processes, at each bound."""

import os
import resource
import shutil
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter import compiled
from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.control import Gateway, GatewayState, GatewayStatus
from gatewayfilter.gateway.doctor import Level, Patient, disk_checks, network_checks, process_checks
from gatewayfilter.gateway.nft import Kernel
from gatewayfilter.gateway.runtime_state import RuntimeStateFile
from gatewayfilter.wiring import open_store, publish_now
from tests.gateway.doctor.doctor_state import patient, running, says

OK, NOTE, WARNING, ERROR = Level.OK, Level.NOTE, Level.WARNING, Level.ERROR


def status_of(state: GatewayState, *problems: str) -> GatewayStatus:
    return GatewayStatus(state, problems, (4,), (4,), 1_234, 0, fail_open=False, watched=False)


def gateway(state: Path, **sections: Any) -> Patient:
    return patient(state, proxy={"mode": "transparent", "listen": "[::]:8080"}, gateway={"lan": ["lan0"], **sections})


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The switches of a kernel."""
    switches = {"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1"}
    monkeypatch.setattr(Kernel, "switch", lambda _, name: switches.get(name))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "/usr/sbin/nft")
    monkeypatch.setattr(network_checks, "make_plan", lambda _: object())
    return switches


@pytest.mark.parametrize(
    ("answer", "level", "words"),
    [
        (status_of(GatewayState.UP), OK, "The rules are loaded; 1,234 connections were redirected."),
        (status_of(GatewayState.UP, "lan0 is gone"), ERROR, "Lan0 is gone."),
        (status_of(GatewayState.DOWN), ERROR, "The rules are not loaded: devices go past the filter."),
        (status_of(GatewayState.DOWN, "else"), ERROR, "The rules are not loaded: devices go past the filter."),
        (status_of(GatewayState.CHANGED), ERROR, f"The rules are {GatewayState.CHANGED}."),
        (GatewayError("nft is not permitted"), NOTE, "It cannot be looked at: nft is not permitted."),
    ],
)
def test_the_firewall_of_a_gateway(
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    kernel: dict[str, str],
    answer: GatewayStatus | GatewayError,
    level: Level,
    words: str,
) -> None:
    def status(_: object) -> GatewayStatus:
        if isinstance(answer, GatewayError):
            raise answer
        return answer

    monkeypatch.setattr(Gateway, "status", status)
    found = network_checks.firewall(gateway(state))
    assert (found.check, found.level, found.words) == ("firewall", level, words)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    missing = network_checks.firewall(gateway(state))
    assert (missing.level, missing.words) == (ERROR, "The command nft is missing.")


@pytest.mark.parametrize(
    ("v4", "v6", "words"),
    [
        ("1", "1", "The kernel forwards."),
        ("0", "1", "The kernel does not forward IPv4."),
        ("1", "0", "The kernel does not forward IPv6."),
        ("0", "0", "The kernel does not forward IPv4 and IPv6."),
        ("1", None, "The kernel forwards."),  # it has no IPv6
    ],
)
def test_whether_a_gateway_forwards(state: Path, kernel: dict[str, str], v4: str, v6: str | None, words: str) -> None:
    kernel["net/ipv4/ip_forward"] = v4
    kernel.pop("net/ipv6/conf/all/forwarding")
    if v6 is not None:
        kernel["net/ipv6/conf/all/forwarding"] = v6
    found = network_checks.forwarding(gateway(state))
    assert (found.level, found.words) == (OK if words.endswith("forwards.") else ERROR, words)
    assert network_checks.forwarding(patient(state, gateway={"lan": ["lan0"]})).words == words


def test_names_are_looked_up_as_the_filter_does(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(*name: object, type: int) -> list[Any]:  # noqa: A002  as in the library
        asked.append((*name, type))
        time.sleep(0.05)  # it is waited for
        return [(None, None, None, "", ("192.0.2.1", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    found = network_checks.dns(patient(state))
    assert (found.level, found.words, asked) == (OK, "example.com is looked up.", [("example.com", 443, socket.SOCK_STREAM)])

    def refuse(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    failed = network_checks.dns(patient(state))
    assert (failed.level, failed.words) == (ERROR, "example.com cannot be looked up: temporary failure in name resolution.")
    ended, daemons = threading.Event(), list[bool]()

    def wait(*_: object, **__: object) -> list[Any]:
        daemons.append(threading.current_thread().daemon)
        ended.wait(10)
        raise socket.gaierror

    monkeypatch.setattr(network_checks, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", wait)
    late = network_checks.dns(patient(state))
    ended.set()
    assert (late.level, late.words) == (ERROR, "example.com was not looked up within 0 s.")
    assert daemons == [True]  # the doctor ends without it


def test_any_free_port_is_taken_at_the_start(state: Path) -> None:
    assert network_checks.port(patient(state, proxy={"listen": "127.0.0.1:0"})).words == "A free one is taken at the start."
    assert network_checks.port(patient(state, proxy={"listen": "[::1]:0"})).level is OK


@pytest.mark.parametrize(
    ("listen", "host"), [("127.0.0.1:8080", "127.0.0.1"), ("[::1]:8080", "::1"), ("localhost:8080", "localhost")]
)
def test_how_other_devices_would_reach_it(state: Path, monkeypatch: pytest.MonkeyPatch, listen: str, host: str) -> None:
    monkeypatch.setattr(network_checks, "lan_address", lambda _: "192.168.1.2")
    found = network_checks.reach(patient(state, proxy={"listen": listen}))
    assert (found.level, f"it listens on {host}." in found.words) == (NOTE, True)
    assert found.mend == "for other devices: gatewayfilter run --listen 192.168.1.2:8080, or set proxy.listen"

    def fail() -> None:
        raise OSError

    monkeypatch.setattr(network_checks, "read_links", fail)
    assert "--listen ADDRESS:8080" in network_checks.reach(patient(state, proxy={"listen": listen})).mend
    running(state, listen="0.0.0.0:8080")  # what runs counts
    assert "on 0.0.0.0." in network_checks.reach(patient(state, proxy={"listen": listen})).words
    assert network_checks.reach(patient(state, proxy={"listen": listen})).level is OK


@pytest.mark.parametrize(
    ("addresses", "has"),
    [
        ("", False),
        ("fe800000000000000000000000000001 02 40 20 80 eth0\n", False),
        ("00000000000000000000000000000001 01 80 10 80 lo\n", False),
        ("fd000000000000000000000000000001 02 40 00 80 eth0\n", False),
        ("20010db8000000000000000000000001 02 40 20 80 eth0\n", False),
        ("fe800000000000000000000000000001 02 40 20 80 a\n20010db8000000000000000000000001 02 40 00 80 a\n", True),
        ("3ffe0db8000000000000000000000001 02 40 00 80 eth0\n", True),
    ],
)
def test_global_addresses(state: Path, tmp_path: Path, addresses: str, *, has: bool) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "if_inet6").write_text(addresses)
    found = network_checks.ipv6(replace(patient(state), proc=tmp_path))
    assert found.level is (NOTE if has else OK)
    assert network_checks.ipv6(replace(patient(state, gateway={"lan": ["lan0"]}), proc=tmp_path)).level is OK
    (tmp_path / "net" / "if_inet6").unlink()
    assert network_checks.ipv6(replace(patient(state), proc=tmp_path)).level is OK


def test_quic_of_a_gateway_beside_the_proxy(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        quic_rejected = True

    monkeypatch.setattr(RuntimeStateFile, "read", lambda _: Memory)
    assert network_checks.quic(gateway(state)).words == "The gateway refuses it."
    Memory.quic_rejected = False
    assert [network_checks.quic(gateway(state, reject_quic=on)).level for on in (True, False)] == [ERROR, WARNING]


@pytest.mark.parametrize(("since_s", "level"), [(0.0, OK), (30.0, OK), (30.5, ERROR)])
def test_how_long_a_worker_may_be_silent(state: Path, since_s: float, level: Level) -> None:
    now = time.time()
    running(state)
    says(state, "proxy-0", state="serving", at=now - since_s)
    assert process_checks.workers(patient(state, now=now)).level is level


@pytest.mark.parametrize(("since_s", "level"), [(0.0, OK), (300.0, OK), (300.5, ERROR)])
def test_how_long_the_learner_may_be_silent(state: Path, since_s: float, level: Level) -> None:
    now = time.time()
    running(state)
    says(state, "learner", state="learning", at=now - since_s)
    found = process_checks.learner(patient(state, now=now))
    assert (found.level, found.words == "It runs (learning).") == (level, level is OK)


def test_which_workers_do_not_serve(state: Path) -> None:
    children = {name: {"restarts": number} for number, name in enumerate(["proxy-0", "proxy-1", "learner"])}
    says(state, "supervisor", listen="127.0.0.1:1", children=children)
    says(state, "proxy-0", state="serving")
    assert process_checks.workers(patient(state)).words == "proxy-1 of 2 does not serve."
    (state / "run" / "proxy-0.json").unlink()
    assert process_checks.workers(patient(state)).words == "proxy-0, proxy-1 of 2 does not serve."
    for number in (0, 1):
        says(state, f"proxy-{number}", state="serving")
    assert process_checks.workers(patient(state)).words == "All 2 serve, after 3 restarts."
    says(state, "supervisor", children={"proxy-0": {}, "proxy-1": {}, "learner": {}})
    assert process_checks.workers(patient(state)).words == "2 serve."


@pytest.mark.parametrize(
    ("limits", "level", "words"),
    [
        (
            "Max open files            4095                 4096       files\n",
            WARNING,
            "a worker may open 4,095 files, which 2,047",
        ),
        ("Max open files            4096                 4096       files\n", OK, "a worker may open 4,096 files."),
        ("a\nMax open files            unlimited            unlimited  files\n", OK, "a worker may open 1,048,576 files."),
        ("Max open files            many                 4096       files\n", NOTE, "The limit cannot be read"),
        ("Max open files\n", NOTE, "The limit cannot be read"),
        ("Max locked memory         1                    1          bytes\n", NOTE, "The limit cannot be read"),
    ],
)
def test_the_file_limit_of_a_worker(state: Path, tmp_path: Path, limits: str, level: Level, words: str) -> None:
    says(state, "proxy-0", pid=7)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (python) S 1")
    (tmp_path / "7" / "limits").write_text(limits)
    found = process_checks.file_limit(replace(patient(state), proc=tmp_path))
    assert (found.level, found.words.startswith(words)) == (level, True), found.words


@pytest.mark.parametrize(("hard", "words"), [(resource.RLIM_INFINITY, "1,048,576"), (5_000, "5,000"), (100, "100")])
def test_the_file_limit_of_a_user(state: Path, monkeypatch: pytest.MonkeyPatch, hard: int, words: str) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, hard))
    assert process_checks.file_limit(patient(state)).words.startswith(f"this user may open {words} files")


@pytest.mark.parametrize(
    ("missing", "pure", "level", "words"),
    [
        ({}, False, OK, "All "),
        ({"gatewayfilter.a._b": "no compiler"}, True, NOTE, "Python reads the pages: GATEWAYFILTER_PURE is set."),
        ({"gatewayfilter.a._b": "no compiler"}, False, NOTE, "Python does some of the work, more slowly: b (no compiler)."),
    ],
)
def test_what_is_compiled(
    state: Path, monkeypatch: pytest.MonkeyPatch, missing: dict[str, str], level: Level, words: str, *, pure: bool
) -> None:
    monkeypatch.setattr(compiled, "in_use", lambda: {"gatewayfilter.a._c": ""} | missing)
    monkeypatch.setattr(compiled, "is_forbidden", lambda: pure)
    found = process_checks.compiled_code(patient(state))
    assert (found.level, found.words.startswith(words)) == (level, True)


@pytest.mark.parametrize(
    ("stat", "alive"), [("7 (a) b) S 1", True), ("7 (python) Z 1", False), ("7 (python)", False), (None, False)]
)
def test_which_processes_are_alive(state: Path, tmp_path: Path, stat: str | None, *, alive: bool) -> None:
    (tmp_path / "7").mkdir()
    if stat is not None:
        (tmp_path / "7" / "stat").write_text(stat)
    says(state, "supervisor", pid=7)
    found = replace(patient(state), proc=tmp_path)
    assert found.alive(7) is alive
    assert found.running is alive
    assert found.status("nobody") == {}


def test_whose_a_process_is(state: Path, tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (python) S 1")
    says(state, "learner", pid=7)
    os.chown(tmp_path / "7", os.geteuid(), -1)
    found = process_checks.rendering(replace(patient(state, crawl={"render": "auto"}), proc=tmp_path))
    assert found.level is (WARNING if os.geteuid() == 0 else OK)
    assert process_checks._owner(replace(patient(state), proc=tmp_path), 7) == os.geteuid()
    assert process_checks._owner(replace(patient(state), proc=tmp_path), 8) is None


def test_a_damaged_snapshot_that_was_passed_over(state: Path) -> None:
    good = next((state / "snapshots").glob("*.gfs"))
    settings = patient(state)
    assert disk_checks.snapshot(settings).level is OK
    store = open_store(settings.settings)
    publish_now(settings.settings, store)
    store.close()
    newest = max((state / "snapshots").glob("*.gfs"), key=lambda path: path.stat().st_mtime_ns)
    assert newest != good
    newest.write_bytes(newest.read_bytes()[:200])
    found = disk_checks.snapshot(settings)
    assert (found.level, found.words.startswith("A damaged one was passed over: ")) == (WARNING, True), found
