"""A connection from its first byte until it is clear whose it is: the relay's, mitmproxy's, or nobody's.

In regular and upstream mode a CONNECT names the host, and the ClientHello inside has to agree; in transparent mode the
ClientHello names it. What is neither passed through nor refused goes to mitmproxy with all that was read, as if unseen.
"""

import asyncio
import socket
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from mitmproxy import platform

from gatewayfilter.model import HostAction, HostVerdict
from gatewayfilter.proxy.client_hello import ClientHello, NotTls, read_client_hello
from gatewayfilter.proxy.connect_request import ConnectRequest, read_connect
from gatewayfilter.proxy.dialer import Way
from gatewayfilter.proxy.faults import read_fault
from gatewayfilter.proxy.responses import error_response

if TYPE_CHECKING:
    from gatewayfilter.proxy.front_door import FrontDoor

_CHUNK: Final = 65_536
_MOST_HEAD_BYTES: Final = 65_536
"""A longer CONNECT is mitmproxy's to refuse."""
_CONNECT: Final = b"CONNECT "
_HANDSHAKE: Final = 22
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_DENIED: Final = (
    b"HTTP/1.1 403 Forbidden\r\nX-GatewayFilter: block; reason=%b\r\nContent-Length: 0\r\nCache-Control: no-store\r\n"
    b"Connection: close\r\n\r\n"
)
_UNRECOGNIZED_NAME: Final = bytes.fromhex("15 03 03 00 02 02 70")
"""A fatal TLS alert (RFC 6066 §3): the client ends at once, and shows no certificate warning."""
_SILENT_S: Final = 3.0
"""How long a tunnel may stay without a byte of the client's: where the server speaks first, it is no TLS."""
_HELLO_S: Final = 20.0


