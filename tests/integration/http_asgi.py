"""A client of an ASGI application, without a socket."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


async def ask(
    application: Asgi, method: str, path: str, *, query: str = "", body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and content: JSON where it is."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    fields = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": fields}
    await application(scope, receive, send)
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    content = sent[1]["body"]
    return sent[0]["status"], answered, json.loads(content) if "json" in answered.get("content-type", "") else content
