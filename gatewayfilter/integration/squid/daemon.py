"""The daemon's end of squid's helpers: a Unix socket, over which helper processes ask for decisions."""

import asyncio
import grp
import logging
import os
import socket
import stat
from pathlib import Path
from typing import Final

from gatewayfilter.errors import StartupError
from gatewayfilter.integration.request_decider import AskedRequest, RequestDecider
from gatewayfilter.integration.squid.channels import (
    GREETING,
    LONGEST_LINE,
    HelperProtocol,
    failure_answer,
    split_channel,
)
from gatewayfilter.integration.squid.protocol import HelperLines
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 256
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
        self._block_url = block_url
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
            return failure_answer(protocol, split_channel(line)[0], self._block_url, allows=self._allows_failures)


class _Connection(asyncio.Protocol):
    """One helper process. The transport stops reading while the helper does not take its answers."""

    def __init__(self, helpers: SquidHelpers) -> None:
        self._helpers = helpers
        self._transport: asyncio.Transport | None = None
        self._protocol: HelperProtocol | None = None
        self._partial = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._helpers.connections) >= MOST_CONNECTIONS:
            transport.abort()
        self._helpers.connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the interface
        if self._transport is not None:
            self._helpers.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
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
        if lines and self._protocol is not None:
            self._transport.write(self._helpers.answers(self._protocol, lines))

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()


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
