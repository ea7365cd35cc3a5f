"""Devices in the database: first and last time, names, and their bounds."""

import pytest

from gatewayfilter.model import Device
from gatewayfilter.store import Store

MAC, OTHER = "00:1a:2b:00:00:01", "00:1a:2b:00:00:02"


def test_first_and_last_time(store: Store) -> None:
    assert store.devices.seen({"10.0.0.2": MAC}, 100.0) == 1
    assert store.devices.seen({"10.0.0.2": MAC, "10.0.0.3": OTHER}, 200.0) == 1
    assert store.devices.all() == [Device("10.0.0.2", MAC, "", 100.0, 200.0), Device("10.0.0.3", OTHER, "", 200.0, 200.0)]


def test_names_are_looked_up_once_a_day(store: Store) -> None:
    store.devices.seen({"10.0.0.2": MAC, "10.0.0.3": OTHER}, 100_000.0)
    assert store.devices.unnamed(100_000.0) == ["10.0.0.2", "10.0.0.3"]
    store.devices.named(["10.0.0.2", "10.0.0.3"], {"10.0.0.2": "tv"}, 100_000.0)
    assert [device.name for device in store.devices.all()] == ["tv", ""]
    assert store.devices.unnamed(100_001.0) == []
    assert len(store.devices.unnamed(200_000.0)) == 2
    store.devices.named(["10.0.0.2"], {}, 200_000.0)
    assert store.devices.all()[0].name == "tv"


def test_an_address_of_another_device_is_a_new_one(store: Store) -> None:
    store.devices.seen({"10.0.0.2": MAC}, 100_000.0)
    store.devices.named(["10.0.0.2"], {"10.0.0.2": "tv"}, 100_000.0)
    assert store.devices.seen({"10.0.0.2": OTHER}, 100_001.0) == 1
    assert store.devices.all() == [Device("10.0.0.2", OTHER, "", 100_001.0, 100_001.0)]
    assert store.devices.unnamed(100_001.0) == ["10.0.0.2"]


def test_devices_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.store.repositories.traffic.devices._MOST", 3)
    store.devices.seen({f"10.0.0.{number}": MAC for number in range(9)}, 100.0)
    assert len(store.devices.all()) == 3
    store.devices.seen({}, 100.0 + 91 * 86_400)
    assert store.devices.all() == []
