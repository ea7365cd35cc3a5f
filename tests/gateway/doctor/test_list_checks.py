"""What the doctor says of lists, of a fleet's publisher, of messages and of services, at each bound."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.gateway.doctor import Level, list_checks, policy_checks
from gatewayfilter.interfaces import ChannelState
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat
from gatewayfilter.sources.subscription import Definition, SourceState, write_json
from gatewayfilter.wiring import open_store
from tests.gateway.doctor.doctor_state import patient

OK, NOTE, WARNING = Level.OK, Level.NOTE, Level.WARNING
NOW = 2_000_000_000.0
DAY = 86_400
FOLLOWED = {"follow": "https://publisher.test/", "key": "A" * 43 + "="}


def subscribe(state: Path, name: str, *, fetched: bool = True, enabled: bool = True, **facts: Any) -> None:
    folder = state / "sources" / name
    folder.mkdir(parents=True)
    address = f"https://lists.test/{name}.txt"
    known = Definition(name, address, ListFormat.HOSTS, "ads", ListAction.BLOCK, interval_h=24, enabled=enabled)
    write_json(folder / "source.json", known)
    write_json(folder / "state.json", replace(SourceState(), **facts))
    if fetched:
        (folder / "list").write_text("0.0.0.0 ads.example\n")


def told(state: Path) -> tuple[Level, str]:
    found = list_checks.subscriptions(patient(state, now=NOW))
    return found.level, found.words


def test_lists_that_were_never_fetched(tmp_path: Path) -> None:
    subscribe(tmp_path, "a", fetched=False, checked_at=NOW)
    assert told(tmp_path) == (WARNING, "a was never fetched.")
    subscribe(tmp_path, "b", fetched=False, checked_at=NOW, failures=1, error="HTTP 404")
    assert told(tmp_path) == (WARNING, "a was never fetched, and 1 more.")
    subscribe(tmp_path, "c", fetched=False, checked_at=NOW)
    assert told(tmp_path) == (WARNING, "a was never fetched, and 2 more.")


def test_lists_that_are_off_do_not_count(tmp_path: Path) -> None:
    subscribe(tmp_path, "a", fetched=False, enabled=False, checked_at=NOW)
    assert told(tmp_path) == (OK, "There are no subscriptions.")
    assert list_checks.protection(patient(tmp_path, now=NOW)).words == "There is no snapshot yet."
    subscribe(tmp_path, "b", checked_at=NOW, changed_at=NOW)
    assert told(tmp_path) == (OK, "1 subscriptions, none of which fails.")
    assert list_checks.protection(patient(tmp_path, now=NOW)).level is OK


def test_lists_that_fail(tmp_path: Path) -> None:
    subscribe(tmp_path, "a", checked_at=NOW, failures=2, error="HTTP 500")
    assert told(tmp_path)[0] is OK
    subscribe(tmp_path, "b", checked_at=NOW, failures=3, error="HTTP 404")
    assert told(tmp_path) == (WARNING, "b failed 3 times (HTTP 404); the last good copy is in use.")
    subscribe(tmp_path, "c", checked_at=NOW, failures=5, error="HTTP 403")
    assert told(tmp_path) == (WARNING, "c failed 5 times (HTTP 403), and 1 more fail; the last good copy is in use.")


@pytest.mark.parametrize(
    ("since_due_s", "words"), [(3 * DAY, ""), (3 * DAY + 60, "3 days ago"), (100_000 * DAY, "100000 days ago")]
)
def test_lists_that_are_late(tmp_path: Path, since_due_s: int, words: str) -> None:
    subscribe(tmp_path, "a", checked_at=NOW, changed_at=NOW)
    item = next(item for item in list_checks._of(patient(tmp_path)).all() if item.definition.name == "a")
    found = list_checks.subscriptions(patient(tmp_path, now=item.next_due_at + since_due_s))
    assert found.level is (WARNING if words else OK)
    assert found.words == (f"a was due {words}." if words else "1 subscriptions, none of which fails.")


def test_starter_lists_and_rules_of_ones_own(state: Path) -> None:
    assert "Only the starter lists are on" in list_checks.protection(patient(state)).words


def test_a_fleets_publisher(tmp_path: Path) -> None:
    alone = list_checks.fleet(patient(tmp_path))
    assert (alone.level, alone.words) == (OK, "No publisher is followed.")

    def told(**state: object) -> tuple[Level, str]:
        if state:
            (tmp_path / "fleet").mkdir(exist_ok=True)
            (tmp_path / "fleet" / "follower.json").write_text(json.dumps(state))
        subject = patient(tmp_path, now=NOW)
        settings = subject.settings.model_copy(
            update={"fleet": subject.settings.fleet.model_copy(update={"follow": "https://p/"})}
        )
        found = list_checks.fleet(replace(subject, settings=settings))
        return found.level, found.words

    cannot = "The publisher cannot be followed: "
    assert told() == (WARNING, f"{cannot}it was not polled yet; the bundled lists are in force.")
    made = {"sentence": "no answer", "made_at": NOW - 2_000 * 3_600}
    assert told(fault="ok", in_force=7, **made) == (OK, "The publisher's manifest 7 is in force, made 2000 hours ago.")
    assert told(fault="net", in_force=7, **made) == (WARNING, f"{cannot}no answer; the lists of 2000 hours ago are in force.")
    assert told(fault="net", in_force=0, **made) == (WARNING, f"{cannot}no answer; the bundled lists are in force.")
    assert told(fault="net") == (WARNING, f"{cannot}it was not polled yet; the bundled lists are in force.")


def test_channels_of_messages(state: Path) -> None:
    assert policy_checks.messages(patient(state)).words == "No channel is set up; requests wait in gatewayfilter request list."
    notify = {"webhook_url": "http://127.0.0.1:1/", "ntfy_url": "http://127.0.0.1:1/topic"}
    store = open_store(Settings(data_dir=state))
    store.notifications.channel("webhook")
    store.notifications.channel("ntfy")
    good = policy_checks.messages(patient(state, notify=notify))
    assert (good.level, good.words.endswith(": no message failed.")) == (OK, True)
    assert all(name in good.words for name in ("webhook", "ntfy"))
    store.notifications.put_channel("webhook", ChannelState(1, 0.0, 4, 0.0, 1_750_000_000.0, ""))
    assert policy_checks.messages(patient(state, notify=notify)).words == "webhook failed 4 times since 2025-06-15 15:06 UTC."
    store.notifications.put_channel("ntfy", ChannelState(1, 0.0, 2, 0.0, 1_750_000_000.0, "refused"))
    both = policy_checks.messages(patient(state, notify=notify))
    assert (both.level, both.words.endswith("; 1 more fail.")) == (WARNING, True), both
    store.close()


def test_a_database_of_another_version_is_not_asked_for_channels(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Status:
        current, head = "1", "2"

    monkeypatch.setattr(policy_checks, "schema_status", lambda _: Status)
    notify = {"webhook_url": "http://127.0.0.1:1/"}
    assert policy_checks.messages(patient(state, notify=notify)).level is NOTE


def test_services_of_ones_own_are_counted(tmp_path: Path) -> None:
    bare = policy_checks.services(patient(tmp_path))
    assert (bare.level, bare.words.endswith(" services, 0 of them your own.")) == (OK, True)
    (tmp_path / "services.toml").write_text("[club]\nname = 'Club'\nhosts = ['club.example']\n", encoding="utf-8")
    found = policy_checks.services(patient(tmp_path))
    assert (found.level, found.words.endswith(" services, 1 of them your own.")) == (OK, True), found
