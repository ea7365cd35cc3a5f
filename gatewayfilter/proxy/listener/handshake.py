"""The handshake of a client's connection: from its first byte until it is relayed, handed to mitmproxy or refused.

In regular and upstream mode a CONNECT names the host, and the ClientHello inside has to agree; in transparent mode the
ClientHello names it. What is neither passed through nor refused goes to mitmproxy with all that was read.
"""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, Verdict
from gatewayfilter.proxy.listener.client_hello import ClientHello, NotTls, read_client_hello
from gatewayfilter.proxy.listener.connect_request import ConnectRequest, read_connect
from gatewayfilter.proxy.listener.connection_policy import INTERCEPT, ConnectionPolicy, StillSpliced
from gatewayfilter.proxy.listener.original_destination import original_destination
from gatewayfilter.proxy.listener.protocol_detection import MOST_BLANK_BYTES, Protocol, count_line_ends, detect
from gatewayfilter.proxy.listener.refusals import BUSY, OVERLOADED, UNRECOGNIZED_NAME, denied, unreachable
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.tunnel.client_turns import Owner
from gatewayfilter.proxy.tunnel.dialer import Dial, Dialer, Done, Way
from gatewayfilter.proxy.tunnel.poller import GONE, READ, Poller
from gatewayfilter.proxy.tunnel.reach_guard import INTERNAL, InternalAddressError
from gatewayfilter.proxy.tunnel.relay import RelayPool
from gatewayfilter.proxy.tunnel.timeouts import Deadlines

_CHUNK: Final = 65_536
_MOST_HEAD_BYTES: Final = 65_536
"""A longer CONNECT is mitmproxy's to refuse."""
_CONNECT: Final = b"CONNECT "
_ELSEWHERE: Final = HostVerdict(
    HostAction.DENY, Verdict(Action.BLOCK, Reason.SAFESEARCH, detail="the server name is not that of the tunnel"), named=True
)
ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
SILENT_S: Final = 3.0
"""How long a tunnel may stay without a byte of the client's: where the server sends first, it is no TLS."""
HELLO_S: Final = 20.0
"""How long a client may take to send a ClientHello that it has begun."""


@dataclass(frozen=True, slots=True)
class HandshakeServices:
    """What the handshakes of one listener share.

    Attributes:
        policy: decides connections.
        relays: takes connections that pass through; its buffer is read into.
        poller: watches the sockets of clients.
        dialer: connects to origins.
        undecided: the connections in their handshake; each takes itself out when its fate is known.
        silent: tunnels whose client has sent nothing yet; `in_hello` those whose ClientHello has begun.
        transparent: connections were redirected here, and name no host but in the ClientHello.
        can_splice: whether connections can be relayed at all.
        user_of: returns the proxy user of a Proxy-Authorization header that was right before, `""` for none.
        admits: whether a client may be relayed, by its Proxy-Authorization header (`""` without) and address.
        pages: the answers to tunnels whose origin cannot be reached.
        hand_over: gives a connection to mitmproxy, with what was read of it.
        closed: called with the client's address when a connection that mitmproxy did not get is closed.
    """

    policy: ConnectionPolicy
    relays: RelayPool
    poller: Poller
    dialer: Dialer
    undecided: "set[ClientHandshake]"
    silent: "Deadlines[ClientHandshake]"
    in_hello: "Deadlines[ClientHandshake]"
    transparent: bool
    can_splice: bool
    user_of: Callable[[str], str]
    admits: Callable[[str, str], bool]
    pages: BlockPages
    hand_over: "Callable[[ClientHandshake], None]"
    closed: Callable[[str], None]


class _Tunnel:
    """An open connection to the origin after the CONNECT was answered; the ClientHello decides how it is handled."""

    __slots__ = ("found", "head_bytes", "hello_begun", "request", "started", "way")

    def __init__(self, request: ConnectRequest, head_bytes: int, found: HostVerdict, started: int, way: Way) -> None:
        self.request = request
        self.head_bytes = head_bytes
        self.found = found
        self.started = started
        self.way = way
        self.hello_begun = False


