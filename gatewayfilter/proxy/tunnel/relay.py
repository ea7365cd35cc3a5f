"""The relay of unread connections: bytes from one socket to the other, both ways, until both have ended.

It runs in callbacks of the worker's poller, without a task or a stream per connection. Data is read into one buffer that all
relays of the worker share, and sent on at once; only what the other side does not accept is copied and kept, and nothing more is
read until it is sent. Bulk data is moved by the kernel through a pipe (`os.splice`), not through this process;
scripts/bench/bench_relay.py measures both. An idle connection holds two sockets and nothing else.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from typing import Final

from gatewayfilter.proxy.tunnel.kernel_pipes import Pipe, PipePool
from gatewayfilter.proxy.tunnel.poller import ENDING, READ, WRITE, poller_of
from gatewayfilter.telemetry import Counters

_BUFFER_BYTES: Final = 262_144
_FULL_READS: Final = 4
"""After so many reads in a row that filled half the buffer a flow is a bulk transfer, for which a pipe pays."""
_BULK_READ: Final = _BUFFER_BYTES // 2
_SWEEP_S: Final = 5.0
_HALF_CLOSED_S: Final = 60.0
"""How long one half of a connection stays open without a byte when the other has ended."""
_RESET: Final = struct.pack("ii", 1, 0)
_NONBLOCK: Final = getattr(os, "SPLICE_F_NONBLOCK", 0) | getattr(os, "SPLICE_F_MOVE", 0)
_MORE: Final[int] = getattr(socket, "MSG_MORE", 0)
_GONE: Final = (BlockingIOError, InterruptedError)


class RelayPool:
    """The relays of a worker: what they share, what they count, who is idle for too long.

    Args:
        loop: where they run.
        counters: `spliced_bytes`.
        idle_s: how long a connection may be silent.
        in_kernel: whether bulk transfers may go through `os.splice`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        counters: Counters,
        *,
        idle_s: float = 600.0,
        in_kernel: bool = hasattr(os, "splice"),
    ) -> None:
        self.loop = loop
        self.poller = poller_of(loop)
        self.buffer = bytearray(_BUFFER_BYTES)
        self.view = memoryview(self.buffer)
        self.counters = counters
        self._idle_s = idle_s
        self.pipes = PipePool(in_kernel=in_kernel)
        self._relays: set[Relay] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._relays)

    def start(
        self,
        client: socket.socket,
        origin: socket.socket,
        *,
        to_origin: bytes = b"",
        to_client: bytes = b"",
        on_end: Callable[[], None] | None = None,
        holds: Callable[[], bool] | None = None,
        passed: Callable[[], None] | None = None,
    ) -> "Relay":
        """Relays between two connected, non-blocking sockets, and closes them in the end.

        Args:
            client: a connected socket, owned by the relay like `origin`; the poller may be watching it already.
            origin: the other one.
            to_origin: what was read already and goes first; likewise `to_client`.
            to_client: of the other way.
            on_end: called once, when both are closed.
            holds: called every few seconds; returns whether the connection may go on. By default it may.
            passed: called every few seconds in which bytes have passed.
        """
        relay = Relay(self, client, origin, on_end, holds, passed)
        self._relays.add(relay)
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(min(_SWEEP_S, self._idle_s), self._sweep)
        relay.begin(to_origin, to_client)
        return relay

    def busy(self, within_s: float = 1.0) -> bool:
        """Returns whether any relay passed a byte in the last `within_s` seconds."""
        since = self.loop.time() - within_s
        return any(relay.active_at >= since for relay in self._relays)

    def review(self) -> None:
        """Ends the relays that may no longer go on, without waiting for the next sweep."""
        for relay in list(self._relays):
            if relay.holds is not None and not relay.holds():
                relay.break_off()

    def close(self) -> None:
        """Ends all relays."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for relay in list(self._relays):
            relay.end()
        self.pipes.close()

    def ended(self, relay: "Relay") -> None:
        """Forgets a relay that is closed."""
        self._relays.discard(relay)

    def count(self, passed: int) -> None:
        """Adds to what has passed."""
        if passed:
            self.counters.add("spliced_bytes", passed)

    def _sweep(self) -> None:
        now = self.loop.time()
        for relay in list(self._relays):
            relay.report()
            if relay.holds is not None and not relay.holds():
                relay.break_off()
            elif now - relay.active_at >= (min(self._idle_s, _HALF_CLOSED_S) if relay.half_closed else self._idle_s):
                relay.end()
        self._sweeper = self.loop.call_later(min(_SWEEP_S, self._idle_s), self._sweep) if self._relays else None


class _Way:
    """One direction of a relay.

    Attributes:
        ended: all has passed that its source will ever send.
        passed: bytes so far.
        reading: the source is watched for more.
        waiting: the target is watched for room.
    """

    __slots__ = (
        "_full_reads",
        "_pending",
        "_pipe",
        "_pool",
        "_relay",
        "_source",
        "_target",
        "back",
        "ended",
        "passed",
        "reading",
        "waiting",
    )
    back: "_Way"
    """The other direction: its target is this one's source."""

    def __init__(self, relay: "Relay", pool: RelayPool, source: socket.socket, target: socket.socket) -> None:
        self._relay = relay
        self._pool = pool
        self._source = source
        self._target = target
        self._pending = b""
        self._pipe: Pipe | None = None
        self._full_reads = 0
        self.reading = True
        self.waiting = False
        self.ended = False
        self.passed = 0

    def begin(self, first: bytes) -> None:
        """Sends what came before."""
        if not first:
            return
        self.passed = len(first)
        try:
            sent = self._target.send(first)
        except _GONE:
            sent = 0
        if sent < len(first):
            self._wait_with(memoryview(first)[sent:])

    def watch(self) -> None:
        """Has the source watched for what is now waited for."""
        descriptor = self._source.fileno()
        if self.back.waiting:
            self._pool.poller.watch(descriptor, READ | WRITE if self.reading else WRITE, self._either)
        elif self.reading:
            self._pool.poller.watch(descriptor, READ, self._copy if self._pipe is None else self._move)
        else:  # not even for its end, which would be reported again and again
            self._pool.poller.forget(descriptor)

    def release(self) -> None:
        """Gives the pipe back."""
        if self._pipe is not None:
            self._pool.pipes.take_back(self._pipe)
            self._pipe = None

    def _either(self, events: int) -> None:
        """Something happened to a source that is also waited for to take more."""
        if events & ~(READ | ENDING):
            self.back.flush()
        if self.reading and events & ~WRITE and not self._relay.closed:
            if self._pipe is None:
                self._copy(events)
            else:
                self._move(events)

    def _copy(self, events: int) -> None:
        pool = self._pool
        relay = self._relay
        while True:
            count = -1
            try:
                count = self._source.recv_into(pool.buffer)
                if not count:
                    self._finish()
                    return
                # With the end behind it, it waits for the end: both go in one segment.
                sent = self._target.send(pool.view[:count], _MORE if events & ENDING and count < _BULK_READ else 0)
            except _GONE:
                if count < 0:
                    return
                sent = 0
            except OSError:
                relay.break_off()
                return
            self.passed += count
            relay.active_at = pool.poller.now
            if sent < count:
                self._wait_with(pool.view[sent:count])
                return
            if count >= _BULK_READ:
                break
            self._full_reads = 0
            if not events & ENDING:
                return
        self._full_reads += 1
        if self._full_reads >= _FULL_READS:
            self._full_reads = 0
            self._pipe = pool.pipes.lend()
            self.watch()

    def _wait_with(self, data: memoryview) -> None:
        self._pending = bytes(data)
        self._wait_for_target()

    def _move(self, events: int) -> None:  # noqa: ARG002  the read shows what happened
        pipe = self._pipe
        assert pipe is not None
        try:
            count = os.splice(self._source.fileno(), pipe.writing, pipe.size, flags=_NONBLOCK)
            if not count:
                self.release()
                self._finish()
                return
            self.passed += count
            pipe.filled = count
            self._relay.active_at = self._pool.poller.now
            if not self._empty(pipe):
                self._wait_for_target()
            elif count < _BUFFER_BYTES // 8:  # no bulk any more: the next bytes are few, and another relay may use the pipe
                self.release()
                self.watch()
        except _GONE:
            return
        except OSError:
            self._relay.break_off()

    def _empty(self, pipe: Pipe) -> bool:
        try:
            while pipe.filled:
                pipe.filled -= os.splice(pipe.reading, self._target.fileno(), pipe.filled, flags=_NONBLOCK)
        except _GONE:
            return False
        return True

    def _wait_for_target(self) -> None:
        self.reading = False
        self.waiting = True
        self.watch()
        self.back.watch()

    def flush(self) -> None:
        """Sends on what the target had no room for; then the source is read again."""
        try:
            if self._pipe is not None:
                if not self._empty(self._pipe):
                    return
            else:
                sent = self._target.send(self._pending)
                self._pending = self._pending[sent:]
                if self._pending:
                    return
        except _GONE:
            return
        except OSError:
            self._relay.break_off()
            return
        self._relay.active_at = self._pool.poller.now
        self.reading = True
        self.waiting = False
        self.watch()
        self.back.watch()

    def _finish(self) -> None:
        """Hands the end of what one side sends on to the other."""
        self.ended = True
        self.reading = False
        if self.back.ended:  # closing both has the same effect
            self._relay.end()
            return
        self._target.shutdown(socket.SHUT_WR)
        self._relay.active_at = self._pool.poller.now
        self.watch()


