"""The daemon's end of squid's helpers: how many are served, how long a line may be, what is closed when a helper ends."""

import asyncio
import fcntl
import os
import socket
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.integration.squid import daemon as daemon_module
from gatewayfilter.integration.squid.channels import GO, GREETING, HANDING_OVER, LONGEST_LINE, READY
from gatewayfilter.integration.squid.daemon import SquidHelpers
from tests.integration.squid.squid_ends import comes

GARDEN = b" 192.0.2.7 - GET http://garden.test/"


async def handed_over(path: Path, descriptors: list[int]) -> tuple[socket.socket, int]:
    """A helper that has handed sockets over, and the journal's descriptor."""
    control = socket.socket(socket.AF_UNIX)
    control.settimeout(20)
    await asyncio.to_thread(control.connect, str(path))
    socket.send_fds(control, [HANDING_OVER + b"acl\n"], descriptors)
    told, memory, _, _ = await asyncio.to_thread(socket.recv_fds, control, 100, 1)
    assert told == READY
    return control, memory[0]


def open_descriptors() -> set[str]:
    """The descriptors of this process."""
    return {one.name for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}


def noted_deadlines(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.TimerHandle]:
    """The time limits of greetings that are set from now on."""
    loop, found = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def noted(delay: float, *arguments: Any) -> asyncio.TimerHandle:
        handle = call_later(delay, *arguments)
        if delay == 10.0:
            found.append(handle)
        return handle

    monkeypatch.setattr(loop, "call_later", noted)
    return found


async def is_closed(control: socket.socket) -> bool:
    """Whether the daemon closes a connection."""
    control.settimeout(20)
    with suppress(ConnectionResetError):
        return await asyncio.to_thread(control.recv, 10) == b""
    return True


async def test_helpers_are_few(served: SquidHelpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module, "MOST_CONNECTIONS", 1)
    path = str(tmp_path / "d.sock")
    for _ in range(2):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(GREETING + b"acl\n1" + GARDEN + b"\n")
        assert await asyncio.wait_for(reader.readline(), 20) == b"1 OK\n"
        with socket.socket(socket.AF_UNIX) as second:
            await asyncio.to_thread(second.connect, path)
            with suppress(BrokenPipeError, ConnectionResetError):
                second.sendall(GREETING + b"acl\n2" + GARDEN + b"\n")
            assert await is_closed(second)
        writer.close()
        await comes(lambda: not served.connections)


@pytest.mark.parametrize(("more", "answered"), [(0, True), (1, False)])
async def test_a_line_is_of_a_bounded_length(more: int, served: SquidHelpers, tmp_path: Path, *, answered: bool) -> None:
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "d.sock"))
    writer.write(GREETING + b"acl\n")
    await comes(lambda: any(transport.is_reading() for transport in served.connections))
    (transport,) = served.connections
    taken = transport.get_extra_info("socket")

    def unread() -> int:
        size = bytes(4) if taken.fileno() < 0 else fcntl.ioctl(taken.fileno(), termios.FIONREAD, bytes(4))
        return int.from_bytes(size, sys.byteorder)

    line = b"1" + GARDEN
    writer.write(line + b"x" * (LONGEST_LINE + more - len(line)))
    await writer.drain()
    await comes(lambda: not unread())
    await asyncio.sleep(0)
    with suppress(ConnectionError):
        writer.write(b"\n")
        assert bool(await asyncio.wait_for(reader.readline(), 20)) is answered
    await comes(lambda: bool(served.connections) is answered)
    writer.close()


async def test_sockets_are_read_when_the_helper_lets_them_go_and_closed_with_it(
    served: SquidHelpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines = noted_deadlines(monkeypatch)
    squid, helper = socket.socketpair()
    squid.settimeout(20)
    control, memory = await handed_over(tmp_path / "d.sock", [helper.fileno()] * 2)
    helper.close()
    squid.sendall(b"1" + GARDEN + b"\n")
    assert [one.cancelled() for one in deadlines] == [False], "it has not let them go"
    control.sendall(GO)
    assert await asyncio.to_thread(squid.recv, 100) == b"1 OK\n"
    assert [one.cancelled() for one in deadlines] == [True]
    control.close()
    assert await asyncio.to_thread(squid.recv, 100) == b""
    await comes(lambda: not served.connections)
    os.close(memory)
    squid.close()


async def test_a_helper_that_has_greeted_stays(served: SquidHelpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines = noted_deadlines(monkeypatch)
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "d.sock"))
    await comes(lambda: bool(served.connections))
    assert [one.cancelled() for one in deadlines] == [False]
    writer.write(GREETING + b"acl\n1" + GARDEN + b"\n")
    assert await asyncio.wait_for(reader.readline(), 20) == b"1 OK\n"
    assert [one.cancelled() for one in deadlines] == [True]
    writer.close()


@pytest.mark.parametrize("said", [[GO, GO], [b"stop\n"], [b"go"]])
async def test_a_helper_lets_its_sockets_go_once(said: list[bytes], served: SquidHelpers, tmp_path: Path) -> None:
    squid, helper = socket.socketpair()
    squid.settimeout(20)
    control, memory = await handed_over(tmp_path / "d.sock", [helper.fileno()] * 2)
    for one in said:
        control.sendall(one)
        if one != said[-1]:
            squid.sendall(b"1" + GARDEN + b"\n")
            assert await asyncio.to_thread(squid.recv, 100) == b"1 OK\n"
    assert await is_closed(control)
    await comes(lambda: not served.connections)
    for end in (control, squid, helper):
        end.close()
    os.close(memory)


async def test_nothing_stays_open_of_helpers_that_have_ended(served: SquidHelpers, tmp_path: Path) -> None:
    path, pipes, pair = tmp_path / "d.sock", os.pipe(), socket.socketpair()
    before = open_descriptors()
    for greeting, descriptors in (
        (HANDING_OVER + b"acl\n", list(pipes)),
        (HANDING_OVER + b"icap\n", [one.fileno() for one in pair]),
        (GREETING + b"icap\n", [one.fileno() for one in pair]),
    ):
        with socket.socket(socket.AF_UNIX) as control:
            await asyncio.to_thread(control.connect, str(path))
            socket.send_fds(control, [greeting], descriptors)
            assert await is_closed(control)
    control, memory = await handed_over(path, [one.fileno() for one in pair])
    os.close(memory)
    control.close()
    await comes(lambda: not served.connections)
    await comes(lambda: open_descriptors() <= before)
    for one in pipes:
        os.close(one)
    for end in pair:
        end.close()
