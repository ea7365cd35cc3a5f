"""The sockets that a worker listens on: their families, options and port, and what becomes of them where one is taken."""

import errno
import socket
from typing import Any

import pytest

from gatewayfilter.proxy.tunnel.poller import READ
from tests.case_tables import all_cases
from tests.proxy.listener.test_listener_bounds import Door


def close(door: Door) -> None:
    for one in door.listener.sockets:
        one.close()


@all_cases(
    ("host", "families"),
    [
        ("127.0.0.1", [socket.AF_INET]),
        ("0.0.0.0", [socket.AF_INET]),
        ("::1", [socket.AF_INET6]),
        ("::", [socket.AF_INET6, socket.AF_INET]),
    ],
)
def test_what_is_listened_on(host: str, families: list[socket.AddressFamily]) -> None:
    door = Door()
    door.listener.listen(host, 0)
    try:
        sockets = door.listener.sockets
        assert [one.family for one in sockets] == families
        assert {one.getsockname()[1] for one in sockets} == {door.dialer.own_port}
        assert door.done == [("watched", one.fileno(), READ) for one in sockets]
        assert door.timers == [(5.0, door.listener._sweep)]
        for one in sockets:
            assert not one.getblocking()
            for level, option in (
                (socket.SOL_SOCKET, socket.SO_REUSEADDR),
                (socket.SOL_SOCKET, socket.SO_REUSEPORT),
                (socket.SOL_SOCKET, socket.SO_ACCEPTCONN),
                (socket.IPPROTO_TCP, socket.TCP_NODELAY),
            ):
                assert one.getsockopt(level, option) == 1, option
            if one.family == socket.AF_INET6:
                assert one.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1
    finally:
        close(door)


def test_every_worker_may_listen_on_one_address() -> None:
    doors = Door(), Door()
    try:
        doors[0].listener.listen("127.0.0.1", 0)
        port = doors[0].dialer.own_port
        doors[1].listener.listen("127.0.0.1", port)
        assert [one.getsockname() for door in doors for one in door.listener.sockets] == [("127.0.0.1", port)] * 2
    finally:
        for door in doors:
            close(door)


@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_an_address_that_is_taken_leaves_no_socket_behind(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    door = Door()
    with socket.create_server(("127.0.0.1", 0)) as taken, monkeypatch.context() as patch:
        patch.setattr(socket, "socket", Noted)
        with pytest.raises(OSError, match="in use") as caught:
            door.listener.listen(host, taken.getsockname()[1])
    assert caught.value.errno == errno.EADDRINUSE
    assert [one.fileno() for one in made] == [-1] * (2 if host == "::" else 1)
    assert (door.listener.sockets, door.done, door.timers, door.dialer.own_port) == ((), [], [], 0)