class Relay:
    """Two sockets that are connected through us.

    Attributes:
        active_at: the loop's time at the last byte.
        closed: both are closed.
        holds: whether it may go on, `None` for always.
    """

    __slots__ = ("_client", "_down", "_on_end", "_origin", "_passed", "_pool", "_reported", "_up", "active_at", "closed", "holds")

    def __init__(
        self,
        pool: RelayPool,
        client: socket.socket,
        origin: socket.socket,
        on_end: Callable[[], None] | None,
        holds: Callable[[], bool] | None = None,
        passed: Callable[[], None] | None = None,
    ) -> None:
        self._pool = pool
        self._client = client
        self._origin = origin
        self._on_end = on_end
        self._up = _Way(self, pool, client, origin)
        self._down = _Way(self, pool, origin, client)
        self._up.back, self._down.back = self._down, self._up
        self._reported = 0
        self._passed = passed
        self.holds = holds
        self.active_at = pool.loop.time()
        self.closed = False

    @property
    def half_closed(self) -> bool:
        """Whether one side has sent all that it will send."""
        return self._up.ended or self._down.ended

    def begin(self, to_origin: bytes, to_client: bytes) -> None:
        """Starts both ways."""
        try:
            self._up.watch()
            self._down.watch()
            self._up.begin(to_origin)
            self._down.begin(to_client)
        except OSError:
            self.break_off()

    def break_off(self) -> None:
        """Ends both ways at once, so that each side sees what happened to the other: a reset, no orderly end."""
        for side in (self._client, self._origin):
            try:
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            except OSError:
                continue
        self.end()

    def report(self) -> None:
        """Counts what has passed since the last report."""
        passed = self._up.passed + self._down.passed
        if passed > self._reported and self._passed is not None:
            self._passed()
        self._pool.count(passed - self._reported)
        self._reported = passed

    def end(self) -> None:
        """Closes both sockets. Idempotent."""
        if self.closed:
            return
        self.closed = True
        self._pool.poller.drop(self._client)
        self._pool.poller.drop(self._origin)
        self._up.release()
        self._down.release()
        self.report()
        self._pool.ended(self)
        if self._on_end is not None:
            self._on_end()
