"""A connection from its first byte until it is clear whose it is: the relay's, mitmproxy's, or nobody's.

In regular and upstream mode a CONNECT names the host, and the ClientHello inside has to agree; in transparent mode the
ClientHello names it. What is neither passed through nor refused goes to mitmproxy with all that was read, as if unseen.
"""

import socket
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from mitmproxy import platform

from gatewayfilter.model import HostAction, HostVerdict, Reason, Verdict
from gatewayfilter.proxy.listener.client_hello import ClientHello, NotTls, read_client_hello
from gatewayfilter.proxy.listener.connect_request import ConnectRequest, read_connect
from gatewayfilter.proxy.listener.protocol_detection import MOST_BLANK_BYTES, Protocol, count_line_ends, detect
from gatewayfilter.proxy.pages.block_page import error_response
from gatewayfilter.proxy.pages.upstream_errors import read_fault
from gatewayfilter.proxy.tunnel.dialer import Dial, Done, Way
from gatewayfilter.proxy.tunnel.poller import GONE, READ
from gatewayfilter.proxy.tunnel.reach_guard import INTERNAL, InternalAddressError

if TYPE_CHECKING:
    from gatewayfilter.proxy.listener.listener import Listener

_CHUNK: Final = 65_536
_MOST_HEAD_BYTES: Final = 65_536
"""A longer CONNECT is mitmproxy's to refuse."""
_CONNECT: Final = b"CONNECT "
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_DENIED: Final = (
    b"HTTP/1.1 403 Forbidden\r\nX-GatewayFilter: block; reason=%b\r\nContent-Length: 0\r\nCache-Control: no-store\r\n"
    b"Connection: close\r\n\r\n"
)
_UNRECOGNIZED_NAME: Final = bytes.fromhex("15 03 03 00 02 02 70")
"""A fatal TLS alert (RFC 6066 §3): the client ends at once, and shows no certificate warning."""
SILENT_S: Final = 3.0
"""How long a tunnel may stay without a byte of the client's: where the server speaks first, it is no TLS."""
HELLO_S: Final = 20.0
"""How long a client may take to say a ClientHello that it has begun."""


class _Tunnel:
    """A way to the origin is open, and the client knows; what it says inside decides."""

    __slots__ = ("found", "head_bytes", "request", "speaks", "started", "way")

    def __init__(self, request: ConnectRequest, head_bytes: int, found: HostVerdict, started: int, way: Way) -> None:
        self.request = request
        self.head_bytes = head_bytes
        self.found = found
        self.started = started
        self.way = way
        self.speaks = False


