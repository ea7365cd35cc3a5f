"""Learned pinned apps, and that it cannot be provoked."""

import fcntl
import os
import ssl
from pathlib import Path

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import Change, ChangeKind, HostAction, HostVerdict, LearnedEntry, ListAction
from gatewayfilter.proxy.listener import pinned_apps
from gatewayfilter.proxy.listener.host_policy import HostPolicy
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp, PinnedApps, PinnedAppsFile, open_pinned_apps
from gatewayfilter.settings import ProxySettings, Settings, TlsSettings
from gatewayfilter.telemetry import Counters
from tests.proxy.connection_fakes import DENY, LOOK, NAMED, PASS, FakeHosts, connect, until, wire_gateway
from tests.proxy.proxy_fakes import Origin

PHONE, APP, SITE = "192.0.2.5", "pinned.example", "site.example"


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def learning(tmp_path: Path, clock: Clock) -> PinnedApps:
    return PinnedApps(PinnedAppsFile(tmp_path / "pinned-apps.json"), after=3, days=1, clock=clock)


def fail(learning: PinnedApps, clock: Clock, times: int, *, every_s: float = 10.0, client: str = PHONE) -> list[bool]:
    found = []
    for _ in range(times):
        clock.now += every_s
        found.append(learning.failed(client, APP))
    return found


def test_a_pinned_app_is_learned_and_expires(learning: PinnedApps, clock: Clock) -> None:
    learning.succeeded(PHONE, SITE)
    assert fail(learning, clock, 3) == [False, False, True]
    assert learning.covers(PHONE, APP)
    assert not learning.covers("192.0.2.6", APP)
    assert not learning.covers(PHONE, SITE)
    clock.now += 86_400
    assert not learning.covers(PHONE, APP)


def test_a_device_that_accepts_nothing_of_ours_gets_nothing(learning: PinnedApps, clock: Clock) -> None:
    assert fail(learning, clock, 20) == [False] * 20
    assert not learning.covers(PHONE, APP)
    assert learning.distrusts(PHONE, SITE)


@pytest.mark.parametrize(("every_s", "times"), [(0.1, 10), (301.0, 10)])
def test_a_burst_is_one_failure_and_old_ones_are_forgotten(
    every_s: float, times: int, learning: PinnedApps, clock: Clock
) -> None:
    learning.succeeded(PHONE, SITE)
    assert not any(fail(learning, clock, times, every_s=every_s))


def test_a_success_begins_anew(learning: PinnedApps, clock: Clock) -> None:
    learning.succeeded(PHONE, SITE)
    fail(learning, clock, 2)
    learning.succeeded(PHONE, APP)
    assert fail(learning, clock, 2) == [False, False]


def test_what_is_learned_outlives_the_worker_and_can_be_removed(learning: PinnedApps, clock: Clock, tmp_path: Path) -> None:
    file = PinnedAppsFile(tmp_path / "pinned-apps.json")
    learning.succeeded(PHONE, SITE)
    fail(learning, clock, 3)
    learning.save()
    assert (tmp_path / "pinned-apps.json").stat().st_mode & 0o777 == 0o600
    other = PinnedApps(file, clock=clock)
    other.refresh()
    assert other.covers(PHONE, APP)
    assert file.remove(APP, "192.0.2.9") == 0
    assert file.remove(APP) == 1
    learning.save()
    other.refresh()
    assert not learning.covers(PHONE, APP)
    assert not other.covers(PHONE, APP)


def test_the_file_is_bounded_and_may_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "pinned-apps.json"
    file = PinnedAppsFile(path)
    assert file.read() == []
    for number in range(5):
        file.add(PinnedApp(PHONE, f"h{number}.example", number, number + 3.0, 3))
    assert [entry.host for entry in file.read()] == ["h2.example", "h3.example", "h4.example"]  # the rest had expired
    path.write_text("[{]")
    assert file.read() == []
    path.write_text('[{"client": 1}]')
    assert file.read() == []


def test_it_keeps_what_it_could_not_write(learning: PinnedApps, clock: Clock, tmp_path: Path) -> None:
    learning.succeeded(PHONE, SITE)
    fail(learning, clock, 3)
    (tmp_path / ".pinned-apps.json.lock").mkdir()
    learning.save()
    assert learning.covers(PHONE, APP)
    (tmp_path / ".pinned-apps.json.lock").rmdir()
    learning.save()
    assert PinnedAppsFile(tmp_path / "pinned-apps.json").read()[0].host == APP


