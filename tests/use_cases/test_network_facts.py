"""What policies refer to: categories, sources, services, time zones, what is left of quotas, devices that are away."""

from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.model import (
    Client,
    Group,
    Policy,
    PolicyItem,
    PolicySet,
    Quota,
    QuotaKind,
    QuotaUse,
    Spent,
    parse_matcher,
)
from gatewayfilter.store import Store
from gatewayfilter.use_cases import network_facts
from gatewayfilter.use_cases.lists.source_changes import SourceOptions, add_source, changeable_sources
from gatewayfilter.use_cases.network_facts import (
    QuotaLeft,
    counted_categories,
    identity_of,
    known_categories,
    known_services,
    known_sources,
    local_zone,
    neighbours_now,
    neighbours_with,
    quotas_left,
    zone_name,
)
from tests.use_cases.small_program import small_program

NOW = 1_800_000_000.0
MAC = "02:00:00:00:00:01"


def test_categories_and_sources_of_what_is_there(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_program(tmp_path / "bundled", monkeypatch)
    assert {"ads", "gambling"} <= known_categories(settings)
    assert "bank" not in known_categories(settings)
    assert "bank" in known_categories(settings, allowing=True)
    assert "" not in known_categories(settings, allowing=True)
    (tmp_path / "mine.txt").write_text("a.example\n")
    add_source(changeable_sources(settings), str(tmp_path / "mine.txt"), SourceOptions(category="ads"))
    assert "mine" in known_sources(settings)
    changeable_sources(settings).disable("mine")
    assert "mine" not in known_sources(settings)
    assert known_services(settings, ["category.ads"]) == set()
    services = known_services(settings, ["category.ads", "service.tiktok"])
    assert "tiktok" in services
    assert {"ads", "social", "ai"} <= counted_categories(settings)
    assert counted_categories(settings) > known_categories(settings)


def test_the_time_zone_is_that_of_the_settings_or_the_machine(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TZ", ":Europe/Berlin")
    assert (local_zone(), zone_name(settings)) == ("Europe/Berlin", "Europe/Berlin")
    chosen = settings.filter.model_copy(update={"timezone": "Asia/Shanghai"})
    assert zone_name(settings.model_copy(update={"filter": chosen})) == "Asia/Shanghai"
    monkeypatch.setenv("TZ", "CEST-2")
    assert local_zone() == "UTC"
    monkeypatch.delenv("TZ")
    (tmp_path / "zoneinfo" / "Asia").mkdir(parents=True)
    (tmp_path / "zoneinfo" / "Asia" / "Tokyo").touch()
    (tmp_path / "localtime").symlink_to(tmp_path / "zoneinfo" / "Asia" / "Tokyo")
    monkeypatch.setattr(network_facts, "_LOCALTIME", tmp_path / "localtime")
    assert local_zone() == "Asia/Tokyo"
    monkeypatch.setattr(network_facts, "_LOCALTIME", tmp_path / "none")
    assert local_zone() == "UTC"


def test_what_is_left_of_quotas(store: Store) -> None:
    kim = Client("kim", (parse_matcher("10.0.0.1"),), "kids")
    films = Quota("films", "kids", QuotaKind.CATEGORY, "streaming", 60, "UTC")
    games = Quota("games", "default", QuotaKind.CATEGORY, "games", 30, "UTC", {int(NOW // 86_400 + 3) % 7: 45})
    other = Quota("other", "else", QuotaKind.CATEGORY, "news", 5, "UTC")
    spent = Spent("films", "client:kim", NOW - 60, NOW + 3_600)
    items: list[PolicyItem] = [
        Policy("kids"),
        Policy("default"),
        Policy("else"),
        Group("kids", "kids"),
        kim,
        games,
        films,
        other,
        spent,
    ]
    policies = store.policies.change(lambda _: [(item, True) for item in items], NOW)
    store.usage.add([QuotaUse("client:kim", "films", int(NOW // 60) - minute) for minute in range(3)])
    store.usage.add([QuotaUse("client:lee", "films", int(NOW // 60)), QuotaUse("address:10.0.0.9", "games", int(NOW // 60))])
    assert quotas_left(store, policies, kim, "", NOW) == [
        QuotaLeft("films", "streaming", 3, 60, NOW + 3_600),
        QuotaLeft("games", "games", 0, 45, None),
    ]
    assert quotas_left(store, policies, kim, "", NOW + 3_600)[0].until is None
    assert quotas_left(store, policies, kim, "", NOW - 61)[0].until is None
    assert quotas_left(store, policies, None, "10.0.0.9", NOW) == [QuotaLeft("games", "games", 1, 45, None)]
    assert quotas_left(store, PolicySet.of([kim, Group("kids")]), kim, "", NOW) == []


def test_a_device_that_is_away_has_an_address_of_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours = {"10.0.0.2": "02:00:00:00:00:02"}
    monkeypatch.setattr(network_facts, "read_neighbours", lambda: neighbours)
    policies = PolicySet.of([Client("phone", (parse_matcher(MAC),)), Client("pc", (parse_matcher("10.0.0.2"),))])
    away = neighbours_with("phone", policies)
    assert away == {**neighbours, "192.0.2.255": MAC}
    assert identity_of("phone", policies, away).address == "192.0.2.255"
    for text in ("pc", "10.0.0.2", "nobody"):
        assert neighbours_with(text, policies) == neighbours
    neighbours["10.0.0.3"] = MAC
    assert neighbours_with("phone", policies) == neighbours

    def fails() -> dict[str, str]:
        raise OSError

    monkeypatch.setattr(network_facts, "read_neighbours", fails)
    assert neighbours_now() == {}
