"""Clients with what they did today, devices that are none, and devices as `device list` names them."""

from collections.abc import Callable

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.model import Client, LogRecord, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.use_cases import devices
from gatewayfilter.use_cases.devices import SeenDevice, seen_devices
from gatewayfilter.use_cases.people import client_list as client_list_module
from gatewayfilter.use_cases.people.client_list import ClientList, ClientRow, Makers, NewDevice, client_list
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.traffic import log_clients
from gatewayfilter.use_cases.traffic.log_clients import LogClients

NOW = 1_800_000_000.0
DAY_S = 86_400.0
PHONE, TV = "02:00:00:00:00:01", "02:00:00:00:00:02"

type Listed = Callable[..., ClientList]


def visits(client: str, at: float, *actions: str, user: str = "") -> list[LogRecord]:
    return [LogRecord(at, client, "GET", "http://a.example/", "document", action, "unknown", user=user) for action in actions]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The neighbour table, which a test fills; no maker is known but that of the phone."""
    found: dict[str, str] = {}
    for module in (client_list_module, devices, log_clients):
        monkeypatch.setattr(module, "neighbours_now", lambda: dict(found))
    for module in (client_list_module, devices):
        monkeypatch.setattr(module, "makers_of", lambda macs: {mac: "Phones Ltd" for mac in macs if mac == PHONE})
    return found


@pytest.fixture
def listed(settings: Settings, store: Store) -> Listed:
    return lambda now=NOW: client_list(settings, store, ServiceIndex({}), Makers(), now)


def add(store: Store, name: str, *matchers: str) -> None:
    PolicyEditor(store.policies).add_client(Client(name, tuple(map(parse_matcher, matchers))))


def test_clients_by_name_with_what_they_did_today(listed: Listed, store: Store, network: dict[str, str]) -> None:
    add(store, "Zoe", "user:zoe")
    add(store, "anna", "10.0.0.1", "10.0.0.2")
    add(store, "Ben", PHONE)
    add(store, "tv", "10.0.0.9")
    network |= {"10.0.0.2": "02:00:00:00:00:07", "10.0.0.3": PHONE}
    store.log.write(visits("10.0.0.1", NOW - 60, "allow", "block") + visits("10.0.0.2", NOW - 2 * 3_600, "block"))
    store.log.write(visits("10.0.0.1", NOW - 2 * DAY_S, *["block"] * 5) + visits("10.0.0.9", NOW + 9 * DAY_S, "allow"))
    store.log.write(visits("10.0.0.5", NOW - 60, "allow", user="zoe"))
    anna, ben, tv, zoe = listed().clients
    assert [row.client.name for row in (anna, ben, tv, zoe)] == ["anna", "Ben", "tv", "Zoe"]
    assert (anna.requests, anna.blocked, anna.share, anna.present) == (3, 2, 2 / 3, True)
    assert NOW - 3_600 <= anna.last_at <= NOW
    assert (ben.requests, ben.blocked, ben.share, ben.present, ben.last_at) == (0, 0, 0.0, True, 0.0)
    assert (tv.present, tv.last_at) == (False, NOW), "a clock that was ahead"


def test_devices_that_are_no_client_those_seen_last_first(listed: Listed, store: Store, network: dict[str, str]) -> None:
    add(store, "anna", "10.0.0.1")
    network |= {"10.0.0.1": TV, "10.0.0.2": PHONE, "fe80::1": TV}
    store.devices.seen({"10.0.0.3": "02:00:00:00:00:03", "10.0.0.4": "02:00:00:00:00:04"}, NOW - 5 * DAY_S)
    store.devices.named(["10.0.0.3"], {"10.0.0.3": "printer"}, NOW)
    store.devices.seen({"10.0.0.8": "02:00:00:00:00:08"}, NOW - 30 * DAY_S)
    store.log.write(visits("10.0.0.2", NOW - 60, "allow", "block") + visits("10.0.0.7", NOW - 2 * 3_600, "allow"))
    store.log.write(visits("no-address", NOW - 60, "allow"))
    found = listed().devices
    assert [device.address for device in found] == ["10.0.0.2", "10.0.0.7", "10.0.0.3", "10.0.0.4"]
    assert found[0] == NewDevice("10.0.0.2", PHONE, "Phones Ltd", "", NOW, 2, 1)
    assert (found[0].matcher, found[1].matcher) == (PHONE, "10.0.0.7")
    assert found[2] == NewDevice("10.0.0.3", "02:00:00:00:00:03", "", "printer", NOW - 5 * DAY_S, 0, 0)
    assert NOW - 3 * 3_600 <= found[1].last_at <= NOW - 3_600


def test_a_device_with_several_addresses_is_listed_once(listed: Listed, network: dict[str, str]) -> None:
    network |= {"10.0.0.2": PHONE, "fe80::2": PHONE}
    assert [device.address for device in listed().devices] == ["10.0.0.2"]


def test_the_newest_devices_are_listed(listed: Listed, network: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    network |= {f"10.0.0.{number}": f"02:00:00:00:00:{number:02}" for number in range(10, 15)}
    monkeypatch.setattr(client_list_module, "_MOST_NEW", 3)
    assert [device.address for device in listed().devices] == ["10.0.0.10", "10.0.0.11", "10.0.0.12"]


def test_clients_are_named_where_the_log_has_hashes(settings: Settings, store: Store, network: dict[str, str]) -> None:
    hashing = settings.model_copy(update={"log": settings.log.model_copy(update={"hash_clients": True})})
    add(store, "anna", "10.0.0.1")
    (logged,) = LogClients(store, hashing).named("anna")
    assert logged != "10.0.0.1"
    store.log.write(visits(logged, NOW - 60, "block"))
    (row,) = client_list(hashing, store, ServiceIndex({}), Makers(), NOW).clients
    assert isinstance(row, ClientRow)
    assert (row.requests, row.blocked, network) == (1, 1, {})


def test_names_of_the_log_hold_until_policies_or_neighbours_change(
    settings: Settings, store: Store, network: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, "ben", "10.0.0.9")
    names = LogClients(store, settings)
    current = [names.is_current]
    network["10.0.0.1"] = PHONE
    current.append(names.is_current)
    names = LogClients(store, settings)
    add(store, "anna", PHONE)
    assert [*current, names.is_current] == [True, False, False]
    names = LogClients(store, settings)
    monkeypatch.setattr(log_clients, "_MOST_NAMES", 2)
    assert (names.name("10.0.0.1"), names.name("10.0.0.2"), names.is_current) == ("anna", "", False)


def test_devices_of_the_links_and_of_the_log(store: Store, network: dict[str, str]) -> None:
    add(store, "anna", "10.0.0.2")
    network |= {"10.0.0.2": PHONE}
    store.devices.seen({"fe80::1": TV}, NOW - 5 * DAY_S)
    records = [("10.0.0.2", 60), ("10.0.0.2", 2 * DAY_S), ("10.0.0.2", DAY_S), ("10.0.0.7", 90), ("no-address", 1)]
    for client, ago in records:
        store.log.write(visits(client, NOW - ago, "allow"))
    asked: list[list[str]] = []

    def names_of(addresses: list[str]) -> dict[str, str]:
        asked.append(addresses)
        return {"10.0.0.2": "phone.lan"}

    found = seen_devices(store, NOW, names_of)
    assert found == [
        SeenDevice("10.0.0.2", PHONE, "Phones Ltd", "phone.lan", NOW - 2 * DAY_S, NOW, 3, "anna"),
        SeenDevice("10.0.0.7", "", "", "", NOW - 90, NOW - 90, 1, ""),
        SeenDevice("fe80::1", TV, "", "", NOW - 5 * DAY_S, NOW - 5 * DAY_S, 0, ""),
    ]
    assert seen_devices(store, NOW, names_of) == found
    assert asked == [["10.0.0.2", "fe80::1"]], "once a day"
    assert seen_devices(store, NOW + DAY_S, None)[0].name == "phone.lan"
    assert len(asked) == 1


def test_what_was_not_seen_today_has_no_requests(listed: Listed, store: Store, network: dict[str, str]) -> None:
    add(store, "anna", "10.0.0.1", "10.0.0.2")
    store.log.write(visits("10.0.0.1", NOW - 3 * DAY_S, *["block"] * 5) + visits("10.0.0.9", NOW - 3 * DAY_S, "block"))
    found = listed()
    (anna,) = found.clients
    assert (anna.requests, anna.blocked, anna.share, anna.present) == (0, 0, 0.0, False)
    assert NOW - 3 * DAY_S - 3_600 <= anna.last_at <= NOW - 2 * DAY_S
    assert [(device.address, device.requests, device.blocked) for device in found.devices] == [("10.0.0.9", 0, 0)]
    assert network == {}
