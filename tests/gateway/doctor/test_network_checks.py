"""Each check of the doctor on the network, made to fail for real, and made to pass."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gatewayfilter.gateway.doctor import (
    Level,
    Patient,
    network_checks,
)
from tests.gateway.doctor.doctor_state import patient, running

OK, NOTE, WARNING, ERROR = Level.OK, Level.NOTE, Level.WARNING, Level.ERROR


@contextmanager
def listener(answer: bytes) -> Iterator[int]:
    """A server that says one thing to one caller."""
    script = (
        "import socket,sys; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1],flush=True)\n"
        f"c,_=s.accept(); c.recv(9999); c.sendall({answer!r}); c.close()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


class TestNetwork:
    def test_a_port_that_somebody_else_has_is_found(self, state: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            listen = f"127.0.0.1:{taken.getsockname()[1]}"
            found = network_checks.port(patient(state, proxy={"listen": listen}))
            assert (found.level, "cannot be taken" in found.words) == (ERROR, True)
        assert network_checks.port(patient(state, proxy={"listen": listen})).level is OK
        assert network_checks.port(patient(state, proxy={"listen": "192.0.2.1:8080"})).level is ERROR

    @pytest.mark.parametrize(
        ("answer", "level"),
        [
            (b"HTTP/1.1 200 OK\r\nx-gatewayfilter: setup\r\ncontent-length: 0\r\n\r\n", OK),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ERROR),
            (b"SSH-2.0-x\r\n", ERROR),
        ],
    )
    def test_who_answers_on_the_port(self, state: Path, answer: bytes, level: Level) -> None:
        with listener(answer) as number:
            running(state, listen=f"127.0.0.1:{number}")
            assert network_checks.port(patient(state)).level is level

    def test_a_port_whose_connections_have_just_ended_is_free(self, state: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            listen = f"127.0.0.1:{server.getsockname()[1]}"
            with socket.create_connection(server.getsockname()) as client:
                server.accept()[0].close()  # who closes first keeps the port for a minute
                assert client.recv(1) == b""
        assert network_checks.port(patient(state, proxy={"listen": listen})).level is OK

    def test_nobody_answers_on_the_port(self, state: Path) -> None:
        running(state, listen="127.0.0.1:1")
        assert network_checks.port(patient(state)).level is ERROR

    def test_a_machine_that_is_no_gateway_needs_no_firewall(self, state: Path) -> None:
        assert network_checks.firewall(patient(state)).level is NOTE
        assert network_checks.forwarding(patient(state)).level is NOTE

    def test_a_gateway_without_an_interface_is_found(self, state: Path) -> None:
        found = network_checks.firewall(patient(state, proxy={"mode": "transparent", "listen": "[::]:8080"}))
        assert (found.level, "no interface" in found.words) == (ERROR, True)

    @pytest.mark.parametrize(
        ("addresses", "mode", "listen", "level"),
        [
            ("", "transparent", "0.0.0.0:8080", OK),
            ("20010db8000000000000000000000001 02 40 00 80 eth0\n", "transparent", "0.0.0.0:8080", WARNING),
            ("20010db8000000000000000000000001 02 40 00 80 eth0\n", "transparent", "[::]:8080", OK),
            ("20010db8000000000000000000000001 02 40 00 80 eth0\n", "regular", "0.0.0.0:8080", NOTE),
            ("fe800000000000000000000000000001 02 40 20 80 eth0\n", "transparent", "0.0.0.0:8080", OK),
        ],
    )
    def test_an_ipv6_way_past_the_filter_is_found(
        self, state: Path, tmp_path: Path, addresses: str, mode: str, listen: str, level: Level
    ) -> None:
        (tmp_path / "net").mkdir()
        (tmp_path / "net" / "if_inet6").write_text(addresses)
        found = patient(state, proxy={"mode": mode, "listen": listen})
        assert network_checks.ipv6(Patient(found.settings, None, found.now, tmp_path)).level is level

    @pytest.mark.parametrize(
        ("mode", "reject", "level"), [("transparent", True, ERROR), ("transparent", False, WARNING), ("regular", True, NOTE)]
    )
    def test_quic_that_nothing_refuses_is_found(self, state: Path, mode: str, *, reject: bool, level: Level) -> None:
        found = patient(state, proxy={"mode": mode, "listen": "[::]:8080"}, gateway={"reject_quic": reject})
        assert network_checks.quic(found).level is level

    @pytest.mark.parametrize(("name", "level"), [("localhost", OK), ("nowhere.invalid", ERROR)])
    def test_names_that_cannot_be_looked_up_are_found(self, state: Path, name: str, level: Level) -> None:
        assert network_checks.dns(patient(state), name=name).level is level
