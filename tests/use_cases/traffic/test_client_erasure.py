"""A client is erased from every table that names it, and nobody else is."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.config import Settings, load
from gatewayfilter.errors import PolicyError
from gatewayfilter.interfaces import BypassLink, RequestState, UnblockRequest
from gatewayfilter.model import Client, EntryKind, LogRecord, Quota, QuotaKind, QuotaUse, parse_matcher
from gatewayfilter.proxy.sync.client_key import hash_client, load_client_key
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.traffic.client_erasure import erase_client

MAC = "aa:bb:cc:dd:ee:01"
NOW = 1_800_000_000.0


def record(client: str, url: str = "http://private.test/", user: str = "") -> LogRecord:
    return LogRecord(NOW, client, "GET", url, "document", "allow", "unknown", user=user)


@pytest.fixture(params=[False, True], ids=["addresses", "hashes"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    options = {"data_dir": tmp_path / "state", "learn.enabled": False, "log.hash_clients": request.param}
    return load(environ={}, options=options).settings


def fill(store: Store, settings: Settings) -> None:
    key = load_client_key(settings.data_dir) if settings.log.hash_clients else None

    def logged(address: str) -> str:
        return hash_client(address, key) if key is not None else address

    editor = PolicyEditor(store.policies)
    editor.add_client(Client("tablet", (parse_matcher("10.9.8.7"), parse_matcher(MAC)), "default"))
    editor.add_quota(Quota("films", "default", QuotaKind.CATEGORY, "streaming", 60, "UTC"), ["streaming"], [])
    store.devices.seen({"10.9.8.7": MAC, "10.9.8.9": MAC, "10.9.8.8": "aa:bb:cc:dd:ee:02"}, NOW)
    store.log.write([record(logged("10.9.8.7")), record(logged("10.9.8.8"), "http://other.test/")])
    for address, name, host in (("10.9.8.7", "tablet", "private.test"), ("10.9.8.8", "", "other.test")):
        store.unblock.ask(
            [
                UnblockRequest(
                    f"http://{host}/", logged(address), "blacklist", "", "", "", f"{host}, please", NOW, client_name=name
                )
            ]
        )
    store.usage.add([QuotaUse("client:tablet", "films", int(NOW // 60)), QuotaUse("address:10.9.8.8", "films", int(NOW // 60))])


def found(settings: Settings, *words: str) -> dict[str, set[str]]:
    """Returns in which tables each word stands."""
    with closing(sqlite3.connect(settings.data_dir / "gatewayfilter.sqlite3")) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        ]
        rows = {name: repr(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in names}
    return {word: {name for name, text in rows.items() if word in text} for word in words}


@pytest.mark.parametrize("named", ["tablet", "10.9.8.7"])
def test_nothing_of_a_client_remains_and_others_keep_theirs(store: Store, settings: Settings, named: str) -> None:
    fill(store, settings)
    key = load_client_key(settings.data_dir) if settings.log.hash_clients else None
    mine = hash_client("10.9.8.7", key) if key is not None else "10.9.8.7"
    link = BypassLink("http://private.test/", EntryKind.HOST, "private.test", "client:tablet", NOW * 2, False, NOW)
    store.bypass.add(link)
    before = found(settings, mine, "private.test", "other.test")
    assert {"decisions", "unblock_requests", "notifications"} <= before[mine]
    version = store.unblock.changes(0).version
    store.log.write([record(mine, user="")])
    erased = erase_client(store, settings, named)
    assert erased.counts["decisions"] == 2
    assert erased.counts["requests"] == erased.counts["messages"] == 1
    after = found(settings, mine, "private.test", "other.test", MAC)
    kept = {"bypass_links"} if named == "10.9.8.7" else set()  # the link is one of the client, not of the address
    policies = {"policy_items", "list_changes"} if named == "10.9.8.7" else {"list_changes"}
    assert after[mine] <= policies
    assert after["private.test"] == kept
    assert after["other.test"] == before["other.test"]
    assert after[MAC] <= policies | ({"devices"} if named == "10.9.8.7" else set())
    if named == "tablet":
        assert erased.counts["quota_days"] == erased.counts["clients"] == erased.counts["links"] == 1
        assert erased.counts["devices"] == 2
        assert not store.policies.read().clients
    assert [one.url for one in store.unblock.requests()] == ["http://other.test/"], "emptied rows are not listed"
    assert (store.unblock.decided(9), store.unblock.decided(9, before=99)) == ([], [])
    assert [one.url for one in store.bypass.links()] == (["http://private.test/"] if kept else [])
    changes = store.unblock.changes(version)
    assert [one.state for one in changes.requests] == [RequestState.CLOSED], "those who follow the requests hear of it"
    assert erase_client(store, settings, "10.9.8.7").counts["requests"] == 0


def test_a_kept_client_is_only_forgotten(store: Store, settings: Settings) -> None:
    fill(store, settings)
    (settings.data_dir / "backups").mkdir()
    backup = settings.data_dir / "backups" / "before-restore.tar"
    backup.touch()
    moved = [
        settings.data_dir / f"gatewayfilter.sqlite3.{name}" for name in ("damaged-20260101-000000", "newer-20260101-000000-wal")
    ]
    for path in moved:
        path.touch()
    erased = erase_client(store, settings, "tablet", keep=True)
    assert (erased.counts["clients"], erased.counts["decisions"], erased.backups) == (0, 1, (backup, *moved))
    assert set(store.policies.read().clients) == {"tablet"}
    with pytest.raises(PolicyError):
        erase_client(store, settings, "nobody")
    assert erase_client(store, settings, "user:nobody").counts["decisions"] == 0


def test_what_a_device_asked_from_an_address_of_today_is_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.use_cases.traffic.client_erasure.neighbours_now", lambda: {"10.9.8.10": MAC})
    settings = load(environ={}, options={"data_dir": tmp_path / "state"}).settings
    with closing(Store.open(f"sqlite:///{tmp_path / 'a.sqlite3'}")) as store:
        PolicyEditor(store.policies).add_client(Client("tablet", (parse_matcher(MAC),)))
        for number in (10, 11):
            asked = UnblockRequest("http://a.test/", f"10.9.8.{number}", "blacklist", "", "", "", "", NOW)
            store.unblock.ask([asked])
        erase_client(store, settings, "tablet")
        assert [request.client for request in store.unblock.open_requests()] == ["10.9.8.11"]
