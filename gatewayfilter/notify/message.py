"""Messages to the operator, composed of one notification or of several.

What users wrote stands in them: it is made one line without control characters, and cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from gatewayfilter.interfaces import Notification

MOST_SHOWN: Final = 20
"""Notifications that the text of a message describes; the rest is a number."""
_LONGEST: Final = 400
_LONGEST_TITLE: Final = 120


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        number: of its newest notification; the same at every try.
        event: of its notifications, `digest` for several.
        title: one line.
        text: lines.
        link: address of what it is about, `""` for none.
        events: its notifications as JSON values.
    """

    number: int
    event: str
    title: str
    text: str
    link: str
    events: Sequence[Mapping[str, Any]]


def compose(notifications: Sequence[Notification], base_url: str = "") -> Message:
    """Returns the message of some notifications (at least one), the oldest first.

    Args:
        notifications: the notifications.
        base_url: address of the dashboard, `""` for none.
    """
    last = notifications[-1]
    parts = [_part(found) for found in notifications[:MOST_SHOWN]]
    text = "\n\n".join("\n".join(lines) for _, lines in parts)
    link = f"{base_url.rstrip('/')}/requests" if base_url and any(one.event == "request" for one in notifications) else ""
    if len(notifications) > MOST_SHOWN:
        text += f"\n\nand {len(notifications) - MOST_SHOWN} more: gatewayfilter request list"
    if link:
        text += f"\n\n{link}"
    title = parts[0][0] if len(notifications) == 1 else f"{len(notifications)} messages: {parts[0][0]}, …"
    return Message(
        last.number,
        last.event if len(notifications) == 1 else "digest",
        f"GatewayFilter: {title}"[:_LONGEST_TITLE],
        text,
        link,
        [_as_json(found) for found in notifications],
    )


def one_line(text: object, most: int = _LONGEST) -> str:
    """Returns a text in one line, without control characters and marks of direction, cut to this number of characters."""
    plain = "".join(mark for mark in " ".join(str(text).split()) if mark.isprintable())
    return plain if len(plain) <= most else f"{plain[:most]}…"


def _part(found: Notification) -> tuple[str, list[str]]:
    facts = found.facts
    if found.event == "request":
        return _request(facts)
    if found.event == "source":
        name = one_line(facts.get("source", ""), 100)
        lines = [f"The list {name} could not be updated for {facts.get('days', '?')} days: {one_line(facts.get('error', ''))}"]
        return f"the list {name} is out of date", [
            *lines,
            f"Its last good copy is in use. See: gatewayfilter source status {name}",
        ]
    if found.event == "device":
        mac, address = one_line(facts.get("mac", ""), 40), one_line(facts.get("address", ""), 60)
        add = f"gatewayfilter client add NAME --address {mac}"
        return f"new device {address}", [f"A device that is no client is on the network: {address}, {mac}", f"To name it: {add}"]
    return "test", ["This is a test. Messages arrive."]


def _request(facts: Mapping[str, Any]) -> tuple[str, list[str]]:
    number = int(facts.get("request", 0))
    url = one_line(facts.get("url", ""))
    who = one_line(facts.get("client_name") or facts.get("client", ""), 100)
    why = ", ".join(one_line(facts[name], 100) for name in ("reason", "category", "source_list") if facts.get(name))
    lines = [f"{who} asks to unblock {url}", f"Blocked by: {why}"]
    if facts.get("comment"):
        lines.append(f"Note: {one_line(facts['comment'])}")
    return f"{who} asks for {_host(url)}", [
        *lines,
        f"To approve: {_approve(number)}",
        f"To deny: gatewayfilter request deny {number}",
    ]


def _approve(number: int) -> str:
    return f"gatewayfilter request approve {number} --for 1h"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url[:60]
    except ValueError:
        return url[:60]


def _as_json(found: Notification) -> dict[str, Any]:
    facts: dict[str, Any] = {"number": found.number, "event": found.event, "at": found.at, **found.facts}
    if found.event == "request":
        facts["approve"] = _approve(int(found.facts.get("request", 0)))
    return facts
