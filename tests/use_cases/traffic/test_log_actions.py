"""Rules that are made from the log, for a device, a group or everybody; the users of the proxy; the state of a link."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, PolicyError
from gatewayfilter.interfaces import BypassLink
from gatewayfilter.model import Client, EntryKind, ListAction, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.use_cases.operation.proxy_users import ProxyUsers
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.requests import link_state
from gatewayfilter.use_cases.traffic.log_actions import LONGEST_S, Extent, Made, act_on_url

NOW = 1_800_000_000.0
ALLOW, BLOCK = ListAction.ALLOW, ListAction.BLOCK


def act(
    store: Store,
    url: str,
    action: ListAction = BLOCK,
    *,
    extent: Extent = Extent.PAGE,
    whom: str = "",
    lifetime_s: float | None = None,
) -> Made:
    return act_on_url(store, lambda: NOW, action, url, extent=extent, whom=whom, lifetime_s=lifetime_s)


@pytest.mark.parametrize(
    ("url", "action", "extent", "kind", "pattern"),
    [
        ("http://www.a.example/x?q=1", BLOCK, Extent.PAGE, EntryKind.URL, "www.a.example/x?q=1"),
        ("http://www.a.example/x", ALLOW, Extent.PAGE, EntryKind.URL, "www.a.example/x"),
        ("http://www.a.example/x", BLOCK, Extent.SITE, EntryKind.DOMAIN, ".a.example"),
        ("http://192.0.2.1/x", BLOCK, Extent.SITE, EntryKind.HOST, "192.0.2.1"),
        ("http://www.a.example/x?", ALLOW, Extent.PAGE, EntryKind.WILDCARD, "www.a.example/x?*"),
        ("http://www.a.example/x?", BLOCK, Extent.PAGE, EntryKind.URL, "www.a.example/x"),
        ("http://www.a.example/x?", ALLOW, Extent.SITE, EntryKind.DOMAIN, ".a.example"),
        ("http://www.a.example/*/x?", ALLOW, Extent.PAGE, EntryKind.URL, "www.a.example/*/x"),
    ],
)
def test_what_a_rule_of_the_log_names(
    store: Store, url: str, action: ListAction, extent: Extent, kind: EntryKind, pattern: str
) -> None:
    made = act(store, url, action, extent=extent)
    assert (made.action, made.kind, made.scope, made.until) == (action, kind, "", None)
    assert made.pattern.rstrip("?") == pattern.rstrip("?")
    (rule,) = store.lists.rules()
    assert (rule.action, rule.kind, rule.pattern, rule.scope, rule.expires_at) == (action, kind, made.pattern, "", None)


@pytest.mark.parametrize("lifetime_s", [1.0, 60.0, LONGEST_S])
def test_how_long_it_lasts(store: Store, lifetime_s: float) -> None:
    assert act(store, "http://a.example/", lifetime_s=lifetime_s).until == NOW + lifetime_s
    assert store.lists.rules()[0].expires_at == NOW + lifetime_s


@pytest.mark.parametrize("lifetime_s", [0.0, 0.9, -1.0, LONGEST_S + 1])
def test_how_long_it_cannot_last(store: Store, lifetime_s: float) -> None:
    with pytest.raises(PolicyError, match="from a second to ten years"):
        act(store, "http://a.example/", lifetime_s=lifetime_s)
    assert not store.lists.rules()


def test_for_whom_it_is(store: Store) -> None:
    editor = PolicyEditor(store.policies, lambda: NOW)
    editor.add_client(Client("tablet", (parse_matcher("10.0.0.7"), parse_matcher("10.0.0.8"))))
    assert act(store, "http://a.example/", whom="client:tablet").scope == "client:tablet"
    assert act(store, "http://b.example/", whom="device:10.0.0.8").scope == "client:tablet"
    assert act(store, "http://c.example/", whom="device:10.0.0.9").scope == "client:10.0.0.9"
    assert act(store, "http://d.example/", whom="device:fd00::1").scope == "client:fd00--1"
    clients = store.policies.read().clients
    assert clients["10.0.0.9"].matchers == (parse_matcher("10.0.0.9"),)
    assert clients["fd00--1"].matchers == (parse_matcher("fd00::1"),)
    assert len(clients) == 3
    with pytest.raises(PolicyError, match="does not name this device"):
        act(store, "http://e.example/", whom="device:")
    with pytest.raises(PolicyError):
        act(store, "http://e.example/", whom="client:nobody")
    assert len(store.lists.rules()) == 4


@pytest.mark.parametrize(
    ("changes", "now", "state"),
    [
        ({}, 99.0, "unused"),
        ({}, 100.0, "ended"),
        ({"used_at": 1.0}, 99.0, "used"),
        ({"used_at": 1.0}, 101.0, "ended"),
        ({"used_at": 1.0, "revoked_at": 2.0}, 99.0, "revoked"),
        ({"revoked_at": 0.0}, 101.0, "revoked"),
        ({"used_at": 0.0}, 99.0, "used"),
    ],
)
def test_the_state_of_a_link(changes: dict[str, Any], now: float, state: str) -> None:
    link = BypassLink("http://a.example/", EntryKind.URL, "a.example/", "", 100.0, once=True, created_at=0.0)
    assert link_state(replace(link, **changes), now) == state


def test_users_of_the_proxy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"set proxy\.auth_file"):
        ProxyUsers(Settings(data_dir=tmp_path))
    path = tmp_path / "users"
    settings = Settings.model_validate({"data_dir": tmp_path, "proxy": {"auth_file": path}})
    users = ProxyUsers(settings)
    assert (users.path, users.names(), users.remove("kim")) == (path, [], False)
    assert not path.exists()
    assert users.put("kim", "secret") is False
    assert users.put("ada", "secret") is False
    before = path.read_text()
    assert users.put("kim", "other") is True
    assert path.read_text() != before
    assert "secret" not in before
    assert ProxyUsers(settings).names() == ["ada", "kim"]
    assert users.remove("kim") is True
    assert users.remove("kim") is False
    assert users.names() == ["ada"]


@pytest.mark.parametrize(
    ("name", "password"), [("", "x"), ("a:b", "x"), ("a b", "x"), ("#a", "x"), ("a\n", "x"), ("a\0", "x"), ("a", "")]
)
def test_users_that_cannot_be_written(tmp_path: Path, name: str, password: str) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path, "proxy": {"auth_file": tmp_path / "users"}})
    with pytest.raises(ConfigError):
        ProxyUsers(settings).put(name, password)
    assert not (tmp_path / "users").exists()
