import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gatewayfilter.use_cases.access import throttle as throttle_module
from gatewayfilter.use_cases.access.throttle import LogInThrottle, network_of


class Now:
    def __init__(self) -> None:
        self.value = 10_000.0

    def __call__(self) -> float:
        return self.value


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def throttle(now: Now) -> LogInThrottle:
    return LogInThrottle(now)


def guesses(throttle: LogInThrottle, now: Now, seconds: float, account: str, network: str, **source: object) -> int:
    """How many attempts somebody gets who tries whenever it is permitted."""
    made, end = 0, now.value + seconds
    while now.value < end:
        wait = throttle.begin(account, network, **source)  # type: ignore[arg-type]
        made += wait <= 0
        now.value += max(wait, 0.0)
    return made


def test_delays_double_up_to_the_longest(throttle: LogInThrottle, now: Now) -> None:
    for _ in range(4):
        assert throttle.begin("ada", "n", known=True) == 0
    waits = []
    for _ in range(12):
        waits.append(throttle.begin("ada", "n", known=True))
        now.value += waits[-1]
        assert throttle.begin("ada", "n", known=True) == 0
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_one_network_has_few_guesses_a_day(throttle: LogInThrottle, now: Now) -> None:
    assert guesses(throttle, now, 86_400.0, "ada", "192.0.2.1") < 120
    for number in range(500):  # nor may it try one password with many names
        throttle.begin(f"name{number}", "192.0.2.9")
    assert throttle.begin("another", "192.0.2.9") > 0


def test_many_networks_have_a_guess_a_minute(throttle: LogInThrottle, now: Now) -> None:
    start, made = now.value, 0
    for number in range(1_000):
        wait = throttle.begin("ada", f"192.0.2.{number}")
        made += wait <= 0
        assert wait <= 60.0
        now.value += wait
    assert made / ((now.value - start) / 60) < 3


def test_the_owner_is_not_locked_out(throttle: LogInThrottle, now: Now) -> None:
    for number in range(2_000):
        throttle.begin("ada", f"10.0.{number % 250}.{number // 250}")
    assert throttle.begin("ada", "192.0.2.1") > 0
    assert throttle.begin("ada", "192.0.2.1", known=True) == 0
    guesses(throttle, now, 3_000.0, "ada", "198.51.100.1")  # behind the same address as the owner
    throttle.begin("ada", "198.51.100.1")
    assert throttle.begin("ada", "198.51.100.1") > 0
    assert throttle.begin("ada", "198.51.100.1", device="phone") == 0


def test_a_device_has_no_free_guesses(throttle: LogInThrottle, now: Now) -> None:
    assert guesses(throttle, now, 86_400.0, "ada", "192.0.2.1", device="stolen") < 120


def test_success_forgets(throttle: LogInThrottle, now: Now) -> None:
    for _ in range(50):
        assert throttle.begin("ada", "n") == 0
        throttle.succeeded("ada", "n")
    for _ in range(3):
        throttle.begin("ada", "n")
    now.value += 7_200.0
    for _ in range(4):
        assert throttle.begin("ada", "n") == 0


def test_success_with_one_account_does_not_clear_a_network(throttle: LogInThrottle) -> None:
    for number in range(10):
        throttle.begin(f"victim{number}", "n")
    throttle.succeeded("own", "n")
    assert throttle.begin("own", "n") == 0  # one was given back
    assert throttle.begin("own", "n") > 0


def test_attempts_at_the_same_time_are_counted(throttle: LogInThrottle) -> None:
    gate = threading.Barrier(16)

    def attempt(_: int) -> bool:
        gate.wait()
        return throttle.begin("ada", "n") == 0

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(attempt, range(16))) == 4


def test_it_is_bounded(throttle: LogInThrottle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle_module, "_MOST", 100)
    for number in range(1_000):
        throttle.begin(f"name{number}", f"n{number}")
    assert len(throttle._counts) <= 100


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("", "unknown"),
        ("testclient", "unknown"),
    ],
)
def test_networks(address: str, network: str) -> None:
    assert network_of(address) == network


def test_all_networks_together_have_few_guesses_at_codes(throttle: LogInThrottle, now: Now) -> None:
    made, end = 0, now.value + 7 * 86_400.0
    while now.value < end:
        wait = throttle.begin_code("ada")
        made += wait <= 0
        now.value += max(wait, 0.0)
    assert 20 < made <= 20 + 14 + 7 * 24  # that of a million codes, three of which are good at a time
    now.value += 86_400.0
    assert throttle.begin_code("ada") == 0  # a pause of a day forgets nothing
    assert throttle.begin_code("ada") > 3_000
    assert throttle.begin_code("ada", device="hers") == 0
    throttle.code_succeeded("ada")
    assert [throttle.begin_code("ada") for _ in range(20)] == [0.0] * 20


def test_the_newest_are_counted_when_there_are_too_many(throttle: LogInThrottle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle_module, "_MOST", 30)
    for number in range(4):
        throttle.begin("eve", "n0", known=True)
        throttle.begin(f"name{number}", f"n{number}", known=True)
    assert throttle.begin("eve", "n0", known=True) == 1
    for number in range(14):
        throttle.begin(f"other{number}", f"o{number}", known=True)
    assert len(throttle._counts) == 30
    for _ in range(4):
        assert throttle.begin("ada", "n", known=True) == 0
    assert throttle.begin("ada", "n", known=True) == 1
    assert throttle.begin("eve", "n0", known=True) == 0, "the oldest is forgotten"


@pytest.mark.parametrize(("pause_s", "waits"), [(3_600.0, True), (3_601.0, False)])
def test_an_hour_without_a_failure_forgets(throttle: LogInThrottle, now: Now, pause_s: float, *, waits: bool) -> None:
    for _ in range(4):
        throttle.begin("ada", "n", known=True)
    now.value += pause_s
    throttle.begin("ada", "n", known=True)
    assert (throttle.begin("ada", "n", known=True) > 0) is waits


def test_a_success_gives_a_network_no_more_than_it_took(throttle: LogInThrottle) -> None:
    for _ in range(3):
        throttle.succeeded("own", "n")
    throttle.begin("own", "n")
    throttle.succeeded("own", "n")
    assert [throttle.begin(f"name{number}", "n") for number in range(11)] == [0.0] * 10 + [1.0]


def test_codes_of_a_browser_are_forgotten_by_its_success_alone(throttle: LogInThrottle) -> None:
    for device in ("", "hers"):
        assert [throttle.begin_code("ada", device=device) for _ in range(21)] == [0.0] * 20 + [1.0]
    throttle.code_succeeded("ada", device="hers")
    assert throttle.begin_code("ada", device="hers") == 0
    assert throttle.begin_code("ada") == 1
    throttle.code_succeeded("nobody")
