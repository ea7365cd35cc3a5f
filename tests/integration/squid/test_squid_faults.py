"""What squid's helpers get when descriptors run out, ends stall at a bad moment, or answers cannot be kept."""

import asyncio
import errno
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.integration.squid import daemon as daemon_module
from gatewayfilter.integration.squid import guard, helper
from gatewayfilter.integration.squid.channels import (
    GREETING,
    HANDING_OVER,
    LONGEST_LINE,
    AnswerCache,
    HelperProtocol,
    RequestLines,
)
from gatewayfilter.integration.squid.daemon import SquidHelpers, open_socket
from gatewayfilter.integration.squid.journal import Journal
from gatewayfilter.integration.squid.taken import TakenSockets
from gatewayfilter.model import Change, ChangeKind, EntryKind, ListAction, ManualRule, Policy
from tests.integration.integration_engine import Records, decider_over, engine
from tests.integration.squid.squid_ends import Daemon, Squid, comes


class _Exhausted(Journal):
    def __init__(self, descriptor: int) -> None:
        raise OSError(errno.ENOMEM, "no memory")


def _no_memory() -> int:
    raise OSError(errno.EMFILE, "no descriptors")


@pytest.mark.parametrize("fails", ["creating", "opening", "taking"])
async def test_a_helper_is_closed_when_descriptors_or_memory_run_out(
    fails: str, served: SquidHelpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fails == "creating":
        monkeypatch.setattr(Journal, "create", staticmethod(_no_memory))
    elif fails == "opening":
        monkeypatch.setattr(daemon_module, "Journal", _Exhausted)
    else:
        monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", lambda *_: _no_memory())
    pair = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as control:
        await asyncio.to_thread(control.connect, str(tmp_path / "d.sock"))
        control.settimeout(20)
        with suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(control, [HANDING_OVER + b"acl\n"], [one.fileno() for one in pair])
            assert await asyncio.to_thread(control.recv, 10) == b""
        await comes(lambda: not served.connections)
    for one in pair:
        one.close()


@pytest.mark.parametrize("said", [b"", b"gatewayfilter", HANDING_OVER + b"acl\n"])
async def test_a_helper_that_does_not_say_what_it_asks_is_closed(
    said: bytes, served: SquidHelpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "_GREETING_S", 0.05)
    pair = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(20)
        await asyncio.to_thread(control.connect, str(tmp_path / "d.sock"))
        if said:
            socket.send_fds(control, [said], [one.fileno() for one in pair] if said.endswith(b"\n") else [])
        while await asyncio.to_thread(control.recv, 10):
            pass
        await comes(lambda: not served.connections)
    for one in pair:
        one.close()


async def test_a_helper_that_takes_no_answers_is_not_read_from_even_at_first(served: SquidHelpers, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as control:
        await asyncio.to_thread(control.connect, str(tmp_path / "d.sock"))
        await comes(lambda: bool(served.connections))
        (transport,) = served.connections
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
        transport.set_write_buffer_limits(0)
        control.sendall(GREETING + b"acl\n" + b"x\n" * 1_000)
        await comes(lambda: transport.get_write_buffer_size() > 0)
        assert not transport.is_reading()
        await asyncio.sleep(0.01)
        assert not transport.is_reading()


async def test_a_helper_that_takes_answers_late_is_read_from_when_it_has_taken_them(served: SquidHelpers, tmp_path: Path) -> None:
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "d.sock"), limit=256)
    writer.write(GREETING + b"acl\n")
    await comes(lambda: bool(served.connections))
    (transport,) = served.connections
    await comes(transport.is_reading)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
    transport.set_write_buffer_limits(0)
    writer.write(b"1 192.0.2.7 - GET http://garden.test/\n" * 2_000)
    await comes(lambda: not transport.is_reading())
    async with asyncio.timeout(20):
        assert await reader.readexactly(2_000 * 5) == b"1 OK\n" * 2_000
        await comes(transport.is_reading)
        writer.write(b"2 192.0.2.7 - GET http://garden.test/\n")
        assert await reader.readline() == b"2 OK\n"
    writer.close()


