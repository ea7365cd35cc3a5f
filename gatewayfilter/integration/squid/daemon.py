"""The daemon's end of squid's helpers: a Unix socket, over which helper processes ask for decisions."""

import asyncio
import grp
import logging
import os
import socket
import stat
import time
from pathlib import Path
from typing import Final

from gatewayfilter.errors import StartupError
from gatewayfilter.integration.request_decider import AskedRequest, RequestDecider
from gatewayfilter.integration.squid.channels import (
    GO,
    GREETING,
    HANDING_OVER,
    LONGEST_LINE,
    READY,
    AnswerCache,
    HelperProtocol,
    failure_answer,
    split_channel,
)
from gatewayfilter.integration.squid.journal import Journal
from gatewayfilter.integration.squid.protocol import HelperLines
from gatewayfilter.integration.squid.taken import TakenSockets
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 256
_LONGEST_GREETING: Final = 65_536
_MOST_DESCRIPTORS: Final = 2
_GREETING_S: Final = 10.0
"""How long a helper may take until it has said what it asks; it does so at once."""
_ASKED_NOTHING: Final = AskedRequest("")


class SquidHelpers:
    """Decides what helper processes ask.

    Args:
        decider: decides.
        counters: `helper_requests`, `helper_malformed`, `hook_errors`.
        block_url: the block page of `rewrite`.
        allows_failures: what happens to a request on which a decision fails.
    """

    def __init__(self, decider: RequestDecider, counters: Counters, block_url: str = "", *, allows_failures: bool = True) -> None:
        self._decider = decider
        self._counters = counters
        self.block_url = block_url
        self._allows_failures = allows_failures
        self._lines = {protocol: HelperLines(protocol, block_url) for protocol in HelperProtocol}
        self.connections: set[asyncio.Transport] = set()

    def connection(self) -> asyncio.Protocol:
        """Returns the handler of a new connection."""
        return _Connection(self)

    def answers(self, protocol: HelperProtocol, requests: list[bytes]) -> bytes:
        """Returns the answers to request lines, in their order; never raises."""
        lines = self._lines[protocol]
        self._counters.add("helper_requests", len(requests))
        return b"".join([self._answer(lines, protocol, line) for line in requests])

    def reused_answers(self, protocol: HelperProtocol, requests: list[bytes], cache: AnswerCache) -> bytes:
        """Returns the answers to request lines, those in the cache included."""
        found, now = [], time.monotonic()
        cache.hold_under(self._decider.decision_mark())  # of before the decisions, which a thread may overtake with new lists
        for line in requests:
            channel, key = split_channel(line)
            answer = cache.get(key, now)
            if answer is None:
                answer = self.answers(protocol, [line]).removeprefix(channel)
                cache.put(key, answer, now)
            found.append(channel + answer)
        return b"".join(found)

    @property
    def reuses_answers(self) -> bool:
        """Whether any answer may be reused."""
        return self._decider.ttl_s > 0

    def _answer(self, lines: HelperLines, protocol: HelperProtocol, line: bytes) -> bytes:
        try:
            channel, asked = lines.read(line)
            if asked is None:
                self._counters.add("helper_malformed")
                asked = _ASKED_NOTHING
            return lines.answer(channel, self._decider.decide(asked), asked)
        except Exception:  # noqa: BLE001  every request of squid needs its answer
            self._counters.add("hook_errors")
            _log.exception("deciding a request of squid failed")
            return failure_answer(protocol, split_channel(line)[0], self.block_url, allows=self._allows_failures)


