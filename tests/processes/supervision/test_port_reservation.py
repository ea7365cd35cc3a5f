"""The shared address: found free, held, refused."""

import socket

import pytest

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.processes.supervision.port_reservation import reserve_address


def settings(listen: str) -> Settings:
    return Settings(proxy=ProxySettings(listen=listen))


def listener(host: str, port: int) -> socket.socket:
    worker = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    worker.bind((host, port))
    worker.listen()
    return worker


def test_port_zero_becomes_a_port_that_workers_can_share() -> None:
    with reserve_address(settings("127.0.0.1:0")) as bound:
        port = int(bound.proxy.listen.rpartition(":")[2])
        assert port
        with listener("127.0.0.1", port), listener("127.0.0.1", port), socket.create_connection(("127.0.0.1", port), timeout=5):
            pass


def test_the_held_port_refuses_others() -> None:
    with reserve_address(settings("127.0.0.1:0")) as bound:
        port = int(bound.proxy.listen.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"), socket.create_server(("127.0.0.1", port)):
            pass


@pytest.mark.parametrize("reuse", [False, True])
def test_a_port_in_use_is_refused(reuse: bool) -> None:  # noqa: FBT001  a parameter of the table
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
        if reuse:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        with (
            pytest.raises(StartupError, match="address already in use"),
            reserve_address(settings(f"127.0.0.1:{other.getsockname()[1]}")),
        ):
            pass


@pytest.mark.parametrize("listen", ["192.0.2.1:8080", "no-such-host.invalid:8080"])
def test_an_address_that_is_not_ours_is_refused(listen: str) -> None:
    with pytest.raises(StartupError, match="cannot listen"), reserve_address(settings(listen)):
        pass


def test_ipv6_stays_in_brackets() -> None:
    with reserve_address(settings("[::1]:0")) as bound:
        assert bound.proxy.listen.startswith("[::1]:")


def test_connections_of_the_last_run_are_not_in_the_way() -> None:
    """The side that closes first keeps the port for a minute (TIME_WAIT)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as worker:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            worker.setsockopt(socket.SOL_SOCKET, option, 1)
        worker.bind(("127.0.0.1", 0))
        worker.listen()
        address = worker.getsockname()
        with socket.create_connection(address, timeout=5) as client:
            served, _ = worker.accept()
            served.close()
            assert client.recv(1) == b""
    with reserve_address(settings(f"127.0.0.1:{address[1]}")) as bound:
        assert bound.proxy.listen == f"127.0.0.1:{address[1]}"


def test_an_address_that_was_asked_for_is_kept_and_given_back() -> None:
    with reserve_address(settings("127.0.0.1:0")) as first:
        pass
    with reserve_address(first) as second:
        assert second.proxy.listen == first.proxy.listen
        assert second.proxy.model_copy(update={"listen": ""}) == first.proxy.model_copy(update={"listen": ""})
