"""What both ends of squid's helpers share: lines of every length, channels, kept answers, failures, the block page's address."""

import errno
import mmap
import os
import socket
import stat
from pathlib import Path

import pytest

from gatewayfilter.errors import StartupError
from gatewayfilter.integration.squid import channels
from gatewayfilter.integration.squid.channels import (
    LONGEST_LINE,
    AnswerCache,
    HelperProtocol,
    RequestLines,
    block_page_url,
    failure_answer,
    split_channel,
)
from gatewayfilter.integration.squid.daemon import open_socket
from gatewayfilter.integration.squid.guard import Guard
from gatewayfilter.integration.squid.helper import Helper, helper_command
from gatewayfilter.integration.squid.journal import Journal
from gatewayfilter.integration.squid.protocol import HelperLines

ACL, REWRITE = HelperProtocol.ACL, HelperProtocol.REWRITE
LONG = b"x" * LONGEST_LINE


@pytest.mark.parametrize(
    ("pieces", "lines", "partial"),
    [
        ([b"a\nb"], [b"a"], b"b"),
        ([b"a", b"b\n", b"c\n"], [b"ab", b"c"], b""),
        ([LONG, b"\n"], [LONG], b""),
        ([LONG], [], LONG),
        ([LONG + b"x", b"rest", b" of it\nb\n"], [LONG + b"x", b"b"], b""),
        ([b"a\n" + LONG + b"x", b"y\nb"], [b"a", LONG + b"x"], b"b"),
        ([b"a\n" + LONG + b"x\nb\n"], [b"a", LONG + b"x", b"b"], b""),
        ([LONG + b"x", b"y\n" + LONG + b"z", b"\nb\n"], [LONG + b"x", LONG + b"z", b"b"], b""),
    ],
)
def test_requests_are_cut_into_lines(pieces: list[bytes], lines: list[bytes], partial: bytes) -> None:
    cutting = RequestLines()
    assert [line for piece in pieces for line in cutting.cut(piece)] == lines
    assert (cutting.partial, cutting.discarding) == (partial, False)


@pytest.mark.parametrize(
    ("line", "channel", "rest"),
    [
        (b"7 a b", b"7 ", b"a b"),
        (b"1234567890 a", b"1234567890 ", b"a"),
        (b"12345678901 a", b"", b"12345678901 a"),
        (b"a 7", b"", b"a 7"),
        (b"7", b"", b"7"),
        (b" 7", b"", b" 7"),
        (b"", b"", b""),
    ],
)
def test_a_channel_is_a_number_before_a_blank(line: bytes, channel: bytes, rest: bytes) -> None:
    assert split_channel(line) == (channel, rest)


def test_an_answer_is_kept_for_whole_seconds() -> None:
    cache = AnswerCache()
    cache.put(b"a", b"OK ttl=5\n", 100.0)
    assert cache.get(b"a", 100.0) == b"OK ttl=5\n"
    assert cache.get(b"a", 103.5) == b"OK ttl=1\n"
    assert cache.get(b"a", 104.0) == b"OK ttl=1\n"
    assert cache.get(b"a", 104.1) is None
    assert cache.get(b"a", 100.0) is None, "it was dropped"
    assert cache.get(b"b", 100.0) is None


@pytest.mark.parametrize("answer", [b"OK\n", b"OK ttl=\n", b"OK ttl=-5\n", b"ttl=5\n", b"OK ttl=5 log=x\n"])
def test_an_answer_without_seconds_is_not_kept(answer: bytes) -> None:
    cache = AnswerCache()
    cache.put(b"a", answer, 100.0)
    assert cache.get(b"a", 100.0) is None


def test_kept_answers_are_few_and_of_short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_MOST_CACHED", 2)
    cache = AnswerCache()
    for key in (b"a", b"b", b"c" * 2_048, b"d" * 2_049):
        cache.put(key, b"OK ttl=5\n", 100.0)
    found = [cache.get(key, 100.0) is not None for key in (b"a", b"b", b"c" * 2_048, b"d" * 2_049)]
    assert found == [False, True, True, False]


