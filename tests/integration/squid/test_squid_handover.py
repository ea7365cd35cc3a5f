"""squid's sockets handed to the daemon: nothing that is read stays without an answer, whoever ends, hangs, or is hostile."""

import asyncio
import os
import selectors
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.integration.squid.channels import GREETING, HANDING_OVER, LONGEST_LINE, READY, HelperProtocol
from gatewayfilter.integration.squid.daemon import SquidHelpers, open_socket
from gatewayfilter.integration.squid.guard import can_hand_over
from gatewayfilter.integration.squid.journal import Journal
from gatewayfilter.integration.squid.taken import TakenSockets
from tests.integration.integration_engine import Records, decider_over
from tests.integration.squid.squid_ends import Daemon, Squid, comes

GARDEN = b"192.0.2.7 - GET http://garden.test/"
BLOCKED = b"192.0.2.7 - GET http://blocked.test/"


async def test_the_daemon_reads_and_answers_itself(served: SquidHelpers, squid: Squid) -> None:
    squid.thread.start()
    squid.end.sendall(b"1 %b\n2 %b\n3 192.0.2.7 - GET http://blo" % (GARDEN, BLOCKED))
    assert await asyncio.to_thread(squid.read, 2) == [b"1 OK", b"2 ERR message=blacklist%2Fgambling log=casinos"]
    squid.end.sendall(b"cked.test/\n")
    assert (await asyncio.to_thread(squid.read))[0].startswith(b"3 ERR message=blacklist")
    squid.end.sendall(b"4 192.0.2.7 - GET http://x.test/" + b"y" * (LONGEST_LINE + 60_000))
    assert await asyncio.to_thread(squid.read) == [b"4 ERR message=failure"]
    squid.end.sendall(b"yyy\n5 %b\n6 %b%b\n7 %b\n" % (GARDEN, GARDEN, b"z" * LONGEST_LINE, GARDEN))
    assert await asyncio.to_thread(squid.read, 3) == [b"5 OK", b"6 ERR message=failure", b"7 OK"]
    squid.end.sendall(b"8 %b\n9 192.0.2.7 - G" % GARDEN)
    assert await asyncio.to_thread(squid.read) == [b"8 OK"]
    squid.end.sendall(b"ET http://garden.test/\n")
    assert await asyncio.to_thread(squid.read) == [b"9 OK"]
    assert len(served.connections) == 1
    await asyncio.to_thread(squid.close)
    assert squid.served == [True]


async def test_answers_wait_for_squid_and_all_come(served: SquidHelpers, squid: Squid) -> None:
    squid._helper.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
    squid.thread.start()
    many = 2_000
    asked = asyncio.to_thread(squid.end.sendall, b"".join(b"%d %b\n" % (number, GARDEN) for number in range(many)))
    sending = asyncio.create_task(asked)
    await asyncio.sleep(0.1)
    got = await asyncio.to_thread(squid.read, many)
    await sending
    assert got == [b"%d OK" % number for number in range(many)]
    watched = asyncio.get_running_loop()._selector.get_map().values()  # type: ignore[attr-defined]
    assert all(key.events == selectors.EVENT_READ for key in watched)
    assert len(served.connections) == 1
    await asyncio.to_thread(squid.close)


async def test_answers_are_reused_as_long_as_they_may(listed: FilterEngine, tmp_path: Path) -> None:
    records = Records()
    helpers = SquidHelpers(*decider_over(listed, records, ttl_s=60))
    server = await asyncio.get_running_loop().create_unix_server(helpers.connection, sock=open_socket(tmp_path / "d.sock", ""))
    squid = Squid(tmp_path / "d.sock")
    async with server:
        squid.thread.start()
        for number in (1, 2):
            squid.end.sendall(b"%d %b\n" % (number, BLOCKED))
            (answer,) = await asyncio.to_thread(squid.read)
            assert answer.startswith(b"%d ERR message=blacklist%%2Fgambling log=casinos ttl=" % number)
        await asyncio.to_thread(squid.close)
    assert len(records.records) == 1


