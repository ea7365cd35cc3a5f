"""Proxy authentication (RFC 9110 §11.7): the addon that requires a user name and a password per tunnel or request."""

from collections.abc import Callable, Coroutine
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from mitmproxy import http
from mitmproxy.connection import Client, ConnectionState

from gatewayfilter.model import Action, Reason, Verdict
from gatewayfilter.proxy.auth.password_check_queue import LoginTurns, Outcome
from gatewayfilter.proxy.auth.user_file import Users
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters

_HEADER: Final = "proxy-authorization"
_HTTPS_PORT: Final = 443
_REFUSED: Final = Verdict(Action.BLOCK, Reason.LOGIN_REFUSED)


class _Answer(NamedTuple):
    status: int
    text: bytes
    header: str
    value: str


_ASKED: Final = _Answer(
    407,
    b"This proxy asks for a user name and a password.\n",
    "Proxy-Authenticate",
    'Basic realm="GatewayFilter", charset="UTF-8"',
)
_PUT_OFF: Final = _Answer(
    429, b"Too many log-ins of this client are waiting to be looked at. Try again in a moment.\n", "Retry-After", "10"
)


class ProxyLogin:
    """Lets only those in who have a user name and a password.

    Args:
        users: who may use the proxy.
        counters: `logins_refused`, `logins_throttled`.
        respond: sends the response of a flow before the request's body has arrived.
        logged_in: id of a client's connection → the user that it logged in as last; kept by this addon for others.
        loopback: whether clients on this machine have to log in as well.
        free: returns whether a request or tunnel is for a page of the filter itself, such as the PAC file: browsers fetch that
            before they are configured to use the proxy.
        recorder: takes refused log-ins for the log; `None` when nothing is logged.
    """

    name = "proxylogin"

    def __init__(
        self,
        users: Users,
        counters: Counters,
        respond: Callable[[http.HTTPFlow], None],
        logged_in: dict[str, str],
        *,
        loopback: bool,
        free: Callable[[http.HTTPFlow], bool],
        recorder: DecisionRecorder | None = None,
    ) -> None:
        self._users = users
        self._counters = counters
        self._respond = respond
        self._logged_in = logged_in
        self._loopback = loopback
        self._free = free
        self._recorder = recorder
        self._inside: set[str] = set()
        self._turns = LoginTurns()

    def admits(self, authorization: str, address: str) -> bool:
        """Returns whether a client may pass without a password check; `False` may still become an accepted log-in."""
        return bool(self._users.recall(authorization)) or (not self._loopback and _is_loopback(address))

    def user_of(self, authorization: str) -> str:
        """Returns the user of a header that was right before, `""` for none."""
        return self._users.recall(authorization)

    def http_connect(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """Requires a log-in before a tunnel is opened, unless it leads to the filter's own pages.

        A device that is being set up has none yet. What is requested in such a tunnel is looked at request by request.
        """
        if flow.request.port == _HTTPS_PORT and self._free(flow):
            flow.request.headers.pop(_HEADER, None)
            return None
        return self._require_login(flow, tunnel=True)

    def requestheaders(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """Requires a log-in for each request outside a tunnel, and removes the password from what is forwarded."""
        if flow.client_conn.id in self._inside or flow.response is not None:
            return None
        if self._free(flow):
            flow.request.headers.pop(_HEADER, None)
            return None
        return self._require_login(flow, tunnel=False)

    def client_disconnected(self, client: Client) -> None:
        """Forgets a tunnel."""
        self._inside.discard(client.id)
        self._logged_in.pop(client.id, None)

    def _require_login(self, flow: http.HTTPFlow, *, tunnel: bool) -> Coroutine[Any, Any, None] | None:
        header = str(flow.request.headers.pop(_HEADER, ""))
        address = flow.client_conn.peername[0] if flow.client_conn.peername else ""
        if self.admits(header, address):
            self._logged_in[flow.client_conn.id] = self._users.recall(header)
            if tunnel:
                self._inside.add(flow.client_conn.id)
            return None
        if header:
            return self._verify(flow, header, address, tunnel=tunnel)
        self._answer(flow, _ASKED)
        return None

    async def _verify(self, flow: http.HTTPFlow, header: str, address: str, *, tunnel: bool) -> None:
        users = self._users

        def verify() -> bool:
            return bool(users.recall(header) or users.verify(header))  # its first one may have been right meanwhile

        outcome = await self._turns.attempt(address, users.digest(header), verify)
        if flow.client_conn.state is ConnectionState.CLOSED:  # meanwhile: nothing would forget it later
            return
        if outcome is Outcome.RIGHT:
            self._logged_in[flow.client_conn.id] = users.recall(header)
            if tunnel:
                self._inside.add(flow.client_conn.id)
            return
        put_off = outcome is Outcome.TOO_MANY
        if not put_off and self._recorder is not None:
            self._recorder.record_unreadable(address, flow.request.method, _REFUSED, users.named(header))
        self._counters.add("logins_throttled" if put_off else "logins_refused")
        self._answer(flow, _PUT_OFF if put_off else _ASKED)

    def _answer(self, flow: http.HTTPFlow, answer: _Answer) -> None:
        flow.response = http.Response.make(
            answer.status,
            answer.text,
            {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", answer.header: answer.value},
        )
        if flow.request.method != "CONNECT":
            self._respond(flow)


@lru_cache(maxsize=1024)
def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
