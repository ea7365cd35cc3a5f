"""The shared cache against real servers: conformance, hostile values, outages, a cluster."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gatewayfilter.model import Classification, ContentId, ContentKind, Fingerprint
from gatewayfilter.scaleout.redis.cached_fingerprints import CachedFingerprints
from gatewayfilter.scaleout.redis.cached_value import ValueCodec, key_of
from gatewayfilter.scaleout.redis.circuit_breaker import CircuitBreaker
from gatewayfilter.scaleout.redis.connection import RedisAwayError, RedisConnection
from gatewayfilter.scaleout.redis.deadline import BoundedSocket
from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.e2e.e2e_gateway import until
from tests.scaleout.redis.redis_servers import (
    Server,
    cluster,
    cluster_url,
    masters_of,
    notice_deaths,
    quiet_clock,
    server,
    wait_for_replicas,
    why_not,
)

pytestmark = [pytest.mark.services, pytest.mark.skipif(bool(why_not()), reason=why_not())]

CODEC = ValueCodec(b"k" * 32)
HARMFUL = Classification("gambling", 42.5, 20.0, {"gambling": 42.5}, (), "Casino", "utf-8", bytes(16))
HARMLESS = Classification("", 1.0, 20.0)
NOW = 1000.0


def content(number: int = 0) -> ContentId:
    return ContentId(ContentKind.PAGE, number.to_bytes(2) * 8, b"p" * 16)


def fingerprint(number: int = 0, said: Classification = HARMFUL, judge: str = "", until: float = NOW + 900) -> Fingerprint:
    return Fingerprint(content(number), said, judge, "" if judge else "words-1", "http://a.example/", NOW, until)


class Machine:
    """A machine with a database of its own and the shared cache."""

    def __init__(self, folder: Path, url: str, timeout_s: float = 20.0, clock: Callable[[], float] = time.monotonic) -> None:
        folder.mkdir()
        self.counters = Counters()
        self.store = Store.open(f"sqlite:///{folder / 'own.sqlite3'}")
        self.connection = RedisConnection(url, timeout_s, CircuitBreaker("the cache", "alone", clock))
        self.cache = RedisFingerprintCache(self.connection, CODEC, self.counters)
        self.fingerprints = CachedFingerprints(self.store.fingerprints, self.cache, self.counters, lambda: NOW)

    def close(self) -> None:
        self.connection.close()
        self.store.close()


@pytest.fixture
def machines(redis: Server, tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    with closing(Machine(tmp_path / "a", redis.url)) as one, closing(Machine(tmp_path / "b", redis.url)) as two:
        yield one, two


def test_what_one_machine_judged_the_other_knows(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.fingerprints.put_all([fingerprint(number) for number in range(200)])
    wanted = [content(number) for number in range(250)]
    found = two.fingerprints.find_all(wanted, NOW)
    assert found == {content(number): fingerprint(number) for number in range(200)}
    assert (two.counters["cache_hits"], two.counters["cache_misses"]) == (200, 50)
    assert two.store.fingerprints.stats()["page"] == 0
    two.fingerprints.find_all(wanted[:200], NOW + 1)
    assert two.counters["cache_hits"] == 200, "from memory"


def test_one_server_is_asked_by_one_command(machines: tuple[Machine, Machine], redis: Server) -> None:
    one, two = machines
    one.fingerprints.put_all([fingerprint(number) for number in range(20)])
    one.fingerprints.find(content(99), NOW)  # so that the server has the script
    with closing(redis.client()) as client:
        client.config_resetstat()
        assert len(two.fingerprints.find_all([content(number) for number in range(25)], NOW)) == 20
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == 1


def test_a_server_that_lost_its_scripts_is_read(machines: tuple[Machine, Machine], redis: Server) -> None:
    one, two = machines
    one.fingerprints.put_all([fingerprint(number) for number in range(3)])
    for number in range(3):
        with closing(redis.client()) as client:
            client.script_flush()
        assert two.fingerprints.find(content(number), NOW) == fingerprint(number)
    assert two.counters["cache_away"] == 0


def test_a_hit_extends_the_month_and_a_reviewer_is_not_overwritten(machines: tuple[Machine, Machine], redis: Server) -> None:
    one, two = machines
    one.fingerprints.put(fingerprint(until=NOW + 10))
    two.fingerprints.touch({content(): 3}, NOW + 500)
    two.fingerprints.touch({content(): 1}, NOW + 100)
    found = two.fingerprints.find(content(), NOW + 400)
    assert found is not None
    assert (found.hits, found.expires_at) == (4, NOW + 500)
    assert 400_000 < redis.client().pttl(key_of(CODEC.space, content())) <= 500_000
    two.fingerprints.put(fingerprint(said=HARMLESS, judge="ada"))
    one.fingerprints.put(fingerprint())
    assert one.fingerprints.find(content(), NOW) == fingerprint(said=HARMLESS, judge="ada")
    assert one.fingerprints.remove(content())
    assert two.cache.find_all([content()], NOW) == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: value[:30],
        lambda value: b"3" + value[1:],
        lambda value: b"1" + value[1:],
        lambda value: value[:1] + b"P" + value[2:],
        lambda value: value[:60] + b"!" + value[61:],
        lambda value: value[:26] + b"x" * 14 + value[40:],
        lambda value: value + b" " * 40_000,
        lambda value: CODEC.encode(fingerprint(7)) or value,
        lambda value: ValueCodec(b"x" * 32).encode(fingerprint()) or value,
    ],
    ids=["cut", "unknown version", "another version", "flag", "text", "expiry", "too long", "another content", "another key"],
)
def test_a_hostile_value_is_a_counted_miss(machines: tuple[Machine, Machine], redis: Server, damage: object) -> None:
    one, two = machines
    one.fingerprints.put(fingerprint())
    key = key_of(CODEC.space, content())
    value = redis.client().get(key)
    assert isinstance(value, bytes)
    redis.client().set(key, damage(value))  # type: ignore[operator]
    assert two.fingerprints.find(content(), NOW) is None
    assert two.counters["cache_refused"] == 1


def test_a_key_of_another_type_is_a_miss_and_is_overwritten(machines: tuple[Machine, Machine], redis: Server) -> None:
    one, two = machines
    redis.client().rpush(key_of(CODEC.space, content()), "x")
    assert two.fingerprints.find(content(), NOW) is None
    assert two.counters["cache_refused"] == 1
    two.fingerprints.touch({content(): 1}, NOW + 9)
    one.fingerprints.put(fingerprint())
    assert two.fingerprints.find(content(), NOW) == fingerprint()
    assert not one.cache.is_away
    assert not two.cache.is_away


def test_a_value_that_is_too_long_stays_at_home(machines: tuple[Machine, Machine], redis: Server) -> None:
    one, _ = machines
    long = Classification("", 1.0, 20.0, title="x" * 40_000)
    one.fingerprints.put(fingerprint(said=long))
    assert redis.client().dbsize() == 0
    assert one.fingerprints.find(content(), NOW) == fingerprint(said=long)


def test_an_outage_degrades_to_the_database_and_ends_by_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with (
        server(tmp_path / "redis") as redis,
        closing(Machine(tmp_path / "a", redis.url)) as one,
    ):
        one.fingerprints.put(fingerprint(1))
        redis.kill()
        one.fingerprints.put(fingerprint(2))
        for _ in range(50):
            assert one.fingerprints.find(content(2), NOW) == fingerprint(2)
        assert one.counters["cache_away"] == 50
        assert len([record for record in caplog.records if "does not answer" in record.message]) == 1
        redis.start_again()
        limit = time.monotonic() + 60
        while redis.client().get(key_of(CODEC.space, content(2))) is None:  # what was written meanwhile comes later
            assert time.monotonic() < limit
            one.fingerprints.find(content(9), NOW)
            time.sleep(0.05)
        assert "answers again" in caplog.text


def test_a_slow_server_costs_its_bound_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest waits for it are added up: how long a busy machine takes for all else says nothing of it."""
    now, waits = 0.0, list[float]()
    arm = BoundedSocket._arm

    def meets() -> bool:
        nonlocal now
        now += 10.0  # who failed may try again
        one.fingerprints.find(content(), NOW)
        return not one.cache.is_away

    def noted(waiting: BoundedSocket) -> None:
        arm(waiting)
        waits.append(waiting.gettimeout())

    with server(tmp_path / "redis") as redis, closing(Machine(tmp_path / "a", redis.url, 0.2, lambda: now)) as one:
        until("an answer", meets)
        away = one.counters["cache_away"]
        redis.client().execute_command("CLIENT", "PAUSE", "60000", "ALL")
        monkeypatch.setattr(BoundedSocket, "_arm", noted)
        for number in range(100):
            assert one.fingerprints.find(content(number), NOW) is None
    assert 0 < sum(waits) < 1.0
    assert one.counters["cache_away"] == away + 100


