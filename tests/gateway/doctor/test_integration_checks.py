"""What `doctor` finds of the socket of squid's helpers."""

import socket
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from gatewayfilter.gateway.doctor import Level, integration_checks
from gatewayfilter.integration.squid.daemon import open_socket
from gatewayfilter.telemetry import StatusFile
from tests.gateway.doctor.doctor_state import patient, running, says


def test_the_socket_of_squids_helpers(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "h.sock"

    def level(**helper: object) -> tuple[Level, str]:
        found = integration_checks.squid_helper(patient(state, helper=helper))
        return found.level, found.words

    assert level() == (Level.OK, "No helper of squid is served (helper.socket).")
    assert level(socket=path)[0] is Level.NOTE
    status = StatusFile(state / "run", "integration")
    status.write(state="serving")
    assert level(socket=path) == (Level.ERROR, f"{path} cannot be reached: No such file or directory.")
    listener = open_socket(path, "")
    assert level(socket=path) == (Level.OK, f"{path} is served.")
    assert level(socket=path, group="proxy")[0] is Level.ERROR
    listener.close()
    assert "Nothing serves" in level(socket=path)[1]
    status.remove()


def test_the_icap_server(state: Path) -> None:
    def level(**icap: object) -> Level:
        return integration_checks.icap(patient(state, icap=icap)).level

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listen = f"127.0.0.1:{listener.getsockname()[1]}"
        assert [level(), level(listen=listen)] == [Level.OK, Level.NOTE]
        StatusFile(state / "run", "integration").write(state="serving")
        assert [level(listen=listen), level(listen=listen, allow_networks=["8.8.8.0/24"])] == [Level.OK, Level.WARNING]
    assert level(listen=listen) is Level.ERROR


def test_the_zone_of_resolvers(state: Path) -> None:
    def level() -> Level:
        return integration_checks.zone(patient(state, rpz={"listen": "127.0.0.1:5353"})).level

    assert integration_checks.zone(patient(state)).level is Level.OK
    assert level() is Level.NOTE
    status = StatusFile(state / "run", "integration")
    for counters, expected in (
        ({}, Level.NOTE),
        ({"rpz_transfers": 1}, Level.OK),
        ({"rpz_transfers": 1, "rpz_notify_failed": 2, "rpz_notified": 1}, Level.WARNING),
        ({"rpz_file_failures": 1}, Level.ERROR),
        ({"rpz_transfers": 1, "rpz_notify_failed": 1}, Level.WARNING),
        ({"rpz_transfers": 1, "rpz_notify_failed": 1, "rpz_notified": 1}, Level.OK),
        ({"rpz_transfers": 1, "rpz_notified": 0}, Level.OK),
    ):
        status.write(counters=counters)
        assert level() is expected


def test_a_zone_in_a_file_alone(state: Path, tmp_path: Path) -> None:
    subject = patient(state, rpz={"file": tmp_path / "zone"})
    assert integration_checks.zone(subject).words == "The process that keeps the zone does not run."
    StatusFile(state / "run", "integration").write(counters={})
    found = integration_checks.zone(subject)
    assert (found.level, found.words) == (Level.OK, "Version 0 of this run is kept.")
    StatusFile(state / "run", "integration").write(counters={"rpz_changes": 3})
    assert integration_checks.zone(subject).words == "Version 3 of this run is kept."


@pytest.mark.parametrize("listen", ["0.0.0.0", "127.0.0.1"])
def test_an_address_for_all_is_tried_on_this_machine(state: Path, monkeypatch: pytest.MonkeyPatch, listen: str) -> None:
    tried: list[object] = []

    def connect(address: tuple[str, int], _: float) -> socket.socket:
        tried.append(address)
        return socket.socket()

    monkeypatch.setattr(socket, "create_connection", connect)
    StatusFile(state / "run", "integration").write(state="serving")
    found = integration_checks.icap(patient(state, icap={"listen": f"{listen}:1344"}))
    assert (found.level, found.words, tried) == (Level.OK, f"It listens on {listen}:1344.", [("127.0.0.1", 1344)])


@pytest.mark.parametrize(("since_s", "level"), [(30.0, Level.OK), (30.5, Level.ERROR)])
def test_how_long_the_process_for_squid_may_be_silent(state: Path, tmp_path: Path, since_s: float, level: Level) -> None:
    path, now = tmp_path / "h.sock", time.time()
    says(state, "integration", at=now - since_s)
    with closing(open_socket(path, "")):
        assert integration_checks.squid_helper(patient(state, now=now, helper={"socket": path})).level is level


def test_what_is_no_socket_serves_nobody(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.sock"
    path.touch()
    running(state)  # without the process's own file
    found = integration_checks.squid_helper(patient(state, helper={"socket": path}))
    assert (found.level, "Nothing serves" in found.words) == (Level.ERROR, True)

    def refuse(*_: object) -> None:
        raise PermissionError

    with closing(open_socket(tmp_path / "other.sock", "")):
        monkeypatch.setattr(socket.socket, "connect", refuse)
        says(state, "integration")
        subject = patient(state, helper={"socket": tmp_path / "other.sock"})
        assert integration_checks.squid_helper(subject).level is Level.OK  # another user's


def test_a_socket_that_takes_no_connection_is_not_waited_for(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sock"
    monkeypatch.setattr(integration_checks, "_PATIENCE_S", 0.05)
    says(state, "integration")
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))  # all that may wait
        found = integration_checks.squid_helper(patient(state, helper={"socket": path}))
    assert (found.level, "Nothing serves" in found.words) == (Level.ERROR, True)