def test_answers_end_with_the_mark_that_they_were_given_under() -> None:
    cache = AnswerCache()
    cache.hold_under(1)
    cache.put(b"a", b"OK ttl=5\n", 100.0)
    cache.hold_under(1)
    assert cache.get(b"a", 100.0)
    cache.hold_under(2)
    assert cache.get(b"a", 100.0) is None
    cache.put(b"a", b"OK ttl=5\n", 100.0)
    cache.hold_under(2)
    assert cache.get(b"a", 100.0)


@pytest.mark.parametrize(
    ("protocol", "allows", "answer"),
    [
        (ACL, True, b"7 OK\n"),
        (ACL, False, b"7 ERR message=failure\n"),
        (REWRITE, True, b"7 ERR\n"),
        (REWRITE, False, b'7 OK status=302 url="http://p.test/?a=1&reason=failure"\n'),
    ],
)
def test_each_protocol_has_its_answer_to_a_failure(protocol: HelperProtocol, answer: bytes, *, allows: bool) -> None:
    assert failure_answer(protocol, b"7 ", "http://p.test/?a=1", allows=allows) == answer


def test_the_block_page_is_told_what_there_is() -> None:
    assert block_page_url("", {"reason": "a/b&c", "category": "", "url": "\ud800"}) == (
        "http://blocked.invalid/?reason=a%2Fb%26c&url=%3F"
    )
    assert block_page_url("http://p.test/b", {"reason": "x"}) == "http://p.test/b?reason=x"


@pytest.mark.parametrize(
    ("protocol", "line", "values"),
    [
        (ACL, b"192.0.2.7 an%20na GET http://a.test/", ("http://a.test/", "192.0.2.7", "an na", "GET", "", "", "")),
        (ACL, b"- - POST http://a.test/ http://r.test/ image text/html", (
            "http://a.test/", "", "", "POST", "http://r.test/", "image", "text/html",
        )),
        (ACL, b"- - GET http://a.test/ - image", ("http://a.test/", "", "", "GET", "", "image", "")),
        (ACL, b"- - GET http://a.test/ - - x more fields", ("http://a.test/", "", "", "GET", "", "", "x")),
        (ACL, b"- - GET http://a.test/\xe4", ("http://a.test/%E4", "", "", "GET", "", "", "")),
        (REWRITE, b"http://a.test/\x7f\x80\xff - - GET", ("http://a.test/\x7f%80%FF", "", "", "GET", "", "", "")),
        (REWRITE, b"http://a.test/ 192.0.2.7/host anna GET", ("http://a.test/", "192.0.2.7", "anna", "GET", "", "", "")),
        (REWRITE, b"http://a.test/ -/- - GET myip=x ref=http%3A//r.test/ dest=image accept=*/*", (
            "http://a.test/", "", "", "GET", "http://r.test/", "image", "*/*",
        )),
        (REWRITE, b"http://a.test/ - - GET " + b"x=y " * 15 + b"dest=image", ("http://a.test/", "", "", "GET", "", "image", "")),
        (REWRITE, b"http://a.test/ - - GET " + b"x=y " * 16 + b"dest=image", ("http://a.test/", "", "", "GET", "", "", "")),
    ],
)  # fmt: skip
def test_a_line_is_read(protocol: HelperProtocol, line: bytes, values: tuple[str, ...]) -> None:
    channel, asked = HelperLines(protocol).read(b"3 " + line)
    assert channel == b"3 "
    assert asked is not None
    assert (
        *(asked.url, asked.client, asked.user, asked.method, asked.referer, asked.destination, asked.accept),
    ) == values  # fmt: skip


@pytest.mark.parametrize("protocol", [ACL, REWRITE])
def test_a_line_of_less_than_four_words_is_none(protocol: HelperProtocol) -> None:
    assert HelperLines(protocol).read(b"3 a b c") == (b"3 ", None)


