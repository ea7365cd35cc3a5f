"""Cookies of log-ins: not readable by scripts, never sent by pages of other sites, with TLS bound to this host."""

from typing import Final

from fastapi import Request, Response

from gatewayfilter.use_cases.access.log_in import From, LogInResult
from gatewayfilter.use_cases.access.sessions import LONGEST_S
from gatewayfilter.use_cases.access.throttle import network_of

_SESSION: Final = "gatewayfilter-session"
_DEVICE: Final = "gatewayfilter-device"
_DEVICE_S: Final = 365 * 86_400
_SIGN_ON: Final = "gatewayfilter-sign-on"
_SIGN_ON_S: Final = 600
_LONGEST_AGENT: Final = 300


def session_cookie(request: Request) -> str:
    """Returns the secret of the session that a browser sends, `""` for none."""
    return request.cookies.get(_name(request, _SESSION), "")[:200]


def source_of(request: Request) -> From:
    """Returns where a log-in comes from: the address of the connection, whatever its header fields tell."""
    address = request.client.host if request.client is not None else ""
    device = request.cookies.get(_name(request, _DEVICE), "")[:200]
    return From(network_of(address), request.headers.get("user-agent", "")[:_LONGEST_AGENT], device)


def set_log_in(request: Request, response: Response, result: LogInResult) -> None:
    """Gives the browser the cookies of a log-in that is done."""
    _set(request, response, _SESSION, result.secret, int(LONGEST_S))
    _set(request, response, _DEVICE, result.device, _DEVICE_S)


def set_session(request: Request, response: Response, secret: str) -> None:
    """Gives the browser another session."""
    _set(request, response, _SESSION, secret, int(LONGEST_S))


def end_session(request: Request, response: Response) -> None:
    """Takes the session from the browser."""
    tls = _is_tls(request)
    response.delete_cookie(_name(request, _SESSION), path="/", secure=tls, httponly=True, samesite="strict")


def sign_on_cookie(request: Request) -> str:
    """Returns what a browser keeps of its log-in by single sign-on, `""` for none."""
    return request.cookies.get(_name(request, _SIGN_ON), "")[:4_000]


def set_sign_on(request: Request, response: Response, value: str) -> None:
    """Gives the browser what it keeps of a log-in by single sign-on.

    It is `SameSite=Lax`: the provider leads the browser back, and no cookie that is `Strict` comes with that request.
    """
    tls, name = _is_tls(request), _name(request, _SIGN_ON)
    response.set_cookie(name, value, max_age=_SIGN_ON_S, path="/", secure=tls, httponly=True, samesite="lax")


def end_sign_on(request: Request, response: Response) -> None:
    """Takes what `set_sign_on` gave."""
    response.delete_cookie(_name(request, _SIGN_ON), path="/", secure=_is_tls(request), httponly=True, samesite="lax")


def _set(request: Request, response: Response, name: str, value: str, max_age: int) -> None:
    tls = _is_tls(request)
    response.set_cookie(_name(request, name), value, max_age=max_age, path="/", secure=tls, httponly=True, samesite="strict")


def _name(request: Request, name: str) -> str:
    return f"__Host-{name}" if _is_tls(request) else name


def _is_tls(request: Request) -> bool:
    return bool(request.app.state.tls)
