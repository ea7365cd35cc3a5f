"""Requests and review tasks for tests of pages and API, with hostile texts among them."""

from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import Classification, Client, Evidence, Group, ReviewKind, ReviewTask, ScoreBreakdown, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.policies import PolicyEditor

NOW = 1_800_000_000.0
HOSTILE = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>\u202egnp.exe {{ 7 * 7 }}"


def with_tablet(store: Store) -> None:
    """Adds the client `tablet` in the group `kids`."""
    editor = PolicyEditor(store.policies)
    editor.add_group(Group("kids"))
    editor.add_client(Client("tablet", (parse_matcher("10.0.0.7"),), "kids", icon="tablet"))


def ask(
    store: Store, url: str = "http://www.games.example/x", *, comment: str = "homework", name: str = "tablet", **facts: str
) -> int:
    """Adds a request; returns its number."""
    given = {"reason": "blacklist", "source_list": "games list", "rule": ".games.example", "category": "games"} | facts
    store.unblock.ask(
        [
            UnblockRequest(
                url,
                "10.0.0.7",
                given["reason"],
                given["source_list"],
                given["rule"],
                given["category"],
                comment,
                NOW,
                client_name=name,
            )
        ]
    )
    return max(request.request_id for request in store.unblock.open_requests())


def add_task(
    store: Store,
    url: str = "http://casino.example/play",
    *,
    text: str = "welcome to the online casino\nfree spins and a casino bonus for new players",
    title: str = "Online Casino",
    group_id: int = 0,
    words: tuple[tuple[str, float, str], ...] = (
        ("casino bonus", 36.0, "title"),
        ("free spins", 8.0, "main"),
        ("museum", -2.0, "main"),
    ),
) -> int:
    """Adds a review task about a gambling page; returns its number."""
    evidence = tuple(Evidence(word, "gambling", weight, zone, 0) for word, weight, zone in words)
    judged = Classification("gambling", 42.0, 20.0, {"gambling": 42.0}, evidence, title, certainty=0.97)
    breakdown = ScoreBreakdown("v1", "gambling", 40.0, 8.0, 4.0, 4.0, 2.0, 0.0, 42.0, 20.0, 3, 2)
    task = ReviewTask(
        0,
        ReviewKind.PAGE,
        url,
        parse_url(url).key,
        "gambling",
        judged,
        blocked=True,
        created_at=NOW,
        group_id=group_id,
        text=text,
        score_breakdown=breakdown,
    )
    return store.reviews.add(task)