def test_the_journal_tells_what_each_end_wrote() -> None:
    memory = Journal.create()
    ours, theirs = Journal(memory), Journal(memory)
    os.close(memory)
    assert (theirs.chunks, theirs.is_empty, theirs.left()) == (0, True, b"")
    assert len(ours.room(0)) == 2 * 65_536
    room = ours.room(3)
    assert len(room) == 2 * 65_536 - 3
    room[:2] = b"bc"
    ours.replace(3, b"xya")
    assert (theirs.chunks, theirs.is_empty, theirs.left(), ours.take(4)) == (2, False, b"xyabc", b"xyab")
    ours.replace(4, b"z")
    assert theirs.left() == b"z\0\0\0c"
    flags = ("revoked", "discarding", "reading", "cut")
    assert [getattr(theirs, name) for name in flags] == [False] * 4
    for number, name in enumerate(flags):
        if name == "revoked":
            ours.revoke()
        else:
            setattr(ours, name, True)
        assert [getattr(theirs, each) for each in flags] == [at <= number for at in range(4)]
    for name in flags[1:]:
        setattr(theirs, name, False)
    assert [getattr(ours, each) for each in flags] == [True, False, False, False]
    ours._chunks = 0xFFFFFFFF
    room.release()
    ours.room(0).release()
    assert theirs.chunks == 0
    theirs.close()
    ours.close()


def test_the_journal_has_the_layout_that_helpers_of_every_release_read() -> None:
    memory = Journal.create()
    with Journal(memory).room(0) as room:
        room[:3] = b"abc"
    with mmap.mmap(memory, 16 + 2 * 65_536) as shared:
        assert shared[:20] == b"\1\0\0\0" + bytes(12) + b"abc\0"
        journal = Journal(memory)
        for place, name in enumerate(("revoked", "discarding", "cut", "reading"), 4):
            if name == "revoked":
                journal.revoke()
            else:
                setattr(journal, name, True)
            assert shared[4:9] == (b"\1" * (place - 3)).ljust(5, b"\0")
        journal.close()
    os.close(memory)


def test_the_journal_keeps_its_size() -> None:
    memory = Journal.create()
    for size in (1, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(memory, size)
    assert os.fstat(memory).st_size == 16 + 2 * 65_536
    assert not os.get_inheritable(memory)
    os.close(memory)


def test_memory_that_cannot_be_made_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def full(descriptor: int, _: int) -> None:
        made.append(descriptor)
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(OSError, match="no space left"):
        Journal.create()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made[0])


class _Noted(socket.socket):
    made: list[socket.socket]

    def __init__(self, *arguments: int) -> None:
        super().__init__(*arguments)
        self.made.append(self)


def test_a_socket_that_cannot_be_listened_on_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Noted, "made", [], raising=False)
    monkeypatch.setattr("gatewayfilter.integration.squid.daemon.socket.socket", _Noted)
    (tmp_path / "folder").mkdir()
    for path, group in ((tmp_path / "d.sock", "no such group"), (tmp_path / "folder" / ("x" * 200), "")):
        with pytest.raises(StartupError, match=r"helper\.(group|socket)"):
            open_socket(path, group)
    assert [one.fileno() for one in _Noted.made] == [-1] * len(_Noted.made)


def test_a_socket_is_the_own_users_or_a_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr("os.chown", lambda path, user, group: given.append((Path(path).name, user, group)))
    with open_socket(tmp_path / "new" / "of" / "d.sock", "root"):
        assert given == [("d.sock", -1, 0)]
        assert stat.S_IMODE((tmp_path / "new" / "of" / "d.sock").stat().st_mode) == 0o660
        assert stat.S_IMODE((tmp_path / "new" / "of").stat().st_mode) & 0o755 == 0o755
    with open_socket(tmp_path / "own.sock", ""):
        assert stat.S_IMODE((tmp_path / "own.sock").stat().st_mode) == 0o600


def test_a_daemon_that_accepts_nobody_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "busy.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waits:
        listener.bind(str(path))
        listener.listen(0)
        waits.connect(str(path))
        assert not Guard(str(path), ACL, allows=True)._offer(0.0)
        assert not Helper(str(path), ACL, allows=True)._connect(1.0)


def test_the_command_of_a_helper_names_its_settings() -> None:
    command = helper_command(Path("/run/d.sock"), "acl", "block", "http://p.test/", 1_500)
    assert command[1:] == [
        *("-I", "-m", "gatewayfilter.integration.squid.helper", "--socket=/run/d.sock", "--protocol=acl", "--on-error=block"),
        *("--block-url=http://p.test/", "--timeout-ms=1500"),
    ]