def test_a_wrong_password_is_told_without_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with server(tmp_path / "redis") as redis:
        redis.client().config_set("requirepass", "right")
        with closing(Machine(tmp_path / "a", redis.url.replace("://", "://:hush-hush@"))) as one:
            assert one.fingerprints.find(content(), NOW) is None
    assert "the password or its rights are refused" in caplog.text
    assert "hush" not in caplog.text


@pytest.mark.timeout(300)
def test_a_cluster_loses_no_value_with_a_master(tmp_path: Path) -> None:
    wanted = [content(number) for number in range(1000)]
    with (
        cluster(tmp_path / "cluster") as servers,
        closing(Machine(tmp_path / "patient", cluster_url(servers))) as patient,
        closing(Machine(tmp_path / "a", cluster_url(servers), 1.0)) as one,
    ):
        patient.cache.put_all([fingerprint(number) for number in range(1000)], NOW)
        assert len(patient.cache.find_all(wanted, NOW)) == 1000

        def meets() -> bool:
            with suppress(RedisAwayError):
                return len(one.cache.find_all(wanted, NOW)) == 1000
            return False

        until("the values", meets)
        masters = masters_of(servers)
        assert all(server.client().dbsize() > 100 for server in masters)
        wait_for_replicas(masters)
        notice_deaths(servers)
        masters[0].kill()
        begun, found, spent_s = time.monotonic(), 0, quiet_clock()
        while found < 1000 and spent_s() < 20:
            now, asking_s = NOW + 10 * (time.monotonic() - begun), quiet_clock()
            found = len(one.fingerprints.find_all(wanted, now))
            assert asking_s() < 8
            time.sleep(0.05)
        assert found == 1000