@pytest.mark.parametrize(
    ("host", "passes"),
    [(LOOK, True), (NAMED, False), (DENY, False), (PASS, True)],
)
def test_a_name_that_a_block_speaks_of_never_passes(host: HostVerdict, passes: bool, learning: PinnedApps, clock: Clock) -> None:  # noqa: FBT001
    decision = HostPolicy(FakeHosts({APP: host}), TlsSettings(), None, Counters(), learning)
    assert decision.may_learn(PHONE, APP) == (host is LOOK)
    learning.succeeded(PHONE, SITE)
    fail(learning, clock, 3)  # as if it had been learned before the block came
    assert (decision.judge(PHONE, APP).action.value == "splice") == passes


@pytest.mark.parametrize("host", ["203.0.113.5", "[2001:db8::7]", "2001:db8::7", "203.0.113.5."])
def test_an_address_never_passes(host: str, learning: PinnedApps, clock: Clock) -> None:
    """Whoever connects without a server name would get any site of the server, blocked ones as well."""
    decision = HostPolicy(FakeHosts({}), TlsSettings(), None, Counters(), learning)
    assert not decision.may_learn(PHONE, host)
    learning.succeeded(PHONE, SITE)
    for _ in range(3):
        clock.now += 10
        learning.failed(PHONE, host)  # as an older version did
    assert learning.covers(PHONE, host)
    assert decision.judge(PHONE, host).action is HostAction.INTERCEPT


def test_nothing_is_learned_of_a_name_that_is_blocked(learning: PinnedApps, clock: Clock) -> None:
    learning.succeeded(PHONE, SITE)
    for _ in range(5):
        clock.now += 10
        assert not learning.failed(PHONE, APP, may_learn=False)
    assert learning.distrusts(PHONE, APP)


def test_a_device_has_so_many_names_and_no_more(tmp_path: Path, clock: Clock) -> None:
    counters = Counters()
    file = PinnedAppsFile(tmp_path / "pinned-apps.json")
    learning = PinnedApps(file, after=2, days=1, names=3, counters=counters, clock=clock)
    for client in (PHONE, "192.0.2.6"):
        learning.succeeded(client, SITE)

    def learned(client: str, host: str) -> bool:
        clock.now += 5
        learning.failed(client, host)
        clock.now += 5
        return learning.failed(client, host)

    assert [learned(PHONE, f"{number}.example") for number in range(5)] == [True, True, True, False, False]
    assert counters["pinned_apps_refused"] == 2
    assert learned("192.0.2.6", "4.example")
    clock.now += 86_400  # the first ones have ended
    learning.succeeded(PHONE, SITE)
    assert learned(PHONE, "4.example")


def test_a_full_file_takes_from_whoever_has_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.listener.pinned_apps._MOST_ENTRIES", 4)
    file = PinnedAppsFile(tmp_path / "pinned-apps.json")
    file.add(PinnedApp("192.0.2.6", APP, 0.0, 100.0, 3))
    for number in range(10):
        file.add(PinnedApp(PHONE, f"{number}.example", 1.0, 100.0, 3))
    assert [(entry.client, entry.host) for entry in file.read()] == [
        ("192.0.2.6", APP),
        *((PHONE, f"{number}.example") for number in (7, 8, 9)),
    ]


def test_it_ends_and_comes_back_with_the_blocks_of_pages(learning: PinnedApps, clock: Clock) -> None:
    """Asked anew at each connection, of the lists as they are: in the overlay and in the snapshot."""
    page = LearnedEntry(f"{APP}/casino", ListAction.BLOCK, "gambling", "", "", 0.0, clock.now + 500)
    builder = SnapshotBuilder()
    engine = FilterEngine(Snapshot.from_bytes(builder.build()), clock=clock)
    decision = HostPolicy(engine, TlsSettings(), None, Counters(), learning)
    learning.succeeded(PHONE, SITE)
    fail(learning, clock, 3)

    def passes() -> bool:
        return decision.judge(PHONE, APP).action is HostAction.SPLICE

    assert passes()
    engine.apply([Change(1, ChangeKind.LEARNED_ADDED, learned=page)])
    assert not passes()
    assert not decision.may_learn(PHONE, APP)
    engine.apply([Change(2, ChangeKind.LEARNED_REMOVED, learned=page)])
    assert passes()
    builder.add_learned([page])
    engine.swap(Snapshot.from_bytes(builder.build()))
    assert passes()  # the removal is newer than that snapshot
    other = FilterEngine(Snapshot.from_bytes(builder.build()), clock=clock)
    decision = HostPolicy(other, TlsSettings(), None, Counters(), learning)
    assert not passes()
    clock.now += 500
    assert passes()


