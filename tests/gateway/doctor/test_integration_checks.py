"""What `doctor` finds of the socket of squid's helpers."""

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