RULE = ManualRule(1, ListAction.BLOCK, EntryKind.DOMAIN, ".garden.test")
PAUSE = Policy("default")


@pytest.mark.parametrize(
    ("change", "after", "reused"),
    [
        (Change(1, ChangeKind.MANUAL_ADDED, manual=RULE), b"ERR message=manual-block log=-", True),
        (Change(1, ChangeKind.POLICY_PUT, policy=PAUSE), b"OK", False),
    ],
)
def test_answers_of_before_a_change_are_not_reused(change: Change, after: bytes, *, reused: bool) -> None:
    found, records, cache = engine(), Records(), AnswerCache()
    helpers = SquidHelpers(*decider_over(found, records, ttl_s=60))

    def answer() -> bytes:
        return helpers.reused_answers(HelperProtocol.ACL, [b"1 192.0.2.7 - GET http://garden.test/"], cache)

    assert answer().startswith(b"1 OK ttl=")
    assert answer().startswith(b"1 OK ttl=")
    assert len(records.records) == 1
    found.apply([change])
    assert answer().startswith(b"1 " + after)
    assert (b" ttl=" in answer()) is reused
    assert len(records.records) == (2 if reused else 3)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("ends_amid_it", [False, True])
def test_a_daemon_that_stalls_amid_a_read_may_end_it(
    daemon: Daemon, squid: Squid, monkeypatch: pytest.MonkeyPatch, *, ends_amid_it: bool
) -> None:
    monkeypatch.setattr(guard, "_ENDING_S", 20)
    squid.thread.start()
    control, requests, journal = daemon.take()
    journal.reading = True
    squid.guard._timeout_s = 0.05
    squid.end.sendall(b"1 a - GET http://x.test/\n")
    while not journal.revoked:
        time.sleep(0.001)
    time.sleep(0.02)
    requests.recv_into(journal.room(0))
    journal.reading = ends_amid_it
    control.close()
    assert squid.read() == [b"1 ERR message=failure"]
    requests.close()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("stalls", ["reading", "cut"])
