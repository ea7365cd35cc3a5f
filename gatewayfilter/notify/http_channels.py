"""Channels over HTTP: a webhook that gets signed JSON, and a topic of ntfy.

Redirections are not followed and proxies of the environment not used: what is sent is private.
"""

import hmac
import json
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from gatewayfilter.errors import NotifyError
from gatewayfilter.notify.deadline import Deadline
from gatewayfilter.notify.message import Message

_LONGEST_NTFY: Final = 3_900
"""Bytes; ntfy makes an attachment of a longer text."""


class WebhookChannel:
    """Sends messages to a web address as JSON.

    The field `X-GatewayFilter-Signature` is `sha256=` with the HMAC-SHA256 of the field `X-GatewayFilter-Timestamp` (Unix
    seconds), a dot and the body. `X-GatewayFilter-Delivery` is the same at every try of a message.

    Args:
        url: the address.
        secret: key of the signature, `""` for none.
        timeout_s: limit for sending a message.
        clock: Unix seconds.
    """

    name = "webhook"

    def __init__(self, url: str, secret: str, timeout_s: float, clock: Callable[[], float] = time.time) -> None:
        self._url = url
        self._secret = secret.encode()
        self._timeout_s = timeout_s
        self._clock = clock

    def send(self, message: Message) -> None:
        """Sends a message.

        Raises:
            NotifyError: it was not accepted.
        """
        facts = {"id": message.number, "event": message.event, "title": message.title, "text": message.text}
        body = json.dumps({**facts, "link": message.link, "events": list(message.events)}, ensure_ascii=True).encode()
        now = str(int(self._clock()))
        headers = {
            "content-type": "application/json",
            "x-gatewayfilter-delivery": str(message.number),
            "x-gatewayfilter-timestamp": now,
        }
        if self._secret:
            signature = hmac.new(self._secret, f"{now}.".encode() + body, "sha256").hexdigest()
            headers["x-gatewayfilter-signature"] = f"sha256={signature}"
        _post(self._url, body, headers, self._timeout_s)


class NtfyChannel:
    """Sends messages to a topic of ntfy (https://docs.ntfy.sh/publish/).

    Args:
        url: the topic.
        token: access token, `""` for none.
        timeout_s: limit for sending a message.
    """

    name = "ntfy"

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        self._url = url
        self._token = token
        self._timeout_s = timeout_s

    def send(self, message: Message) -> None:
        """Sends a message.

        Raises:
            NotifyError: it was not accepted.
        """
        headers = {"title": _encoded_word(message.title), "tags": "shield"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if message.link:
            headers["click"] = message.link
        _post(self._url, message.text.encode()[:_LONGEST_NTFY].decode(errors="ignore").encode(), headers, self._timeout_s)


def _encoded_word(text: str) -> str:
    """Returns a text as a header field can hold it (RFC 2047), as ntfy reads it."""
    return text if text.isascii() else f"=?utf-8?B?{b64encode(text.encode()).decode()}?="


def _post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> None:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.hostname or ""
    with Deadline(timeout_s) as deadline:
        connection = (
            HTTPSConnection(host, parts.port, timeout=timeout_s, context=ssl.create_default_context())
            if parts.scheme == "https"
            else HTTPConnection(host, parts.port, timeout=timeout_s)
        )
        try:
            connection.connect()
            deadline.watch(connection.sock)
            connection.request("POST", target, body, {"user-agent": "GatewayFilter", **headers})
            status = connection.getresponse().status
        except (OSError, HTTPException, ValueError, UnicodeError) as error:
            why = "no answer in time" if deadline.passed or isinstance(error, TimeoutError) else _reason(error)
            raise NotifyError(f"{host} did not take the message: {why}") from error
        finally:
            connection.close()
    if deadline.passed:
        raise NotifyError(f"{host} did not take the message: no answer in time")
    if not 200 <= status < 300:
        raise NotifyError(f"{host} did not take the message: HTTP {status}")


def _reason(error: Exception) -> str:
    """Returns why it failed, without what an exception quotes of the address or the fields."""
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else type(error).__name__
