"""A household for tests of the pages and the API of people."""

from gatewayfilter.model import (
    Client,
    Group,
    LogRecord,
    Matcher,
    MatcherKind,
    Policy,
    PolicyItem,
    Schedule,
    ScheduleEffect,
    Window,
)
from gatewayfilter.store import Store

TABLET = "Kim's tablet"
HOSTILE = "<img src=x onerror=alert(1)>\u4e2d'&;{{7*7}}"
ZONE = "UTC"
ALWAYS = (Window(0, 1440),)


def address(text: str) -> Matcher:
    return Matcher(MatcherKind.ADDRESS, text)


def household(store: Store, now: float = 0.0) -> None:
    """Stores two groups, three clients, two policies and a schedule."""
    items: list[PolicyItem] = [
        Policy("kids", services={"tiktok": True, "roblox": True}, requests={"safesearch": "on"}),
        Policy("night"),
        Group("kids", "kids", "the small ones"),
        Group("guests"),
        Client(TABLET, (address("192.0.2.10"),), "kids", icon="tablet", note="blue"),
        Client("laptop", (address("192.0.2.11"), Matcher(MatcherKind.MAC, "02:00:00:00:00:11")), "kids"),
        Client("tv", (address("192.0.2.12"),), policy="night"),
        Schedule("nights", "night", ScheduleEffect.BLOCK_ALL, ALWAYS, ZONE),
    ]
    store.policies.change(lambda _: [(item, True) for item in items], now)


def requests_of(client: str, at: float, count: int = 3, *, blocked: int = 1) -> list[LogRecord]:
    """Log records of a client."""
    return [
        LogRecord(
            at,
            client,
            "GET",
            f"http://h{number}.example/",
            "document",
            "block" if number < blocked else "allow",
            "blacklist" if number < blocked else "unknown",
            "",
            "",
            "",
            5,
        )
        for number in range(count)
    ]
