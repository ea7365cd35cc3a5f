"""Netlink messages of the firewall, as bytes; in a real kernel: tests/netns."""

import errno
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.gateway.netlink_monitor import NetlinkMonitor, kinds

DELETED, MADE = 10 << 8 | 2, 10 << 8 | 0


def message(kind: int, body: bytes = b"") -> bytes:
    padded = body + bytes(-len(body) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 2) + padded


@pytest.mark.parametrize(
    ("datagram", "found"),
    [
        (b"", []),
        (message(DELETED), [DELETED]),
        (message(MADE, b"abcde") + message(DELETED, b"x"), [MADE, DELETED]),
        (message(MADE)[:10], []),
        (message(MADE, bytes(40)) + message(DELETED)[:15], [MADE]),
        (struct.pack("=IHHII", 0, DELETED, 0, 1, 2), []),  # a length of nothing must not go round for ever
    ],
)
def test_the_kinds_of_messages(datagram: bytes, found: list[int]) -> None:
    assert list(kinds(datagram)) == found


@given(st.binary(max_size=200))
def test_any_bytes_come_to_an_end(datagram: bytes) -> None:
    assert len(list(kinds(datagram))) <= len(datagram) // 16


@pytest.mark.parametrize(
    ("datagrams", "deleted"),
    [([], False), ([message(MADE)], False), ([message(MADE), message(DELETED)], True), ([b"\x00" * 3], False)],
)
def test_only_a_deleted_table_is_news(datagrams: list[bytes], *, deleted: bool) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with theirs, NetlinkMonitor(ours) as news:
        for datagram in datagrams:
            theirs.send(datagram)
        assert news.wait(0.01) is deleted
        assert news.wait(0.0) is False  # told once


def test_lost_news_count_as_news(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with theirs, NetlinkMonitor(ours) as news:
        theirs.send(b"x")
        answers: list[OSError] = [BlockingIOError(), OSError(errno.ENOBUFS, "")]

        class Overrun(socket.socket):
            def recv(self, *_: object) -> bytes:
                raise answers.pop()

        with Overrun(fileno=ours.detach()) as line:
            monkeypatch.setattr(news, "_line", line)
            assert news.wait(1) is True


def test_without_a_kernel_that_tells_it_only_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    with NetlinkMonitor() as news:
        assert news.wait(0.0) is False


@pytest.mark.parametrize("size", range(17))
def test_messages_begin_at_multiples_of_four_bytes(size: int) -> None:
    assert list(kinds(message(MADE, bytes(size)) + message(DELETED) + message(MADE))) == [MADE, DELETED, MADE]