class Arrival:
    """One connection that has come in.

    Args:
        door: where it came in.
        client: its socket, non-blocking.
        address: the client's address.
    """

    __slots__ = ("_door", "_task", "address", "client", "data", "since")

    def __init__(self, door: "FrontDoor", client: socket.socket, address: str) -> None:
        self._door = door
        self._task: asyncio.Task[None] | None = None
        self.client = client
        self.address = address
        self.data = bytearray()
        self.since = door.loop.time()

    def begin(self) -> None:
        """Waits for the first bytes."""
        self._door.loop.add_reader(self.client, self._readable)

    def expired(self, now: float, idle_s: float) -> bool:
        """Returns whether it has taken too long: to say anything, or to say all of it."""
        return now - self.since >= (_HELLO_S if self.data and self._task is None else idle_s)

    def drop(self) -> None:
        """Closes the connection."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._door.loop.remove_reader(self.client)
        self.client.close()
        self._door.left(self)

    def _readable(self) -> None:
        try:
            chunk = self.client.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.drop()
            return
        if not self.data:
            self.since = self._door.loop.time()
        self.data += chunk
        if self._door.transparent:
            self._look_at_hello()
        else:
            self._look_at_head()

    def _look_at_head(self) -> None:
        data = self.data
        if not data.startswith(_CONNECT[: len(data)]) or len(data) > _MOST_HEAD_BYTES:
            self._hand_over()
            return
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        request = read_connect(bytes(data[: end + 4]))
        if request is None or not self._door.admits(request.authorization, self.address):
            self._hand_over()
            return
        started = time.perf_counter_ns()
        found = self._door.decision.judge(self.address, request.host)
        if found.action is HostAction.SPLICE and self._door.can_splice:
            self._begin_task(self._tunnel(request, end + 4, found, started))
        elif found.action is HostAction.DENY and not self._door.decision.shows_page(self.address, request.host):
            self._refuse(_DENIED % found.verdict.reason.value.encode(), request.host, request.port, found, started)
        else:
            self._hand_over()

    def _look_at_hello(self) -> None:
        if self.data[0] != _HANDSHAKE:
            self._hand_over()
            return
        try:
            hello = read_client_hello(self.data)
            address, port = _original_destination(self.client)
        except (NotTls, OSError):
            self._hand_over()
            return
        if hello is None:
            return
        started = time.perf_counter_ns()
        literal = f"[{address}]" if ":" in address else address
        host = hello.name or literal
        found = self._door.decision.judge(self.address, host)
        if found.action is HostAction.SPLICE and self._door.can_splice:
            self._begin_task(self._redirected(host, port, address, found, started))
        elif found.action is HostAction.DENY and not self._door.decision.shows_page(self.address, host):
            self._refuse(_UNRECOGNIZED_NAME, host, port, found, started)
        else:
            self._hand_over()

    async def _redirected(self, host: str, port: int, address: str, found: HostVerdict, started: int) -> None:
        """Passes a connection through that the gateway redirected.

        It goes to where the name leads, not to where the client wanted it: else any server at any address could be reached by
        naming a host that passes through.
        """
        self._door.decision.record(self.address, host, port, found.verdict, started)
        try:
            way = await self._door.dial(host, port, prefer=address)
        except OSError:
            self._door.counters.add("origin_errors")
            self._finish_task()
            self.drop()
            return
        self._relay(way, bytes(self.data))

    async def _tunnel(self, request: ConnectRequest, head_bytes: int, found: HostVerdict, started: int) -> None:
        """Passes a tunnel through whose ClientHello agrees with its CONNECT."""
        loop = self._door.loop
        try:
            way = await self._door.dial(request.host, request.port)
        except OSError as error:
            self._door.decision.record(self.address, request.host, request.port, found.verdict, started)
            self._door.counters.add("origin_errors")
            self._say_and_close(_error_answer(error, request))
            return
        try:
            await loop.sock_sendall(self.client, _ESTABLISHED)
            inside, hello = await self._read_inside(head_bytes)
            found = self._judge_inside(request, found, hello)
        except BaseException:
            way.socket.close()
            if self._task is not None:
                self._finish_task()
                self.drop()
            raise
        if found.action is HostAction.SPLICE:
            self._door.decision.record(self.address, request.host, request.port, found.verdict, started)
            self._relay(way, inside)
            return
        way.socket.close()
        self._hand_over(answered=True)

    async def _read_inside(self, head_bytes: int) -> tuple[bytes, ClientHello | None]:
        """Returns what the client sends in its tunnel until its ClientHello is whole, or it is clear that it sends none."""
        loop = self._door.loop
        try:
            async with asyncio.timeout(_HELLO_S) as limit:
                if len(self.data) == head_bytes:
                    limit.reschedule(loop.time() + _SILENT_S)
                while True:
                    inside = bytes(self.data[head_bytes:])
                    if inside and (hello := read_client_hello(inside)) is not None:
                        return inside, hello
                    chunk = await loop.sock_recv(self.client, _CHUNK)
                    if not chunk:
                        raise ConnectionResetError("the client left")
                    if not inside:
                        limit.reschedule(loop.time() + _HELLO_S)
                    self.data += chunk
        except (TimeoutError, NotTls):
            return bytes(self.data[head_bytes:]), None

    def _judge_inside(self, request: ConnectRequest, found: HostVerdict, hello: ClientHello | None) -> HostVerdict:
        if hello is None:
            return self._door.look
        if hello.name in {"", request.host}:
            return found
        return self._door.decision.judge(self.address, request.host, hello.name)

    def _relay(self, way: Way, to_origin: bytes) -> None:
        self._finish_task()
        self._door.relays.start(
            self.client, way.socket, to_origin=to_origin, to_client=way.first, on_end=lambda: self._door.ended(self.address)
        )
        self._door.left(self, ended=False)

    def _refuse(self, answer: bytes, host: str, port: int, found: HostVerdict, started: int) -> None:
        self._door.decision.record(self.address, host, port, found.verdict, started)
        self._say_and_close(answer)

    def _say_and_close(self, answer: bytes) -> None:
        self._finish_task()
        try:
            self.client.send(answer)
            self.client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.drop()

    def _hand_over(self, *, answered: bool = False) -> None:
        self._finish_task()
        self._door.loop.remove_reader(self.client)
        self._door.hand_over(self, answered=answered)
        self._door.left(self, ended=False)

    def _begin_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._door.loop.remove_reader(self.client)
        task = asyncio.Task(work, loop=self._door.loop, eager_start=False)
        self._task = task
        task.add_done_callback(_reap)

    def _finish_task(self) -> None:
        self._task = None


def _original_destination(client: socket.socket) -> tuple[str, int]:
    if platform.original_addr is None:
        raise OSError("this system does not say where a redirected connection was to go")
    address, port = platform.original_addr(client)
    return str(address), int(port)


def _reap(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, OSError):
        task.get_loop().call_exception_handler({"message": "a connection that passes through failed", "exception": error})


def _error_answer(error: OSError, request: ConnectRequest) -> bytes:
    response = error_response(
        read_fault(502, str(error)), str(error), url=f"https://{request.host}/", accept_language=request.accept_language
    )
    body = response.raw_content or b""
    fields = b"".join(b"%b: %b\r\n" % field for field in response.headers.fields if field[0].lower() != b"content-length")
    status = b"HTTP/1.1 %d %b\r\n" % (response.status_code, response.data.reason)
    return status + fields + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