class _Connection(asyncio.Protocol):
    """One helper process, which passes lines on, or hands its sockets over.

    The transport stops reading while the helper does not take its answers. What comes first is read beside the transport, which
    would drop descriptors.
    """

    def __init__(self, helpers: SquidHelpers) -> None:
        self._helpers = helpers
        self._transport: asyncio.Transport | None = None
        self._protocol: HelperProtocol | None = None
        self._partial = b""
        self._first: socket.socket | None = None
        self._taken: TakenSockets | None = None
        self._helper_is_slow = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._helpers.connections) >= MOST_CONNECTIONS:
            transport.abort()
            return
        self._helpers.connections.add(transport)
        transport.pause_reading()
        loop = asyncio.get_running_loop()
        try:
            self._first = first = transport.get_extra_info("socket").dup()
            loop.add_reader(first, self._read_first, first)
        except OSError as error:
            self._refuse(error)
            return
        self._deadline = loop.call_later(_GREETING_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the interface
        if self._transport is not None:
            self._helpers.connections.discard(self._transport)
        self._met_deadline()
        self._leave_first()
        if self._taken is not None:
            self._taken.close()

    def _refuse(self, error: OSError) -> None:
        """Closes the connection where descriptors or memory are used up; else it would be paused, and kept, for ever."""
        assert self._transport is not None
        _log.warning("a helper of squid cannot be served: %s", error.strerror or error)
        self._transport.abort()

    def _met_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _leave_first(self) -> None:
        if self._first is not None:
            asyncio.get_running_loop().remove_reader(self._first)
            self._first.close()
            self._first = None

    def _read_first(self, first: socket.socket) -> None:
        assert self._transport is not None
        try:
            data, descriptors, _, _ = socket.recv_fds(first, _LONGEST_GREETING, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        sockets = [stream for descriptor in descriptors if (stream := _stream(descriptor)) is not None]
        if data.startswith(HANDING_OVER) and len(sockets) == _MOST_DESCRIPTORS:
            self._take(data, first, sockets)
        else:
            for one in sockets:
                one.close()
            if data:
                self.data_received(data)
        self._leave_first()
        if not self._helper_is_slow:
            self._transport.resume_reading()

    def _take(self, greeting: bytes, first: socket.socket, sockets: list[socket.socket]) -> None:
        """Takes squid's sockets; they are read when the helper says that it does so no longer."""
        assert self._transport is not None
        try:
            protocol = HelperProtocol(greeting.removeprefix(HANDING_OVER).strip().decode("ascii"))
            journal = _shared_journal(first)
        except (ValueError, OSError) as error:
            for one in sockets:
                one.close()
            if isinstance(error, OSError):
                self._refuse(error)
            self._transport.abort()
            return
        cache = AnswerCache()

        def answers(lines: list[bytes]) -> bytes:
            if self._helpers.reuses_answers:
                return self._helpers.reused_answers(protocol, lines, cache)
            return self._helpers.answers(protocol, lines)

        self._taken = TakenSockets(
            protocol, answers, sockets[0], sockets[1], journal, self._transport.close, block_url=self._helpers.block_url
        )

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if self._taken is not None:
            if data != GO or self._deadline is None:  # it has let them go before
                self._transport.abort()
                return
            self._met_deadline()
            self._taken.begin()
            return
        *lines, self._partial = (self._partial + data).split(b"\n") if self._partial else data.split(b"\n")
        if len(self._partial) > LONGEST_LINE:  # no helper of ours
            self._transport.abort()
            return
        if self._protocol is None and lines:
            greeting = lines.pop(0)
            try:
                self._protocol = HelperProtocol(greeting.removeprefix(GREETING).decode("ascii"))
            except ValueError:
                self._transport.abort()
                return
            self._met_deadline()
        if self._protocol is not None:
            self._transport.write(self._helpers.answers(self._protocol, lines))

    def pause_writing(self) -> None:
        self._helper_is_slow = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._helper_is_slow = False
        if self._transport is not None:
            self._transport.resume_reading()


def _shared_journal(helper: socket.socket) -> Journal:
    """Returns a journal that the helper has, too.

    Raises:
        OSError: descriptors or memory are used up, or the helper has ended.
    """
    descriptor = Journal.create()
    try:
        journal = Journal(descriptor)
        try:
            socket.send_fds(helper, [READY], [descriptor])
        except OSError:
            journal.close()
            raise
        return journal
    finally:
        os.close(descriptor)


def _stream(descriptor: int) -> socket.socket | None:
    """Returns the socket of a stream; what else a descriptor is, is closed: reading it may take for ever."""
    try:
        found = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        return None
    if found.type == socket.SOCK_STREAM:
        return found
    found.close()
    return None


def open_socket(path: Path, group: str) -> socket.socket:
    """Returns a listening Unix socket that the own user and a group may use. A socket that nothing serves is replaced.

    Args:
        path: in a folder that exists, or can be made with mode 0755.
        group: name of the group, `""` for the own user alone.

    Raises:
        StartupError: it cannot be made, or another process serves it.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _remove_stale(path)
        os.fchmod(listener.fileno(), 0o600)  # the mode of the file to come; a umask would be that of all threads
        listener.bind(str(path))
        if group:
            os.chown(path, -1, grp.getgrnam(group).gr_gid)
            path.chmod(0o660)
        listener.listen(64)
    except KeyError:
        listener.close()
        raise StartupError(f"helper.group: there is no group {group!r}") from None
    except OSError as error:
        listener.close()
        raise StartupError(f"cannot listen on helper.socket {path}: {error.strerror or error}") from error
    return listener


def _remove_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StartupError(f"cannot listen on helper.socket {path}: a file is there that is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.1)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError as error:  # served by a process that is busy, or of another user
            raise StartupError(f"cannot listen on helper.socket {path}: {error.strerror or error}") from error
    raise StartupError(f"cannot listen on helper.socket {path}: another process serves it")