def test_the_helper_ends_where_a_daemon_hangs_amid_a_read_or_an_answer(
    stalls: str, daemon: Daemon, squid: Squid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_ENDING_S", 0.01)
    squid.thread.start()
    _, requests, journal = daemon.take()
    squid.guard._timeout_s = 0.05
    setattr(journal, stalls, True)
    squid.end.sendall(b"1 a - GET http://x.test/\n")
    squid.end.settimeout(5)
    with suppress(ConnectionResetError):
        assert squid.end.recv(100) == b""  # though the daemon has the socket open
    assert requests.fileno() >= 0
    requests.close()


class _Watched(socket.socket):
    """A socket that notes what the journal shows during its calls."""

    journal: Journal
    seen: ClassVar[list[tuple[str, bool, bool]]] = []

    def recv_into(self, *arguments: Any) -> int:
        self.seen.append(("recv", self.journal.reading, self.journal.cut))
        return super().recv_into(*arguments)

    def send(self, *arguments: Any) -> int:
        self.seen.append(("send", self.journal.reading, self.journal.cut))
        return super().send(*arguments)


@pytest.mark.parametrize("revokes", [False, True])
async def test_the_journal_shows_what_the_daemon_is_about_to_do(*, revokes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(memory := Journal.create())
    os.close(memory)
    squid, helper = socket.socketpair()
    seen: list[tuple[str, bool, bool]] = []
    monkeypatch.setattr(_Watched, "seen", seen)
    monkeypatch.setattr(_Watched, "journal", journal, raising=False)

    def answers(lines: list[bytes]) -> bytes:
        if revokes:
            journal.revoke()
        return b"1 OK\n" * len(lines)

    ended = asyncio.Event()
    sockets = [_Watched(fileno=os.dup(helper.fileno())) for _ in range(2)]
    taken = TakenSockets(HelperProtocol.ACL, answers, sockets[0], sockets[1], journal, ended.set)
    close, closes = journal.close, [journal.cut]
    monkeypatch.setattr(journal, "close", lambda: closes.append(journal.cut))
    taken.begin()
    squid.sendall(b"1 a - GET http://x.test/\n")
    if revokes:
        await asyncio.wait_for(ended.wait(), 20)
        assert seen == [("recv", True, False)]
        assert closes == [False, False]
    else:
        assert await asyncio.to_thread(squid.recv, 100) == b"1 OK\n"
        await comes(lambda: journal.is_empty)
        assert seen == [("recv", True, False), ("send", False, True)]
        assert not journal.cut
    assert not journal.reading
    taken.close()
    close()
    squid.close()
    helper.close()


async def test_a_long_line_leads_to_the_block_page(listed: FilterEngine, tmp_path: Path) -> None:
    decider, counters = decider_over(listed, Records())
    helpers = SquidHelpers(decider, counters, "http://filter.test/blocked")
    server = await asyncio.get_running_loop().create_unix_server(helpers.connection, sock=open_socket(tmp_path / "d.sock", ""))
    squid = Squid(tmp_path / "d.sock", protocol=HelperProtocol.REWRITE)
    async with server:
        squid.thread.start()
        squid.end.sendall(b"1 http://x.test/" + b"y" * (LONGEST_LINE + 1))
        assert await asyncio.to_thread(squid.read) == [b'1 OK status=302 url="http://filter.test/blocked?reason=failure"']
        await asyncio.to_thread(squid.close)


def test_the_rest_of_a_long_line_is_passed_over_where_lines_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    requests, asks = os.pipe()
    answered, answers = os.pipe()

    class Passing(helper.Helper):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more, source=requests, target=answers)

    def left_over(self: guard.Guard) -> bool:
        self.lines = RequestLines(discarding=True)
        return False

    monkeypatch.setattr(guard.Guard, "run", left_over)
    monkeypatch.setattr(helper, "can_hand_over", lambda *_: True)
    monkeypatch.setattr(helper, "Helper", Passing)
    os.write(asks, b"the rest\na - GET http://x.test/\n")
    os.close(asks)
    assert helper.main(["--socket=nobody.sock", "--on-error=block"]) == 0
    assert os.read(answered, 100) == b"ERR message=failure\n"
    for descriptor in (requests, answered, answers):
        os.close(descriptor)


def test_a_helper_waits_two_seconds_unless_told_otherwise_and_needs_a_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def run(self: guard.Guard) -> bool:
        waits.append(self._timeout_s)
        return True

    monkeypatch.setattr(guard.Guard, "run", run)
    monkeypatch.setattr(helper, "can_hand_over", lambda *_: True)
    for more in ([], ["--timeout-ms=1"]):
        assert helper.main(["--socket=a.sock", *more]) == 0
    assert waits == [2.0, 0.001]
    with pytest.raises(SystemExit):
        helper.main([])


@pytest.mark.parametrize("ended", [None, BrokenPipeError, ConnectionResetError, KeyboardInterrupt])
def test_a_helper_that_squid_ends_has_no_fault(ended: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[guard.Guard] = []

    def run(self: guard.Guard) -> bool:
        made.append(self)
        if ended is not None:
            raise ended
        return True

    monkeypatch.setattr(guard.Guard, "run", run)
    monkeypatch.setattr(helper, "can_hand_over", lambda *descriptors: descriptors == (0, 1))
    assert helper.main(["--socket=a.sock", "--protocol=rewrite", "--timeout-ms=1500", "--block-url=http://p.test/"]) == 0
    (one,) = made
    assert (one._path, one._protocol, one._allows, one._block_url, one._timeout_s, one._source, one._target) == (
        *("a.sock", HelperProtocol.REWRITE, True, "http://p.test/", 1.5, 0, 1),
    )
