"""The life of a subscription to a file on this machine: added, looked at, updated, kept back, switched, removed."""

from pathlib import Path

import pytest

from gatewayfilter.errors import ListError, MissingSourceError, SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat, SourceFile, Subscriptions, UpdateStatus
from tests.sources.list_server import Clock

HOSTS = "".join(f"0.0.0.0 host{number}.example\n" for number in range(40))


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    path = tmp_path / "ads.txt"
    path.write_text(HOSTS)
    return path


def test_a_list_is_added_once_and_may_be_looked_at_before(subscriptions: Subscriptions, origin: Path, clock: Clock) -> None:
    seen: list[tuple[SourceFile, str]] = []
    looked = subscriptions.add(str(origin), preview=True, look=lambda item: seen.append((item, item.path.read_text())))
    assert (looked.name, looked.status, "ads" in subscriptions.names()) == ("ads", UpdateStatus.UPDATED, False)
    assert [(item.source.name, item.list_format, text) for item, text in seen] == [("ads", ListFormat.HOSTS, HOSTS)]
    assert not seen[0][0].path.exists()
    added = subscriptions.add(str(origin))
    assert (added.status, added.error) == (UpdateStatus.UPDATED, "")
    assert added.report is not None
    assert added.report.entries == 40
    with pytest.raises(SourceError, match="there is a source 'ads' already"):
        subscriptions.add(str(origin))
    assert subscriptions.add(str(origin), preview=True).status is UpdateStatus.UPDATED
    found = subscriptions.get("ads")
    assert (found.definition.category, found.definition.action, found.definition.added_at) == ("ads", ListAction.BLOCK, clock.now)
    assert (found.state.checked_at, found.state.changed_at, found.state.failures, found.is_pending) == (
        clock.now,
        clock.now,
        0,
        False,
    )
    assert found.list_path.read_text() == HOSTS


def test_a_list_that_is_not_fetched_yet_is_pending_and_due(subscriptions: Subscriptions, origin: Path, clock: Clock) -> None:
    added = subscriptions.add(str(origin), fetch=False, interval_h=2)
    assert (added.status, added.report) == (UpdateStatus.UNCHANGED, None)
    assert subscriptions.get("ads").is_pending
    assert subscriptions.due(clock.now) == ["ads"]
    assert [item.source.name for item in subscriptions.files() if item.source.name == "ads"] == []
    steps: list[tuple[str, int, int]] = []
    (result,) = subscriptions.update(progress=lambda *step: steps.append(step))
    assert result.status is UpdateStatus.UPDATED
    assert (steps[0], steps[-1]) == (("updating ads", 0, 1), ("updated", 1, 1))
    steps.clear()
    subscriptions.update(["ads"], width=4, progress=lambda *step: steps.append(step))
    assert steps[0] == ("updating ads", 0, 1), "one alone is named, however many could be fetched at once"
    assert subscriptions.due(clock.now + 7199) == []
    assert subscriptions.due(clock.now + 7200 * 1.1) == ["ads"]
    assert subscriptions.update() == []


def test_updates_take_what_changed_and_keep_back_what_shrank(subscriptions: Subscriptions, origin: Path, clock: Clock) -> None:
    subscriptions.add(str(origin))
    clock.now += 100
    (same,) = subscriptions.update(["ads"])
    assert (same.status, subscriptions.get("ads").state.checked_at) == (UpdateStatus.UNCHANGED, clock.now)
    assert subscriptions.get("ads").state.changed_at == clock.now - 100
    origin.write_text("".join(HOSTS.splitlines(keepends=True)[:4]))
    assert subscriptions.update(["ads"])[0].status is UpdateStatus.UPDATED, "a tenth is left"
    origin.write_text(HOSTS)
    subscriptions.update(["ads"])
    origin.write_text("".join(HOSTS.splitlines(keepends=True)[:3]))
    (kept,) = subscriptions.update(["ads"])
    assert (kept.status, "it shrank from 40 to 3 entries" in kept.error) == (UpdateStatus.KEPT_BACK, True)
    state = subscriptions.get("ads").state
    assert (state.failures, state.failed_at, state.error) == (1, clock.now, kept.error)
    assert subscriptions.get("ads").list_path.read_text() == HOSTS
    (forced,) = subscriptions.update(["ads"], force=True)
    assert forced.status is UpdateStatus.UPDATED
    assert subscriptions.get("ads").state.failures == 0


def test_what_cannot_be_had_leaves_the_copy_and_is_told(subscriptions: Subscriptions, origin: Path, clock: Clock) -> None:
    subscriptions.add(str(origin))
    other = origin.with_name("other.txt")
    other.write_text("<html><body>not a list</body></html>")
    with pytest.raises(ListError, match=rf"cannot use {other}: it is a web page"):
        subscriptions.add(str(other))
    assert subscriptions.names()[-1] == "ads"
    origin.unlink()
    results = subscriptions.update(["ads"])
    assert [(result.status, result.error) for result in results] == [(UpdateStatus.FAILED, f"there is no {origin}")]
    assert results[0].report is not None
    found = subscriptions.get("ads")
    assert (found.list_path.read_text(), found.state.failures) == (HOSTS, 1)
    assert subscriptions.due(found.next_due_at - 1) == []
    assert subscriptions.due(found.next_due_at) == ["ads"]


def test_a_source_is_switched_and_removed(subscriptions: Subscriptions, origin: Path, clock: Clock) -> None:
    subscriptions.add(str(origin))

    def enabled() -> bool:
        return "ads" in [item.source.name for item in subscriptions.files()]

    assert enabled()
    subscriptions.disable("ads")
    assert not enabled()
    assert ("ads", False) in [(item.source.name, on) for item, on in subscriptions.every_file()]
    assert subscriptions.due(clock.now + 1e9) == []
    subscriptions.enable("ads")
    assert enabled()
    starter = subscriptions.names()[0]
    subscriptions.disable(starter)
    assert not subscriptions.get(starter).definition.enabled
    assert subscriptions.update([starter])[0].status is UpdateStatus.UNCHANGED
    with pytest.raises(SourceError, match="comes with the program"):
        subscriptions.remove(starter)
    subscriptions.remove("ads")
    assert "ads" not in subscriptions.names()
    for act in (subscriptions.get, subscriptions.remove, subscriptions.enable):
        with pytest.raises(MissingSourceError, match="there is no source 'ads'"):
            act("ads")


def test_an_adblock_list_blocks(subscriptions: Subscriptions, origin: Path) -> None:
    origin.write_text("! Title: mine\n||a.example^\n@@||b.example^\n")
    with pytest.raises(SourceError, match="add it with --action block"):
        subscriptions.add(str(origin), action=ListAction.ALLOW)
    assert subscriptions.add(str(origin), action=ListAction.BLOCK).status is UpdateStatus.UPDATED


def test_two_sources_are_updated_at_once(subscriptions: Subscriptions, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(f"{name}.example.com\n")
        subscriptions.add(str(tmp_path / f"{name}.txt"), name=name)
    steps: list[tuple[str, int, int]] = []
    for names, width in ((["one", "two"], 2), (["one", "two"], 1), (["one"], 2)):
        subscriptions.update(names, width=width, progress=lambda *step: steps.append(step))
    at_once = [("updating 2 sources", done, 2) for done in range(3)]
    in_turn = [("updating one", 0, 2), ("updating two", 1, 2), ("updated", 2, 2)]
    assert steps == [*at_once, *in_turn, ("updating one", 0, 1), ("updated", 1, 1)]