def test_what_a_daemon_read_is_answered_when_it_ends(daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    control, requests, journal = daemon.take()
    squid.end.sendall(b"1 a - GET http://x.test/\n2 a - GET http://y.te")
    length = requests.recv_into(journal.room(0))
    assert journal.take(length).endswith(b"y.te")
    control.close()
    assert squid.read() == [b"1 ERR message=failure"]
    squid.end.sendall(b"st/\n")
    assert squid.read() == [b"2 ERR message=failure"]
    assert journal.revoked


def test_what_nobody_read_is_answered_when_the_daemon_ends_and_the_next_one_gets_the_rest(daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    control, _, _ = daemon.take()
    control.close()
    squid.end.sendall(b"1 a - GET http://x.test/\n2 a - G")
    assert squid.read() == [b"1 ERR message=failure"]
    squid.guard._again_at = 0.0
    squid.end.sendall(b"ET http://y.test/\n")
    _, requests, journal = daemon.take()
    assert journal.left() == b"2 a - G"
    assert requests.recv(100) == b"ET http://y.test/\n"


@pytest.mark.usefixtures("quick")
def test_a_daemon_that_hangs_is_left_and_found_again(tmp_path: Path, daemon: Daemon) -> None:
    squid = Squid(tmp_path / "d.sock", allows=True)
    squid.thread.start()
    control, _, journal = daemon.take()
    squid.guard._timeout_s = 0.1
    squid.end.sendall(b"1 a - GET http://x.test/\n")
    assert squid.read() == [b"1 OK"]
    squid.guard._timeout_s = 20
    assert journal.revoked
    assert control.recv(10) == b""
    squid.end.sendall(b"2 a - GET http://x.test/\n")  # while it is away
    assert squid.read() == [b"2 OK"]
    _, requests, _ = daemon.take()
    squid.end.sendall(b"3 a - GET http://x.test/\n")
    assert requests.recv(100) == b"3 a - GET http://x.test/\n"
    requests.send(b"3 ERR\n")
    assert squid.read() == [b"3 ERR"]
    requests.close()
    squid.close()


@pytest.mark.usefixtures("quick")
def test_a_daemon_that_waits_for_squid_does_not_hang(daemon: Daemon, squid: Squid) -> None:
    squid._helper.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
    squid.thread.start()
    control, requests, journal = daemon.take()
    squid.end.sendall(b"1 a - GET http://x.test/\n")
    requests.recv_into(journal.room(0))
    with suppress(BlockingIOError):
        while requests.send(bytes(1_000), socket.MSG_DONTWAIT):  # squid takes no answers
            journal.cut = True
    squid.guard._timeout_s = 0.02
    control.settimeout(0.3)
    with pytest.raises(TimeoutError):
        control.recv(1)
    assert not journal.revoked
    control.close()
    requests.close()


def test_the_rest_of_a_long_line_is_passed_over_by_who_comes_next(daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    control, requests, journal = daemon.take()
    journal.discarding = True
    control.close()
    requests.close()
    squid.end.sendall(b"7 of a long line\n1 a - GET http://x.test/\n")
    assert squid.read() == [b"1 ERR message=failure"]
    squid.end.sendall(b"2 a - GET http://x.test/" + b"x" * (LONGEST_LINE + 1))
    assert squid.read() == [b"2 ERR message=failure"]
    squid.guard._again_at = 0.0
    squid.end.sendall(b"xxx")
    _, _, journal = daemon.take()
    assert journal.discarding


async def test_what_the_helper_had_read_comes_first_and_requests_stay_until_all_answers_are_sent() -> None:
    squid, helper = socket.socketpair()
    helper.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
    journal = Journal(memory := Journal.create())
    os.close(memory)
    asked, answer, unread = [], b"1 OK " + b"x" * 100_000 + b"\n", 0

    def answers(lines: list[bytes]) -> bytes:
        asked.extend(lines)
        return answer

    taken = TakenSockets(HelperProtocol.ACL, answers, helper.dup(), helper.dup(), journal, lambda: None)
    journal.replace(len(GARDEN), GARDEN)
    taken.begin()
    squid.sendall(b"more\n2 a")
    await comes(lambda: journal.cut)
    assert asked == [GARDEN + b"more"]
    assert journal.left() == GARDEN + b"more\n2 a"
    while unread < len(answer):
        unread += len(await asyncio.to_thread(squid.recv, 65_536))
    await comes(lambda: journal.left() == b"2 a")
    assert not journal.cut
    taken.close()
    squid.close()
    helper.close()


async def test_requests_that_were_taken_back_are_not_read() -> None:
    squid, helper = socket.socketpair()
    journal, ended = Journal(memory := Journal.create()), asyncio.Event()
    os.close(memory)
    taken = TakenSockets(HelperProtocol.ACL, lambda _: b"1 OK\n", helper.dup(), helper.dup(), journal, ended.set)
    taken.begin()
    journal.revoke()
    squid.sendall(b"1 a - GET http://x.test/\n")
    await asyncio.wait_for(ended.wait(), 20)
    assert helper.recv(100) == b"1 a - GET http://x.test/\n"
    squid.close()
    helper.close()


def test_a_daemon_that_never_takes_the_sockets_is_not_waited_for(tmp_path: Path, daemon: Daemon) -> None:
    squid = Squid(tmp_path / "d.sock", timeout_s=0.05)
    squid.thread.start()
    control, _ = daemon.accept()
    squid.end.sendall(b"1 a - GET http://x.test/\n")
    assert squid.read() == [b"1 ERR message=failure"]
    assert control.recv(10) == b""
    squid.close()


def test_a_helper_without_a_daemon_answers(tmp_path: Path) -> None:
    squid = Squid(tmp_path / "nobody.sock", allows=True)
    squid.thread.start()
    squid.end.sendall(b"1 a - GET http://x.test/\n2 a - GET http://x.test/" + b"x" * (2 * LONGEST_LINE) + b"\n3 a - GET /\n")
    assert squid.read(3) == [b"1 OK", b"2 ERR message=failure", b"3 OK"]
    squid.close()
    assert squid.served == [True]


def test_a_daemon_that_takes_no_sockets_gets_lines(daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    control, _ = daemon.accept()
    control.close()
    squid.thread.join(20)
    assert squid.served == [False]


@pytest.mark.parametrize("how", ["without channels", "amid an answer"])
def test_the_helper_ends_where_an_answer_may_have_been_given(how: str, daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    control, requests, journal = daemon.take()
    squid.end.sendall(b"a - GET http://x.test/\n" if how == "without channels" else b"1 a - GET http://x.test/\n")
    requests.recv_into(journal.room(0))
    journal.cut = how == "amid an answer"
    requests.close()
    control.close()
    squid.thread.join(20)
    assert squid.served == [True]
    assert squid.end.recv(100) == b""


async def test_hostile_helpers_are_closed(served: SquidHelpers, tmp_path: Path) -> None:
    pipes, pair = os.pipe(), socket.socketpair()
    datagrams = socket.socketpair(type=socket.SOCK_DGRAM)
    taken = [one.fileno() for one in pair]
    for greeting, descriptors in (
        (HANDING_OVER + b"acl\n", []),
        (HANDING_OVER + b"acl\n", [pair[0].fileno()]),
        (HANDING_OVER + b"acl\n", list(pipes)),
        (HANDING_OVER + b"acl\n", [one.fileno() for one in datagrams]),
        (HANDING_OVER + b"icap\n", taken),
        (GREETING + b"icap\n", taken),
    ):
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(20)
            await asyncio.to_thread(control.connect, str(tmp_path / "d.sock"))
            socket.send_fds(control, [greeting], descriptors)
            with suppress(ConnectionResetError):
                assert await asyncio.to_thread(control.recv, 10) == b""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(20)
        await asyncio.to_thread(control.connect, str(tmp_path / "d.sock"))
        socket.send_fds(control, [HANDING_OVER + b"acl\n"], taken)
        told, memory, _, _ = await asyncio.to_thread(socket.recv_fds, control, 100, 1)
        assert told == READY
        with pytest.raises(PermissionError):
            os.ftruncate(memory[0], 0)
        os.close(memory[0])
        control.sendall(b"stop\n")
        with suppress(ConnectionResetError):
            assert await asyncio.to_thread(control.recv, 10) == b""
    for end in pair:
        end.close()
    assert not [transport for transport in served.connections if not transport.is_closing()]
    for one in pipes:
        os.close(one)
    for other in datagrams:
        other.close()


def test_sockets_alone_are_handed_over() -> None:
    pipes, pair = os.pipe(), socket.socketpair()
    assert can_hand_over(pair[0].fileno(), pair[1].fileno())
    assert not can_hand_over(pair[0].fileno(), pipes[1])
    for one in pipes:
        os.close(one)
    for end in pair:
        end.close()
