"""Lists that cannot be fetched when they are added, updates at once, and the bundles of the catalogue."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.sources import Subscriptions, UpdateStatus
from tests.held_ports import HOST, hold_port, port_of
from tests.sources.list_server import Clock, ListServer

LIST = "".join(f"host{number}.example.com\n" for number in range(100)).encode()


def own_names(subscriptions: Subscriptions) -> list[str]:
    return [name for name in subscriptions.names() if not name.startswith("starter-")]


@pytest.fixture
def unreachable() -> Iterator[str]:
    """An address on which nothing listens."""
    with hold_port() as nobody:
        yield f"http://{HOST}:{port_of(nobody)}/x.txt"


def test_a_server_out_of_reach_leaves_the_subscription_pending(
    subscriptions: Subscriptions, clock: Clock, unreachable: str
) -> None:
    result = subscriptions.add(unreachable, name="later", keep_pending=True)
    assert (result.status, result.report) == (UpdateStatus.PENDING, None)
    assert result.error.count("http://127.0.0.1") == 1
    assert result.error.endswith("Connection refused")
    item = subscriptions.get("later")
    assert item.is_pending
    assert (item.state.failures, item.state.error) == (1, result.error)
    assert [path.name for path in sorted(item.list_path.parent.iterdir())] == ["source.json", "state.json"]
    assert subscriptions.due(clock.now) == []
    clock.now += 400
    assert subscriptions.due(clock.now) == ["later"]


def test_a_pending_list_is_fetched_by_the_next_update(server: ListServer, subscriptions: Subscriptions, clock: Clock) -> None:
    address = server.serve("/a.txt", b"", status=503)
    assert subscriptions.add(address, keep_pending=True).status is UpdateStatus.PENDING
    server.serve("/a.txt", LIST)
    clock.now += 400
    assert [result.status for result in subscriptions.update()] == [UpdateStatus.UPDATED]
    item = subscriptions.get("a")
    assert not item.is_pending
    assert (item.state.error, item.state.failures) == ("", 0)
    assert any(file.source.name == "a" for file in subscriptions.files())


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 404), (b"", 403), (b"<!doctype html><title>Log in", 200), (b"\0\1" * 99, 200)]
)
def test_an_address_that_is_wrong_is_not_kept(server: ListServer, subscriptions: Subscriptions, body: bytes, status: int) -> None:
    with pytest.raises((SourceError, ListError)):
        subscriptions.add(server.serve("/a.txt", body, status=status), keep_pending=True)
    assert own_names(subscriptions) == []


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 404), (b"", 503), (b"<!doctype html><title>Log in", 200), (b"\0\1" * 99, 200)]
)
def test_a_list_of_the_catalogue_is_kept_whatever_answers_now(
    server: ListServer, subscriptions: Subscriptions, body: bytes, status: int
) -> None:
    address = server.serve("/a.txt", body, status=status)
    subscriptions.catalog["easylist"] = replace(subscriptions.catalog["easylist"], address=address)
    result = subscriptions.add("easylist", keep_pending=True)
    assert result.status is UpdateStatus.PENDING
    assert subscriptions.get("easylist").is_pending
    assert not any(file.source.name == "easylist" for file in subscriptions.files())


def test_updates_at_once_are_as_one_after_the_other(server: ListServer, subscriptions: Subscriptions, unreachable: str) -> None:
    for number in range(6):
        subscriptions.add(server.serve(f"/l{number}.txt", LIST), fetch=False)
    subscriptions.add(unreachable, name="gone", fetch=False)
    steps: list[tuple[str, int, int]] = []
    results = subscriptions.update(progress=lambda *step: steps.append(step), width=3)
    assert [(result.name, result.status.value) for result in results] == [
        ("gone", "failed"),
        *((f"l{number}", "updated") for number in range(6)),
    ]
    assert steps[0] == ("updating 7 sources", 0, 7)
    assert steps[-1] == ("updating 7 sources", 7, 7)


def test_bundles_are_of_the_catalogue_and_cover_their_purpose(subscriptions: Subscriptions) -> None:
    assert list(subscriptions.bundles) == ["home", "school", "office"]
    for bundle in subscriptions.bundles.values():
        entries = [subscriptions.catalog[name] for name in bundle.lists]
        assert len(set(bundle.lists)) == len(bundle.lists)
        assert {"ads", "trackers", "malware", "phishing", "gambling"} <= {entry.category for entry in entries}
        assert all(entry.entries and entry.size_mb for entry in entries)
        assert bundle.description.endswith(".")
        assert bundle.description_zh.endswith("。")
    for purpose in ("home", "school"):
        assert "adult" in {subscriptions.catalog[name].category for name in subscriptions.bundles[purpose].lists}
    assert not [name for name in subscriptions.bundles["office"].lists if "NC" in subscriptions.catalog[name].licence]
    with pytest.raises(SourceError, match="no lists for 'moon'; there are home, school, office"):
        subscriptions.missing("moon")


def test_lists_of_a_bundle_that_are_there_are_left_out(subscriptions: Subscriptions) -> None:
    subscriptions.add("easylist", fetch=False)
    missing = subscriptions.missing("home", defaults=True)
    assert "easylist" not in missing
    assert {"oisd-nsfw", "ublock-badware"} <= set(missing)
    assert len(set(missing)) == len(missing)
