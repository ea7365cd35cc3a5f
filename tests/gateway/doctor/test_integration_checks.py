"""What `doctor` finds of the socket of squid's helpers."""

import socket
from pathlib import Path

from gatewayfilter.gateway.doctor import Level, integration_checks
from gatewayfilter.integration.squid.daemon import open_socket
from gatewayfilter.telemetry import StatusFile
from tests.gateway.doctor.doctor_state import patient


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
    ):
        status.write(counters=counters)
        assert level() is expected