async def test_over_real_handshakes(
    state: Path, origin: Origin, client_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An app that trusts its own maker alone, on a device that trusts us."""
    monkeypatch.setattr("gatewayfilter.proxy.listener.pinned_apps._AT_ONCE_S", 0.0)
    port = origin.https.rpartition(":")[2]
    (state / "pinned-apps.json").unlink(missing_ok=True)
    async with wire_gateway(state, {}) as gateway:
        reader, writer, _ = await connect(gateway, f"localhost:{port}")
        await writer.start_tls(client_tls, server_hostname="localhost")
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()
        for count in (1, 2):
            _, writer, _ = await connect(gateway, f"localhost:{port}")
            with pytest.raises(ssl.SSLError):
                await writer.start_tls(ssl.create_default_context(), server_hostname="pinned.example")
            await until(lambda count=count: gateway.counters["tls_failed"] == count)  # type: ignore[misc]
        assert gateway.counters["pinned_apps_learned"] == 1
        assert gateway.pinned_apps is not None
        assert gateway.pinned_apps.covers("127.0.0.1", "pinned.example")
        assert not gateway.pinned_apps.covers("127.0.0.1", "localhost")


async def test_an_app_that_hangs_up_after_the_handshake(
    state: Path, origin: Origin, client_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.listener.pinned_apps._AT_ONCE_S", 0.0)
    port = origin.https.rpartition(":")[2]
    async with wire_gateway(state, {}) as gateway:
        assert gateway.pinned_apps is not None
        gateway.pinned_apps.succeeded("127.0.0.1", "another.example")
        for count in (1, 2):
            _, writer, _ = await connect(gateway, f"localhost:{port}")
            await writer.start_tls(client_tls, server_hostname="quiet.example")
            writer.close()
            await until(lambda count=count: gateway.listener.open_connections == 0 and gateway.counters["connections"] == count)  # type: ignore[misc]
        assert gateway.counters["pinned_apps_learned"] == 1
        assert gateway.pinned_apps.covers("127.0.0.1", "quiet.example")


def test_the_file_of_an_earlier_release_is_taken_over(tmp_path: Path) -> None:
    PinnedAppsFile(tmp_path / "pass-through.json").add(PinnedApp("192.0.2.1", "a.example", 1.0, 2.0, 3))
    files = [PinnedAppsFile.in_folder(tmp_path) for _ in range(2)]
    assert [[entry.host for entry in file.read()] for file in files] == [["a.example"], ["a.example"]]
    assert [path.name for path in tmp_path.iterdir()] == ["pinned-apps.json"]


def test_a_later_file_of_an_earlier_release_replaces_nothing(tmp_path: Path) -> None:
    PinnedAppsFile.in_folder(tmp_path).add(PinnedApp("192.0.2.1", "a.example", 1.0, 2.0, 3))
    PinnedAppsFile(tmp_path / "pass-through.json").add(PinnedApp("192.0.2.1", "b.example", 1.0, 2.0, 3))
    assert [entry.host for entry in PinnedAppsFile.in_folder(tmp_path).read()] == ["a.example"]


@pytest.mark.parametrize(
    ("tls", "proxy", "opened"),
    [({}, {}, True), ({"pinned_apps": False}, {}, False), ({}, {"unknown": "block"}, False), ({}, {"unknown": "hold"}, False)],
)
def test_nothing_is_learned_where_it_is_turned_off_or_the_unknown_is_not_allowed(
    tls: dict[str, object], proxy: dict[str, object], tmp_path: Path, clock: Clock, *, opened: bool
) -> None:
    PinnedAppsFile.in_folder(tmp_path).add(PinnedApp(PHONE, APP, clock.now, clock.now + 10, 3))
    settings = Settings(data_dir=tmp_path, tls=TlsSettings.model_validate(tls), proxy=ProxySettings.model_validate(proxy))
    found = open_pinned_apps(settings, Counters(), clock)
    assert (found is not None) is opened
    assert found is None or found.covers(PHONE, APP), "what was learned before is known from the beginning"


def test_a_name_is_covered_and_distrusted_up_to_its_time(learning: PinnedApps, clock: Clock) -> None:
    learning.succeeded(PHONE, SITE)
    learned_at = clock.now + 30
    assert fail(learning, clock, 3)[-1]
    for after_s, covered in ((86_399.9, True), (86_400.0, False)):
        clock.now = learned_at + after_s
        assert learning.covers(PHONE, APP) is covered
    clock.now = failed_at = 500_000.0
    learning.succeeded(PHONE, SITE)
    learning.failed(PHONE, APP)
    for after_s, distrusted in ((599.9, True), (600.0, False)):
        clock.now = failed_at + after_s
        assert learning.distrusts(PHONE, APP) is distrusted
        assert not learning.distrusts(PHONE, SITE), "it trusts us elsewhere"


def test_a_device_trusts_us_for_a_day_after_a_request(learning: PinnedApps, clock: Clock) -> None:
    learning.succeeded(PHONE, SITE)
    trusted_at = clock.now
    for after_s, trusts in ((86_399.0, True), (86_400.0, False)):
        clock.now = trusted_at + after_s
        learning.failed(PHONE, f"{after_s}.example")
        assert learning.distrusts(PHONE, SITE) is not trusts
    clock.now += 599.9
    assert learning.distrusts(PHONE, SITE)
    clock.now += 0.1
    assert not learning.distrusts(PHONE, SITE), "a device that fails no more gets the page"


@pytest.mark.parametrize(("every_s", "learned"), [(1.9, False), (2.0, True), (299.9, True), (300.0, False)])
def test_which_failures_are_three_within_ten_minutes(
    every_s: float, learning: PinnedApps, clock: Clock, *, learned: bool
) -> None:
    learning.succeeded(PHONE, SITE)
    assert fail(learning, clock, 3, every_s=every_s)[-1] is learned


def test_names_that_have_ended_count_no_more(tmp_path: Path, clock: Clock) -> None:
    learning = PinnedApps(PinnedAppsFile(tmp_path / "x.json"), after=1, days=1, names=1, clock=clock)
    learning.succeeded(PHONE, SITE)
    assert learning.failed(PHONE, "one.example")
    ends_at = clock.now + 86_400
    clock.now = ends_at - 10
    learning.succeeded(PHONE, SITE)
    assert not learning.failed(PHONE, "two.example")
    clock.now = ends_at
    assert learning.failed(PHONE, "three.example")


def test_of_too_many_devices_the_one_unseen_for_longest_is_forgotten(
    learning: PinnedApps, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_apps, "_MOST_WATCHED", 2)
    for client in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"):
        learning.succeeded(client, SITE)
    for client in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
        learning.failed(client, APP)
        assert learning.distrusts(client, SITE) is (client == "192.0.2.2"), client


def test_the_version_of_a_file_is_that_of_what_it_holds(tmp_path: Path) -> None:
    file = PinnedAppsFile(tmp_path / "x.json")
    assert (file.version(), file.remove(APP)) == ((0, 0), 0)
    assert not list(tmp_path.iterdir())
    file.add(PinnedApp(PHONE, APP, 1.0, 2.0, 3))
    first = file.version()
    assert (file.version(), file.remove("other.example"), file.version()) == (first, 0, first)
    file.add(PinnedApp(PHONE, APP, 1.0, 3.0, 3))
    assert file.version() != first
    assert [entry.expires_at for entry in file.read()] == [3.0]


def test_of_equally_many_entries_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_apps, "_MOST_ENTRIES", 3)
    file = PinnedAppsFile(tmp_path / "x.json")
    for client, host in (("b", "1.example"), ("b", "2.example"), ("a", "3.example"), ("a", "4.example")):
        file.add(PinnedApp(client, host, 0.0, 100.0, 3))
    assert [entry.host for entry in file.read()] == ["2.example", "3.example", "4.example"]


def test_the_file_is_locked_while_it_is_written_and_the_lock_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = PinnedAppsFile(tmp_path / "x.json")
    free: list[bool] = []

    def write(self: PinnedAppsFile, entries: object) -> None:
        descriptor = os.open(tmp_path / ".x.json.lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free.append(True)
        except BlockingIOError:
            free.append(False)
        finally:
            os.close(descriptor)

    monkeypatch.setattr(PinnedAppsFile, "_write", write)
    before = os.umask(0)
    try:
        for _ in range(2):
            file.add(PinnedApp(PHONE, APP, 1.0, 2.0, 3))
    finally:
        os.umask(before)
    assert free == [False, False]
    assert (tmp_path / ".x.json.lock").stat().st_mode & 0o777 == 0o600
