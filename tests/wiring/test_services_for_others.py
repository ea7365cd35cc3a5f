"""What is joined for other proxies, resolvers and gateways: keys, tokens, bounds, what is told of faults."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import FleetError, SnapshotError, StartupError
from gatewayfilter.integration.request_decider import AskedRequest
from gatewayfilter.model import Action, Client, Matcher, MatcherKind, Reason, Request, ResourceType, Verdict
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring import fleet, integration, notification, rpz
from tests.wiring.test_state_folder import snapshot

SECRET = base64.b64encode(b"secret of both").decode()


def with_(settings: Settings, **sections: Mapping[str, object]) -> Settings:
    given: dict[str, Any] = {"data_dir": settings.data_dir, **sections}
    return Settings(**given)


def test_the_file_of_blocked_names_is_made_of_the_lists(settings: Settings, tmp_path: Path) -> None:
    path = rpz.base_file(settings)
    assert path == settings.data_dir / "rpz" / "names"
    for _ in range(2):
        rpz.write_base_names(settings, path)
    assert path.exists()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileNotFoundError):
        rpz.write_base_names(settings, tmp_path / "none" / "rpz" / "names")


def test_a_zone_is_signed_where_its_key_is_named(settings: Settings, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    assert rpz._key(settings) is None
    named = with_(settings, rpz={"tsig_name": "gateway.key", "tsig_secret": SECRET})
    key = rpz._key(named)
    assert key is not None
    assert key._secret == b"secret of both"
    secret.write_text(f"{base64.b64encode(b'of the file').decode()}\n")
    by_file = rpz._key(with_(settings, rpz={"tsig_name": "gateway.key", "tsig_secret": SECRET, "tsig_file": secret}))
    assert by_file is not None
    assert by_file._secret == b"of the file"
    for one in ({"tsig_file": tmp_path / "none"}, {"tsig_file": tmp_path / "empty"}, {"tsig_file": tmp_path}):
        broken = {"tsig_name": "k", **one}
        (tmp_path / "empty").touch()
        with pytest.raises(StartupError, match="the TSIG key"):
            rpz._key(with_(settings, rpz=broken))
    found = rpz.rpz_server(with_(settings, rpz={"allow_networks": ["192.0.2.0/24"]}), SimpleNamespace(), Counters())  # type: ignore[arg-type]
    assert [found._served.admits(address) for address in ("192.0.2.1", "192.0.3.1")] == [True, False]


def test_a_zone_begins_before_now_and_has_a_file_where_one_is_set(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayfilter.wiring.rpz.time", SimpleNamespace(time=lambda: 1_000.5))
    keeper, history = rpz.rpz_keeper(settings, Counters(), lambda: None)
    assert (history.zone.serial, keeper._file) == (999, None)
    kept, _ = rpz.rpz_keeper(with_(settings, rpz={"file": tmp_path / "zone"}), Counters(), lambda: None)
    assert kept._file is not None


def test_the_token_of_the_endpoint_is_that_of_its_file_or_of_the_environment(settings: Settings, tmp_path: Path) -> None:
    parts: Any = SimpleNamespace(decider=None, counters=Counters())
    file = tmp_path / "token"
    file.write_text(" of the file \n")
    given: tuple[tuple[dict[str, object], bytes], ...] = (
        ({}, b""),
        ({"token": "given"}, b"given"),
        ({"token": "given", "token_file": file}, b"of the file"),
    )
    for decide, token in given:
        assert integration.decide_endpoint(with_(settings, decide=decide), parts)._token == token
    file.write_text("")
    with pytest.raises(StartupError, match="is empty"):
        integration.decide_endpoint(with_(settings, decide={"token_file": file}), parts)
    for broken in (tmp_path / "none", tmp_path):
        with pytest.raises(StartupError, match=r"decide\.token_file cannot be read"):
            integration.decide_endpoint(with_(settings, decide={"token_file": broken}), parts)


@pytest.mark.parametrize("fails", [False, True])
def test_pages_for_icap_are_judged_as_the_proxy_does(settings: Settings, *, fails: bool) -> None:
    found = with_(
        settings, proxy={"inspect_ms": 1_500, "on_error": "block" if fails else "allow"}, filter={"disabled_categories": ["ads"]}
    )
    parts: Any = SimpleNamespace(decider=None, counters=Counters())
    inspect: Any = None
    judge = integration.icap_server(found, parts, inspect)._service._judge
    assert judge is not None
    assert (judge._limit_s, judge._blocks_failures, judge._off_categories) == (1.5, fails, frozenset({"ads"}))


def test_the_block_page_of_a_failure_is_another_one(settings: Settings) -> None:
    request = Request(parse_url("http://a.test/"), None, ResourceType.DOCUMENT)
    pages = integration._block_page(settings)
    failure, block = (pages(request, Verdict(Action.BLOCK, reason), "en") for reason in (Reason.FAILURE, Reason.BLACKLIST))
    assert failure.status >= 500
    assert block.status == 403
    assert b"a.test" in block.content
    short = integration._block_page(with_(settings, proxy={"block_details": "short"}))
    assert len(short(request, Verdict(Action.BLOCK, Reason.BLACKLIST, "a.test"), "en").content) < len(
        pages(request, Verdict(Action.BLOCK, Reason.BLACKLIST, "a.test"), "en").content
    )


def test_what_decides_for_others_shows_its_lists_and_is_joined_as_set(settings: Settings) -> None:
    snapshot(settings, "a.test")
    for enabled in (True, False):
        set_ = with_(
            settings, learn={"enabled": enabled}, helper={"ttl_s": 30}, log={"hash_clients": not enabled, "retention_mb": 7}
        )
        parts = integration.deciding(set_)
        assert parts.decider.decide(AskedRequest("http://a.test/")).verdict.reason is Reason.BLACKLIST
        assert (parts.decider.ttl_s, parts.decider._pages is not None) == (30, enabled)
        info = parts.engine.snapshot.info
        assert parts.facts() == {
            "snapshot": {"created_at": info.created_at, "feed_seq": info.feed_seq}, "feed_seq": parts.engine.feed_seq,
        }  # fmt: skip
        assert parts.counters["requests"] == 1


def test_threads_of_what_decides_end_in_the_other_order() -> None:
    order: list[str] = []
    threads = [
        SimpleNamespace(start=lambda name=name: order.append(f"+{name}"), stop=lambda name=name: order.append(f"-{name}"))
        for name in "ab"
    ]
    parts: Any = integration.Deciding(None, None, Counters(), tuple(threads))  # type: ignore[arg-type]
    parts.start()
    parts.stop()
    assert order == ["+a", "+b", "-b", "-a"]


@pytest.mark.parametrize(("done", "fails"), [(True, False), (False, False), (False, True)])
def test_an_export_is_counted(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, *, done: bool, fails: bool
) -> None:
    def export(*_: object) -> bool:
        if fails:
            raise FleetError("no room")
        return done

    monkeypatch.setattr(fleet, "signing_keys", lambda _: SimpleNamespace(read=lambda: None))
    monkeypatch.setattr(fleet, "Exporter", lambda *_: SimpleNamespace(export=export))
    counters = Counters()
    for given in (counters, None):
        if fails:
            with pytest.raises(FleetError):
                fleet.export_now(settings, store, given)
        else:
            assert fleet.export_now(settings, store, given) is done
    assert counters.as_dict() == ({"fleet_export_failures": 1} if fails else {"fleet_exports": 1} if done else {})


def test_the_token_of_a_follower(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert fleet._token(settings) == ""
    token, other = (f"gwfleet_{mark * 43}" for mark in "ab")
    file.write_text(f"{token}\n")
    assert fleet._token(with_(settings, fleet={"token_file": file})) == token
    assert fleet._token(with_(settings, fleet={"token": other, "token_file": file})) == other
    file.write_bytes(b"\xff")
    for broken, why in ((file, "it is no token"), (tmp_path / "none", "No such file")):
        with pytest.raises(FleetError, match=why):
            fleet._token(with_(settings, fleet={"token_file": broken}))


def test_what_a_follower_asks_of_the_filter_here(settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    here = fleet.FilterHere(settings, store)
    assert (here.serving(), here.is_published("mark")) == ((0, 0), False)
    run = settings.data_dir / "run"
    run.mkdir()
    for number, state in enumerate(("serving", "starting", "serving")):
        (run / f"proxy-{number}.json").write_text(json.dumps({"state": state}))
    (run / "proxy-8.json").write_text("[]")
    (run / "proxy-9.json").write_text("{")
    (run / "learner.json").write_text('{"state": "serving"}')
    assert here.serving() == (0, 2)
    snapshot(settings, "a.test", "b.test")
    assert here.serving() == (2, 2)
    opened: list[bool] = []

    class Closing(SimpleNamespace):
        def close(self) -> None:
            opened.append(False)

    found = Closing(meta={"notes": {"inputs": "fleet:mark"}}, info=SimpleNamespace(blacklist=1, whitelist=20, splicelist=300))
    verified: list[bool] = []

    def newest(*, verify: bool) -> tuple[Closing, tuple[str, ...]]:
        verified.append(verify)
        return found, ()

    monkeypatch.setattr(fleet, "snapshot_folder", lambda _: SimpleNamespace(open_newest=newest))
    assert (here.is_published("mark"), here.is_published("other"), here.serving()) == (True, False, (321, 2))
    assert (opened, verified) == ([False] * 3, [False] * 3)

    def none(*, verify: bool) -> object:
        raise SnapshotError(f"none {verify}")

    monkeypatch.setattr(fleet, "snapshot_folder", lambda _: SimpleNamespace(open_newest=none))
    assert (here.is_published("mark"), here.serving()) == (False, (0, 2))


class Told:
    """Notifications; each thing is new once."""

    def __init__(self) -> None:
        self.told: dict[str, dict[str, object]] = {}

    def add(self, event: str, what: str, at: float, facts: dict[str, object]) -> bool:
        del at
        return self.told.setdefault(f"{event} {what}", facts) is facts


def source(name: str = "list", *, enabled: bool = True, failures: int = 3, since: float = 1.0) -> Any:
    state = SimpleNamespace(failing_since=since, failures=failures, error="no route")
    return SimpleNamespace(definition=SimpleNamespace(name=name, enabled=enabled), state=state)


@pytest.mark.parametrize(
    ("found", "days", "told"),
    [
        (source(), 3.0, 1), (source(), 2.99, 0), (source(enabled=False), 3.0, 0), (source(failures=0), 3.0, 0),
        (source(since=0.0), 3.0, 0), (source(), 9.5, 1),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_updated_for_days_is_told_of(found: Any, days: float, told: int) -> None:
    store: Any = Told()
    now = 1.0 + days * 86_400
    assert [notification.report_sources([found], store, now) for _ in range(2)] == [told, 0]
    assert list(store.told.values()) == [{"source": "list", "days": int(days), "error": "no route"}] * told
    store.told.clear()
    assert notification.report_sources([found, source("other", since=now - 3 * 86_400)], store, now) == told + 1


def test_devices_that_are_no_clients_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    kim = Client("kim", (Matcher(MatcherKind.MAC, "aa:aa:aa:aa:aa:01"), Matcher(MatcherKind.ADDRESS, "192.0.2.2")), "kids")
    policies: Any = SimpleNamespace(clients={"kim": kim})
    store: Any = Told()
    neighbours = {f"192.0.2.{number}": f"aa:aa:aa:aa:aa:0{number}" for number in range(1, 6)}
    monkeypatch.setattr(notification, "_MOST_DEVICES", 4)
    assert [notification.report_devices(neighbours, policies, store, 5.0) for _ in range(2)] == [2, 0]
    assert [facts["address"] for facts in store.told.values()] == ["192.0.2.3", "192.0.2.4"]
