"""What squid's helpers get when descriptors run out, ends stall at a bad moment, or answers cannot be kept."""

import asyncio
import errno
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from gatewayfilter.integration.squid import daemon as daemon_module
from gatewayfilter.integration.squid.channels import GREETING, HANDING_OVER, AnswerCache, HelperProtocol
from gatewayfilter.integration.squid.daemon import SquidHelpers
from gatewayfilter.integration.squid.journal import Journal
from gatewayfilter.model import Change, ChangeKind, EntryKind, ListAction, ManualRule, Policy
from tests.integration.integration_engine import Records, decider_over, engine
from tests.integration.squid.squid_ends import comes


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


async def test_a_helper_that_has_greeted_stays(served: SquidHelpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module, "_GREETING_S", 0.02)
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "d.sock"))
    writer.write(GREETING + b"acl\n")
    await asyncio.sleep(0.05)
    writer.write(b"1 192.0.2.7 - GET http://garden.test/\n")
    assert await asyncio.wait_for(reader.readline(), 20) == b"1 OK\n"
    writer.close()


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
