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


class _Tunnel:
    """A way to the origin is open, and the client knows; what it says inside decides."""

    __slots__ = ("found", "head_bytes", "request", "speaks", "started", "timer", "way")

    def __init__(self, request: ConnectRequest, head_bytes: int, found: HostVerdict, started: int, way: Way) -> None:
        self.request = request
        self.head_bytes = head_bytes
        self.found = found
        self.started = started
        self.way = way
        self.speaks = False
        self.timer: asyncio.TimerHandle | None = None

    def give_up(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.way.socket.close()


class Arrival:
    """One connection that has come in.

    Args:
        door: where it came in.
        client: its socket, non-blocking.
        address: the client's address.
    """

    __slots__ = ("_door", "_task", "_tunnel", "address", "client", "data", "since")

    def __init__(self, door: "FrontDoor", client: socket.socket, address: str) -> None:
        self._door = door
        self._task: asyncio.Task[None] | None = None
        self._tunnel: _Tunnel | None = None
        self.client = client
        self.address = address
        self.data = bytearray()
        self.since = door.loop.time()

    def begin(self) -> None:
        """Waits for the first bytes."""
        self._door.loop.add_reader(self.client, self._readable)

    def expired(self, now: float, idle_s: float) -> bool:
        """Returns whether it has taken too long: to say anything, or to say all of it. An open tunnel has a timer of its own."""
        if self._tunnel is not None:
            return False
        return now - self.since >= (_HELLO_S if self.data and self._task is None else idle_s)

    def drop(self) -> None:
        """Closes the connection."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._tunnel is not None:
            self._tunnel.give_up()
            self._tunnel = None
        self._door.loop.remove_reader(self.client)
        self.client.close()
        self._door.left(self)

    def _readable(self) -> None:
        if self._task is not None:  # more, while the origin is being connected to: it stays in the socket until then
            self._door.loop.remove_reader(self.client)
            return
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
        if self._tunnel is not None:
            self._look_inside(self._tunnel)
        elif self._door.transparent:
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
            self._begin_task(self._open_tunnel(request, end + 4, found, started))
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

    async def _open_tunnel(self, request: ConnectRequest, head_bytes: int, found: HostVerdict, started: int) -> None:
        """Connects to the origin, and says so: then the ClientHello comes, which has to agree with the CONNECT."""
        loop = self._door.loop
        try:
            way = await self._door.dial(request.host, request.port)
        except OSError as error:
            self._door.decision.record(self.address, request.host, request.port, found.verdict, started)
            self._door.counters.add("origin_errors")
            self._say_and_close(_error_answer(error, request))
            return
        try:
            await self._say(_ESTABLISHED)
        except BaseException:
            way.socket.close()
            if self._task is not None:
                self._finish_task()
                self.drop()
            raise
        self._finish_task()
        self._tunnel = tunnel = _Tunnel(request, head_bytes, found, started, way)
        if len(self.data) > head_bytes:
            self._look_inside(tunnel)
        else:
            tunnel.timer = loop.call_later(_SILENT_S, self._decide_inside, tunnel, None)
        if self._tunnel is not None:
            loop.add_reader(self.client, self._readable)

    async def _say(self, text: bytes) -> None:
        """Sends a few bytes to the client, which nearly always has room for them."""
        try:
            sent = self.client.send(text)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent < len(text):
            await self._door.loop.sock_sendall(self.client, text[sent:])

    def _look_inside(self, tunnel: "_Tunnel") -> None:
        """Decides as soon as the ClientHello is whole, or it is clear that there is none."""
        try:
            hello = read_client_hello(self.data[tunnel.head_bytes :])
        except NotTls:
            self._decide_inside(tunnel, None)
            return
        if hello is not None:
            self._decide_inside(tunnel, hello)
        elif not tunnel.speaks:
            tunnel.speaks = True
            if tunnel.timer is not None:
                tunnel.timer.cancel()
            tunnel.timer = self._door.loop.call_later(_HELLO_S, self._decide_inside, tunnel, None)

    def _decide_inside(self, tunnel: "_Tunnel", hello: ClientHello | None) -> None:
        request = tunnel.request
        try:
            found = self._judge_inside(request, tunnel.found, hello)
        except BaseException:
            self.drop()
            raise
        self._tunnel = None
        if found.action is HostAction.SPLICE:
            if tunnel.timer is not None:
                tunnel.timer.cancel()
            self._door.decision.record(self.address, request.host, request.port, found.verdict, tunnel.started)
            self._relay(tunnel.way, bytes(self.data[tunnel.head_bytes :]))
        else:
            tunnel.give_up()
            self._hand_over(answered=True)

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
        # The socket stays with the loop: to watch it again costs two system calls, and nearly nobody speaks before the answer.
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