class ClientHandshake:
    """One connection of a client in its handshake.

    Args:
        services: what all handshakes share.
        client: its socket, non-blocking.
        address: the client's address.
        owner: of its socket; `None` where it is refused because of an overload.

    Attributes:
        data: what was read, of which nothing has been used up.
        answered: its CONNECT has been answered: mitmproxy's own answer must not reach the client.
        opened: its CONNECT, where that was read to its end and mitmproxy need not read it again.
        head_bytes: of that CONNECT.
        since: when the first bytes came, in seconds of the event loop; before that, when it was accepted.
    """

    __slots__ = (
        "_dial",
        "_services",
        "_still_spliced",
        "_tunnel",
        "_user",
        "address",
        "answered",
        "client",
        "data",
        "head_bytes",
        "opened",
        "owner",
        "since",
    )

    def __init__(self, services: HandshakeServices, client: socket.socket, address: str, owner: Owner | None) -> None:
        self._services = services
        self.owner = owner
        self._dial: Dial | None = None
        self._tunnel: _Tunnel | None = None
        self._still_spliced: StillSpliced | None = None
        self._user = ""
        self.client = client
        self.address = address
        self.data = b""
        self.answered = False
        self.opened: ConnectRequest | None = None
        self.head_bytes = 0
        self.since = services.poller.now

    def begin(self) -> None:
        """Waits for the first bytes."""
        self._services.poller.watch(self.client.fileno(), READ, self._readable)

    def expired(self, now: float, idle_s: float) -> bool:
        """Returns whether its first bytes, or the rest of its head, took too long. Tunnels have limits of their own."""
        if self._tunnel is not None:
            return False
        return now - self.since >= (HELLO_S if self.data and self._dial is None else idle_s)

    def drop(self) -> None:
        """Closes the connection."""
        services = self._services
        if self._dial is not None:
            self._dial.cancel()
            self._dial = None
        if (tunnel := self._tunnel) is not None:
            self._tunnel = None
            self._lift_limits()
            tunnel.way.socket.close()
        services.poller.turns.disown(self.client.fileno(), self.owner)
        services.poller.drop(self.client)
        if self in services.undecided:
            services.undecided.discard(self)
            services.closed(self.address)

    def out_of_time(self) -> None:
        """Gives the tunnel of a client that sent no ClientHello in time to mitmproxy."""
        if self._tunnel is not None:
            self._decide_inside(self._tunnel, None)

    def _readable(self, events: int) -> None:
        if self._dial is not None:  # more, while the origin is being connected to: it stays in the socket until then
            if events & GONE:
                self.drop()
            else:
                self._services.poller.forget(self.client.fileno())
            return
        services = self._services
        try:
            count = self.client.recv_into(services.relays.buffer, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        if not count:
            self.drop()
            return
        if self.data:
            self.data += services.relays.view[:count]
        else:
            self.since = services.poller.now
            self.data = bytes(services.relays.view[:count])
        if self.owner is None:
            self._answer_and_close(BUSY if detect(self.data) is Protocol.TLS else OVERLOADED)
        elif self._tunnel is not None:
            self._read_inside(self._tunnel)
        else:
            self._detect()

    def _detect(self) -> None:
        """Waits until the protocol of the client is certain. What cannot be read is refused by next_layer.py."""
        protocol = detect(self.data)
        if protocol is Protocol.UNDECIDED:
            return
        if self._services.transparent and protocol is Protocol.TLS:
            self._read_hello()
        elif not self._services.transparent and protocol is Protocol.HTTP1:
            self._read_head()
        else:
            self._hand_over()

    def _read_head(self) -> None:
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
        if request is None or not self._services.admits(request.authorization, self.address):
            self._hand_over()
            return
        if request.verbatim:
            self.opened, self.head_bytes = request, end + 4
        started = time.perf_counter_ns()
        self._user = self._services.user_of(request.authorization)
        found = self._services.policy.judge(self.address, request.host, user=self._user)
        if found.action is HostAction.SPLICE and self._services.can_splice:
            self._begin_dial(found, request.host, request.port, partial(self._tunnel_connected, request, end + 4, found, started))
        elif found.action is HostAction.DENY and not self._shows_page(found, request.host):
            self._refuse(denied(found.verdict.reason), request.host, request.port, found, started)
        else:
            self._hand_over()

    def _read_hello(self) -> None:
        try:
            hello = read_client_hello(self.data)
            address, port = original_destination(self.client)
        except (NotTls, OSError):
            self._hand_over()
            return
        if hello is None:
            return
        started = time.perf_counter_ns()
        host = hello.name or (f"[{address}]" if ":" in address else address)
        found = self._services.policy.judge(self.address, host)
        if found.action is HostAction.SPLICE and self._services.can_splice:
            # To where the name leads, not to where the client wanted it: else any server at any address could be reached by
            # naming a host that passes through.
            self._keep_judging(found, host, port)
            done = partial(self._origin_connected, host, port, found.verdict, started)
            self._begin_dial(found, host, port, done, prefer=address)
        elif found.action is HostAction.DENY and not self._shows_page(found, host):
            self._refuse(UNRECOGNIZED_NAME, host, port, found, started)
        else:
            self._hand_over()

    def _shows_page(self, found: HostVerdict, host: str) -> bool:
        return found.shows_page and self._services.policy.shows_page(self.address, host)

    def _begin_dial(self, found: HostVerdict, host: str, port: int, done: Done, *, prefer: str = "") -> None:
        # The client stays watched: to watch it again costs two system calls, and few clients send before the answer.
        self._dial = dial = self._services.dialer.dial(found.connect_to or host, port, done, prefer, client=self.address)
        dial.begin()

    def _origin_connected(self, host: str, port: int, verdict: Verdict, started: int, found: Way | OSError) -> None:
        """Passes a redirected connection through."""
        self._dial = None
        if isinstance(found, InternalAddressError):
            self._services.policy.record(self.address, host, port, INTERNAL, started, self._user)
            self._answer_and_close(UNRECOGNIZED_NAME)
            return
        self._services.policy.record(self.address, host, port, verdict, started, self._user)
        if isinstance(found, Way):
            self._relay(found, self.data)
        else:
            self._services.relays.counters.add("origin_errors")
            self.drop()

    def _tunnel_connected(
        self, request: ConnectRequest, head_bytes: int, verdict: HostVerdict, started: int, found: Way | OSError
    ) -> None:
        """Answers the CONNECT: then the ClientHello comes, which has to agree with it."""
        self._dial = None
        if isinstance(found, OSError):
            refused = isinstance(found, InternalAddressError)
            self._services.policy.record(
                self.address, request.host, request.port, INTERNAL if refused else verdict.verdict, started, self._user
            )
            if not refused:
                self._services.relays.counters.add("origin_errors")
            self._answer_and_close(unreachable(self._services.pages, found, request))
            return
        whole = False
        with suppress(OSError):
            whole = self.client.send(ESTABLISHED) == len(ESTABLISHED)  # there is room: these are the first bytes to the client
        if not whole:
            found.socket.close()
            self.drop()
            return
        self._tunnel = tunnel = _Tunnel(request, head_bytes, verdict, started, found)
        self._services.silent.add(self)
        if len(self.data) > head_bytes:
            self._read_inside(tunnel)
        if self._tunnel is not None:
            self._services.poller.watch(self.client.fileno(), READ, self._readable)

    def _read_inside(self, tunnel: "_Tunnel") -> None:
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
        elif not tunnel.hello_begun:
            tunnel.hello_begun = True
            self._services.silent.remove(self)
            self._services.in_hello.add(self)

    def _decide_inside(self, tunnel: "_Tunnel", hello: ClientHello | None) -> None:
        request = tunnel.request
        try:
            found = self._judge_inside(request, tunnel.found, hello)
        except BaseException:
            self.drop()
            raise
        self._tunnel = None
        self._lift_limits()
        if found.action is HostAction.SPLICE and found.connect_to != tunnel.found.connect_to:
            tunnel.way.socket.close()  # it leads elsewhere than the server name has to
            self._refuse(UNRECOGNIZED_NAME, request.host, request.port, _ELSEWHERE, tunnel.started)
        elif found.action is HostAction.SPLICE:
            self._services.policy.record(self.address, request.host, request.port, found.verdict, tunnel.started, self._user)
            self._keep_judging(found, request.host, request.port, hello.name if hello is not None else "")
            self._relay(tunnel.way, self.data[tunnel.head_bytes :])
        else:
            tunnel.way.socket.close()
            self.answered = True
            self._hand_over()

    def _judge_inside(self, request: ConnectRequest, found: HostVerdict, hello: ClientHello | None) -> HostVerdict:
        if hello is None:
            return INTERCEPT
        if hello.name in {"", request.host}:
            return found
        return self._services.policy.judge(self.address, request.host, hello.name, self._user)

    def _keep_judging(self, found: HostVerdict, host: str, port: int, name: str = "") -> None:
        """Has a connection judged again while it is open: if it passes because of what its device did, or there are policies."""
        pinned = found.verdict.reason is Reason.PINNED_APP
        self._still_spliced = StillSpliced(
            self._services.policy, self.address, host, port, name, self._user, pinned, found.connect_to
        )

    def _relay(self, way: Way, to_origin: bytes) -> None:
        services = self._services
        services.undecided.discard(self)
        services.poller.turns.disown(self.client.fileno(), self.owner)  # what is relayed costs little
        services.relays.start(
            self.client,
            way.socket,
            to_origin=to_origin,
            to_client=way.first,
            on_end=partial(services.closed, self.address),
            holds=self._still_spliced,
            passed=self._still_spliced.count_use if self._still_spliced is not None else None,
        )

    def _lift_limits(self) -> None:
        self._services.silent.remove(self)
        self._services.in_hello.remove(self)

    def _refuse(self, answer: bytes, host: str, port: int, found: HostVerdict, started: int) -> None:
        self._services.policy.record(self.address, host, port, found.verdict, started, self._user)
        self._answer_and_close(answer)

    def _answer_and_close(self, answer: bytes) -> None:
        with suppress(OSError):
            self.client.send(answer)
            self.client.shutdown(socket.SHUT_WR)
        self.drop()

    def _hand_over(self) -> None:
        services = self._services
        services.poller.forget(self.client.fileno())
        services.hand_over(self)
        services.undecided.discard(self)
