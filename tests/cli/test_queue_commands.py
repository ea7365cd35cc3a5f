import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.interfaces import Offer, Priority
from gatewayfilter.store import Store

type Cli = Callable[..., Any]


@pytest.fixture
def queued(state: Path) -> None:
    state.mkdir(parents=True)
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    now = time.time()
    store.frontier.add([Offer("http://a.example/", Priority.MANUAL), Offer("http://b.example/", Priority.LINK)], now)
    (lease,) = store.frontier.lease(1, 60, now)
    store.frontier.bury(lease, "refused")
    store.close()


@pytest.mark.usefixtures("queued")
def test_the_queue_is_shown_by_state(cli: Cli) -> None:
    assert [(row["url"], row["state"]) for row in cli("queue", "show", "--state", "dead", "--json").json] == [
        ("http://a.example/", "dead")
    ]
    assert "http://b.example/" in cli("queue", "show").out
    assert cli("queue", "show", "--state", "resting").out == "No URL is resting.\n"


@pytest.mark.usefixtures("queued")
def test_stats_retry_and_clear(cli: Cli) -> None:
    stats = cli("queue", "stats", "--json").json
    assert (stats["waiting"], stats["dead"]) == (1, 1)
    assert "waiting  1" in cli("queue", "stats").out
    assert cli("queue", "retry", "--json").json == {"revived": 1}
    assert cli("queue", "retry").out == "0 URLs put back to waiting.\n"
    assert cli("queue", "clear", "--json").json == {"removed": 2}
    assert cli("queue", "clear", "--yes").out == "0 URLs removed.\n"
    assert cli("queue", "show").out == "The queue is empty.\n"
