"""squid's own sockets in the daemon: lines at the longest length, long ones passed over, answers that squid takes late."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator

import pytest

from gatewayfilter.integration.squid.channels import LONGEST_LINE, HelperProtocol
from gatewayfilter.integration.squid.journal import Journal
from gatewayfilter.integration.squid.taken import TakenSockets
from tests.integration.squid.squid_ends import comes

LONG = b"x" * LONGEST_LINE


class Taken:
    """squid's end of sockets that are taken; each line is answered by its length."""

    def __init__(self) -> None:
        self.squid, helper = socket.socketpair()
        self.squid.setblocking(False)
        self.journal = Journal(memory := Journal.create())
        os.close(memory)
        self.asked: list[list[bytes]] = []
        self.ends = 0
        requests = socket.socket(fileno=os.dup(helper.fileno()))
        self.taken = TakenSockets(HelperProtocol.ACL, self.answers, requests, helper, self.journal, self.ended)

    def answers(self, lines: list[bytes]) -> bytes:
        self.asked.append(lines)
        return b"".join(b"%d\n" % len(line) for line in lines)

    def ended(self) -> None:
        self.ends += 1

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.squid, data)

    async def read(self, lines: int) -> list[bytes]:
        data = b""
        async with asyncio.timeout(20):
            while data.count(b"\n") < lines:
                data += await asyncio.get_running_loop().sock_recv(self.squid, 65_536)
        return data.splitlines()


@pytest.fixture
async def taken() -> AsyncIterator[Taken]:
    made = Taken()
    made.taken.begin()
    yield made
    made.taken.close()
    made.squid.close()


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        ([b"a\nbc\n"], [b"1", b"2"]),
        ([LONG, b"\n"], [b"65536"]),
        ([LONG[1:] + b"\n"], [b"65535"]),
        ([b"a\n" + LONG + b"\nb\n"], [b"1", b"65536", b"1"]),
        ([LONG + b"y", b"z\na\n"], [b"ERR message=failure", b"1"]),
        ([b"7 " + LONG, b"more", b"and more\n8\n"], [b"7 ERR message=failure", b"1"]),
        ([b"a\n" + LONG + b"yy\nb\n"], [b"1", b"ERR message=failure", b"1"]),
    ],
)
async def test_lines_of_every_length_get_one_answer(taken: Taken, sent: list[bytes], answers: list[bytes]) -> None:
    for piece in sent:
        await taken.send(piece)
        await asyncio.sleep(0.002)
    assert await taken.read(len(answers)) == answers
    await comes(lambda: taken.journal.is_empty)
    assert not taken.journal.discarding
    await taken.send(b"last\n")
    assert await taken.read(1) == [b"4"]
    assert taken.ends == 0


async def test_what_is_no_whole_line_asks_nothing(taken: Taken) -> None:
    await taken.send(b"abc")
    await comes(lambda: taken.journal.left() == b"abc")
    assert (taken.asked, taken.journal.cut) == ([], False)
    await taken.send(b"d\ne")
    assert await taken.read(1) == [b"4"]
    await comes(lambda: taken.journal.left() == b"e")
    assert taken.asked == [[b"abcd"]]


async def test_the_end_of_squid_is_told_once(taken: Taken) -> None:
    taken.squid.shutdown(socket.SHUT_RDWR)
    await comes(lambda: taken.ends == 1)
    taken.taken.close()
    assert taken.ends == 1


async def test_answers_that_squid_takes_late_come_whole_and_in_order(taken: Taken) -> None:
    taken.taken._target.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
    lines = [b"x" * (number % 90) for number in range(6_000)]
    sending = asyncio.create_task(taken.send(b"\n".join(lines) + b"\n"))
    await comes(lambda: bool(taken.taken._unsent))
    assert taken.journal.cut
    assert not taken.journal.is_empty
    assert await taken.read(len(lines)) == [b"%d" % len(line) for line in lines]
    await sending
    await comes(lambda: taken.journal.is_empty)
    assert not taken.journal.cut


async def test_sockets_that_are_left_are_watched_no_longer(taken: Taken) -> None:
    loop = asyncio.get_running_loop()
    taken.taken._target.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
    requests, target = taken.taken._requests.fileno(), taken.taken._target.fileno()
    sending = asyncio.create_task(taken.send(b"x\n" * 60_000))
    await comes(lambda: bool(taken.taken._unsent))
    taken.taken.close()
    assert not loop.remove_reader(requests)
    assert not loop.remove_writer(target)
    assert taken.ends == 0
    sending.cancel()
