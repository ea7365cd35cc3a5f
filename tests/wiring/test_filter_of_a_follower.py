"""What a publisher exports, and what a follower may do with the filter here: `gatewayfilter.wiring.fleet`.

And the state folder at the moment when it is made: `gatewayfilter.wiring.storage`.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.wiring import fleet, storage
from tests.wiring.test_worker_wiring import Part, settings_of

STORE: Any = Part("store")


def test_the_rules_and_policies_that_are_shared_are_exported_with_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    exported: list[Any] = []
    settings = settings_of()
    store: Any = SimpleNamespace(lists=SimpleNamespace(rules=lambda: "rules"), policies=SimpleNamespace(read=lambda: "policies"))

    def export(*given: object) -> bool:
        exported.append(given)
        return True

    def exporter(*given: Any) -> SimpleNamespace:
        exported.append(given)
        return SimpleNamespace(export=export)

    monkeypatch.setattr(fleet, "signing_keys", lambda _settings: SimpleNamespace(read=lambda: "keys"))
    monkeypatch.setattr(fleet, "shared_bundle", lambda *given: ("bundle", *given))
    monkeypatch.setattr(fleet, "Exporter", exporter)
    assert fleet.export_now(settings, store)
    folder, snapshots, shared = exported[0]
    assert (folder, shared) == (storage.fleet_folder(settings).export, settings.fleet)
    assert type(snapshots) is type(storage.snapshot_folder(settings))
    assert exported[1] == (("bundle", "rules", "policies", settings.fleet), "keys")


def test_a_follower_publishes_and_adopts_by_the_database_here(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[object] = []
    monkeypatch.setattr(fleet, "publish_now", lambda *given: published.append(given))
    monkeypatch.setattr(fleet, "Adopter", lambda *given: Part("adopter", *given))
    settings = settings_of()
    here = fleet.FilterHere(settings, STORE)
    here.publish()
    assert published == [(settings, STORE)]
    adopter: Any = here.adopter()
    assert adopter.given == (STORE.lists, STORE.policies)


def test_keys_and_followers_are_read_from_the_folder_of_the_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of()
    folder = storage.fleet_folder(settings)
    for name in ("KeyFile", "Members"):
        monkeypatch.setattr(fleet, name, lambda *given, name=name: (name, *given))
    made: list[Any] = [fleet.signing_keys(settings), fleet.members(settings)]
    assert made == [("KeyFile", folder.signing_key), ("Members", folder.followers)]


def test_a_new_state_folder_is_private_from_its_first_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    monkeypatch.setattr(storage, "make_private", lambda path, mode: modes.append(path.stat().st_mode & 0o777 ^ mode))
    storage.prepare_data_dir(settings_of(data_dir=tmp_path / "state"))
    assert modes == [0]
