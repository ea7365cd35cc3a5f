from collections.abc import Callable
from pathlib import Path
from typing import Any

from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.store import Store

type Cli = Callable[..., Any]


def _ask(state: Path, *urls: str) -> None:
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    store.unblock.ask([UnblockRequest(url, "10.0.0.7", "blacklist", "l", "r", "gambling", "for school", 1.7e9) for url in urls])
    store.close()


def test_requests_are_shown_allowed_and_dismissed(cli: Cli, state: Path) -> None:
    assert cli("list", "requests").out == "No open requests.\n"
    _ask(state, "http://a.example/x?y", "http://b.example/")
    table = cli("list", "requests").out
    assert "for school" in table
    assert "10.0.0.7" in table
    first, second = sorted(cli("list", "requests", "--json").json["requests"], key=lambda found: found["url"])
    assert cli("list", "requests", "--allow", first["request_id"]).out == f"{first['request_id']}: allows http://a.example/x?y\n"
    (rule,) = cli("list", "show", "--json").json
    assert (rule["action"], rule["kind"], rule["pattern"]) == ("allow", "url", "a.example/x?y")
    assert "for school" in rule["comment"]
    done = cli("list", "requests", "--dismiss", second["request_id"], "--dismiss", 99, "--json")
    assert done.code == 1
    assert done.json["missing"] == [99]
    assert cli("list", "requests", "--json").json["requests"] == []
    assert len(cli("list", "show", "--json").json) == 1
