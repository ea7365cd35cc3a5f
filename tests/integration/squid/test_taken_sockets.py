"""squid's own sockets in the daemon: lines at the longest length, long ones passed over, answers that squid takes late."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

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


class Failing(socket.socket):
    """A socket of which some calls fail, the others do what they are to do."""

    faults: list[type[OSError]]

    def _fail(self) -> None:
        if self.faults:
            raise self.faults.pop(0)

    def send(self, *arguments: Any) -> int:
        self._fail()
        return super().send(*arguments)

    def recv_into(self, *arguments: Any) -> int:
        self._fail()
        return super().recv_into(*arguments)


@pytest.mark.parametrize(
    ("requests", "target", "answer", "ends"),
    [
        ([], [BlockingIOError], b"3\n", 0),
        ([BlockingIOError, BlockingIOError], [], b"3\n", 0),
        ([ConnectionResetError], [], b"", 1),
        ([], [BrokenPipeError], b"", 1),
    ],
)
async def test_sockets_that_fail_for_a_moment_or_for_good(
    requests: list[type[OSError]], target: list[type[OSError]], answer: bytes, ends: int
) -> None:
    squid, helper = socket.socketpair()
    squid.setblocking(False)
    journal, ended = Journal(memory := Journal.create()), list[bool]()
    os.close(memory)
    sockets = [Failing(fileno=os.dup(helper.fileno())) for _ in range(2)]
    helper.close()
    for one, faults in zip(sockets, (requests, target), strict=True):
        one.faults = list(faults)
    looks: list[bool] = []

    def answers(lines: list[bytes]) -> bytes:
        looks.append(journal.reading)
        return b"".join(b"%d\n" % len(line) for line in lines)

    taken = TakenSockets(HelperProtocol.ACL, answers, sockets[0], sockets[1], journal, lambda: ended.append(True))
    taken.begin()
    squid.send(b"abc\n")
    async with asyncio.timeout(20):
        if not ends:
            assert await asyncio.get_running_loop().sock_recv(squid, 100) == answer
            await comes(lambda: journal.is_empty)
            assert (journal.cut, journal.reading) == (False, False)
        else:
            await comes(lambda: bool(ended))
    assert len(ended) == ends
    assert looks == [False] * (not requests or not ends)
    taken.close()
    assert [one.fileno() for one in sockets] == [-1, -1]
    with pytest.raises(ValueError, match="closed"):
        journal.left()
    squid.close()


async def test_a_wake_up_for_nothing_leaves_the_journal_as_it_is() -> None:
    squid, helper = socket.socketpair()
    journal = Journal(memory := Journal.create())
    os.close(memory)
    requests = Failing(fileno=os.dup(helper.fileno()))
    requests.faults = [BlockingIOError]
    taken = TakenSockets(HelperProtocol.ACL, lambda _: b"", requests, helper, journal, lambda: None)
    taken._take()
    assert (journal.reading, journal.cut, journal.is_empty, requests.faults) == (False, False, True, [])
    taken.close()
    squid.close()


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


async def test_sockets_that_are_left_while_they_are_read_are_watched_no_longer(taken: Taken) -> None:
    await taken.send(b"a\n")
    assert await taken.read(1) == [b"1"]
    requests = taken.taken._requests.fileno()
    taken.taken.close()
    assert not asyncio.get_running_loop().remove_reader(requests)