class ClientHandshake:
    """One connection that has come in.

    Args:
        listener: where it came in.
        client: its socket, non-blocking.
        address: the client's address.
    """

    __slots__ = ("_dial", "_holds", "_listener", "_tunnel", "address", "client", "data", "since")

    def __init__(self, listener: "Listener", client: socket.socket, address: str) -> None:
        self._listener = listener
        self._dial: Dial | None = None
        self._tunnel: _Tunnel | None = None
        self._holds: Callable[[], bool] | None = None
        self.client = client
        self.address = address
        self.data = b""
        self.since = listener.poller.now

    def begin(self) -> None:
        """Waits for the first bytes."""
        self._listener.poller.watch(self.client.fileno(), READ, self._readable)

    def expired(self, now: float, idle_s: float) -> bool:
        """Returns whether it has taken too long: to say anything, or to say all of it. Tunnels have limits of their own."""
        if self._tunnel is not None:
            return False
        return now - self.since >= (HELLO_S if self.data and self._dial is None else idle_s)

    def drop(self) -> None:
        """Closes the connection."""
        listener = self._listener
        if self._dial is not None:
            self._dial.cancel()
            self._dial = None
        if (tunnel := self._tunnel) is not None:
            self._tunnel = None
            listener.forget_limits(self)
            tunnel.way.socket.close()
        listener.poller.drop(self.client)
        listener.left(self)

    def out_of_time(self) -> None:
        """Gives the tunnel of a client that says no ClientHello to mitmproxy."""
        if self._tunnel is not None:
            self._decide_inside(self._tunnel, None)

    def _readable(self, events: int) -> None:
        if self._dial is not None:  # more, while the origin is being connected to: it stays in the socket until then
            if events & GONE:
                self.drop()
            else:
                self._listener.poller.forget(self.client.fileno())
            return
        listener = self._listener
        try:
            count = self.client.recv_into(listener.relays.buffer, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        if not count:
            self.drop()
            return
        if self.data:
            self.data += listener.relays.view[:count]
        else:
            self.since = listener.poller.now
            self.data = bytes(listener.relays.view[:count])
        if self._tunnel is not None:
            self._look_inside(self._tunnel)
        else:
            self._look()

    def _look(self) -> None:
        """Waits until it is certain what the client speaks. What cannot be read is refused by next_layer.py."""
        protocol = detect(self.data)
        if protocol is Protocol.UNDECIDED:
            return
        if self._listener.transparent and protocol is Protocol.TLS:
            self._look_at_hello()
        elif not self._listener.transparent and protocol is Protocol.HTTP1:
            self._look_at_head()
        else:
            self._hand_over()

    def _look_at_head(self) -> None:
        blank = count_line_ends(self.data)
        if blank > MOST_BLANK_BYTES:
            self._hand_over()
            return
        self.data = data = self.data[blank:]
        if not data.startswith(_CONNECT[: len(data)]) or len(data) > _MOST_HEAD_BYTES:
            self._hand_over()
            return
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        request = read_connect(data[: end + 4])
        if request is None or not self._listener.admits(request.authorization, self.address):
            self._hand_over()
            return
        started = time.perf_counter_ns()
        found = self._listener.decision.judge(self.address, request.host)
        if found.action is HostAction.SPLICE and self._listener.can_splice:
            self._begin_dial(request.host, request.port, partial(self._tunnel_made, request, end + 4, found, started))
        elif found.action is HostAction.DENY and not self._listener.decision.shows_page(self.address, request.host):
            self._refuse(_DENIED % found.verdict.reason.value.encode(), request.host, request.port, found, started)
        else:
            self._hand_over()

    def _look_at_hello(self) -> None:
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
        found = self._listener.decision.judge(self.address, host)
        if found.action is HostAction.SPLICE and self._listener.can_splice:
            # To where the name leads, not to where the client wanted it: else any server at any address could be reached by
            # naming a host that passes through.
            self._note_what_holds(found, host)
            self._begin_dial(host, port, partial(self._way_made, host, port, found.verdict, started), prefer=address)
        elif found.action is HostAction.DENY and not self._listener.decision.shows_page(self.address, host):
            self._refuse(_UNRECOGNIZED_NAME, host, port, found, started)
        else:
            self._hand_over()

    def _begin_dial(self, host: str, port: int, done: Done, *, prefer: str = "") -> None:
        # The client stays watched: to watch it again costs two system calls, and nearly nobody speaks before the answer.
        self._dial = dial = self._listener.dialer.dial(host, port, done, prefer, client=self.address)
        dial.begin()

    def _way_made(self, host: str, port: int, verdict: Verdict, started: int, found: Way | OSError) -> None:
        """Passes a redirected connection through."""
        self._dial = None
        if isinstance(found, InternalAddressError):
            self._listener.decision.record(self.address, host, port, INTERNAL, started)
            self._say_and_close(_UNRECOGNIZED_NAME)
            return
        self._listener.decision.record(self.address, host, port, verdict, started)
        if isinstance(found, Way):
            self._relay(found, self.data)
        else:
            self._listener.counters.add("origin_errors")
            self.drop()

    def _tunnel_made(
        self, request: ConnectRequest, head_bytes: int, verdict: HostVerdict, started: int, found: Way | OSError
    ) -> None:
        """Says that the origin is connected: then the ClientHello comes, which has to agree with the CONNECT."""
        self._dial = None
        if isinstance(found, OSError):
            refused = isinstance(found, InternalAddressError)
            self._listener.decision.record(
                self.address, request.host, request.port, INTERNAL if refused else verdict.verdict, started
            )
            if not refused:
                self._listener.counters.add("origin_errors")
            self._say_and_close(_error_answer(found, request))
            return
        try:
            whole = self.client.send(_ESTABLISHED) == len(_ESTABLISHED)  # there is room: it is the first that is said
        except OSError:
            whole = False
        if not whole:
            found.socket.close()
            self.drop()
            return
        self._tunnel = tunnel = _Tunnel(request, head_bytes, verdict, started, found)
        self._listener.silent.add(self)
        if len(self.data) > head_bytes:
            self._look_inside(tunnel)
        if self._tunnel is not None:
            self._listener.poller.watch(self.client.fileno(), READ, self._readable)

    def _look_inside(self, tunnel: "_Tunnel") -> None:
        """Decides as soon as the ClientHello is whole, or it is clear that there is none."""
        inside = self.data[tunnel.head_bytes :]
        protocol = detect(inside)
        try:
            hello = read_client_hello(inside) if protocol is Protocol.TLS else None
        except NotTls:
            protocol = Protocol.NEITHER
        if protocol not in {Protocol.TLS, Protocol.UNDECIDED}:
            self._decide_inside(tunnel, None)
            return
        if hello is not None:
            self._decide_inside(tunnel, hello)
        elif not tunnel.speaks:
            tunnel.speaks = True
            self._listener.silent.remove(self)
            self._listener.speaking.add(self)

    def _decide_inside(self, tunnel: "_Tunnel", hello: ClientHello | None) -> None:
        request = tunnel.request
        try:
            found = self._judge_inside(request, tunnel.found, hello)
        except BaseException:
            self.drop()
            raise
        self._tunnel = None
        self._listener.forget_limits(self)
        if found.action is HostAction.SPLICE:
            self._listener.decision.record(self.address, request.host, request.port, found.verdict, tunnel.started)
            self._note_what_holds(found, request.host, hello.name if hello is not None else "")
            self._relay(tunnel.way, self.data[tunnel.head_bytes :])
        else:
            tunnel.way.socket.close()
            self._hand_over(answered=True)

    def _judge_inside(self, request: ConnectRequest, found: HostVerdict, hello: ClientHello | None) -> HostVerdict:
        if hello is None:
            return self._listener.look
        if hello.name in {"", request.host}:
            return found
        return self._listener.decision.judge(self.address, request.host, hello.name)

    def _note_what_holds(self, found: HostVerdict, host: str, name: str = "") -> None:
        """Has a connection that passes because of what its device did asked about again while it is open."""
        if found.verdict.reason is Reason.PINNED_APP:
            judge, address = self._listener.decision.judge, self.address
            self._holds = lambda: judge(address, host, name).action is HostAction.SPLICE

    def _relay(self, way: Way, to_origin: bytes) -> None:
        listener = self._listener
        listener.left(self, ended=False)
        listener.relays.start(
            self.client,
            way.socket,
            to_origin=to_origin,
            to_client=way.first,
            on_end=partial(listener.ended, self.address),
            holds=self._holds,
        )

    def _refuse(self, answer: bytes, host: str, port: int, found: HostVerdict, started: int) -> None:
        self._listener.decision.record(self.address, host, port, found.verdict, started)
        self._say_and_close(answer)

    def _say_and_close(self, answer: bytes) -> None:
        try:
            self.client.send(answer)
            self.client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.drop()

    def _hand_over(self, *, answered: bool = False) -> None:
        self._listener.poller.forget(self.client.fileno())
        self._listener.hand_over(self, answered=answered)
        self._listener.left(self, ended=False)


def _original_destination(client: socket.socket) -> tuple[str, int]:
    if platform.original_addr is None:
        raise OSError("this system does not say where a redirected connection was to go")
    address, port = platform.original_addr(client)
    return str(address), int(port)


def _error_answer(error: OSError, request: ConnectRequest) -> bytes:
    response = error_response(
        read_fault(502, str(error)), str(error), url=f"https://{request.host}/", accept_language=request.accept_language
    )
    body = response.raw_content or b""
    fields = b"".join(b"%b: %b\r\n" % field for field in response.headers.fields if field[0].lower() != b"content-length")
    status = b"HTTP/1.1 %d %b\r\n" % (response.status_code, response.data.reason)
    return status + fields + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
