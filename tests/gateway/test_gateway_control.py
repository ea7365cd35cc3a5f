"""Up, down, status and the watchdog, on a kernel in memory. On a real one: tests/netns."""

import itertools
import threading

import pytest

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.control import Gateway, GatewayState
from gatewayfilter.gateway.plan import GatewayPlan
from gatewayfilter.gateway.runtime_state import RuntimeState, RuntimeStateFile
from gatewayfilter.gateway.watchdog import ASK_EVERY, OPEN_AFTER, RESTORE_EVERY, UNANSWERED, Watchdog
from tests.gateway.gateway_fakes import FakeKernel

PLAN = GatewayPlan(lan=("lan0",), proxy_port=8080)
OPENING = GatewayPlan(lan=("lan0",), proxy_port=8080, fail_open=True)
FORWARD = "net/ipv4/ip_forward"


@pytest.fixture
def gateway(kernel: FakeKernel, memory: RuntimeStateFile) -> Gateway:
    return Gateway(PLAN, kernel, memory)


def test_up_and_down_leave_the_kernel_as_it_was(gateway: Gateway, kernel: FakeKernel) -> None:
    before = dict(kernel.switches)
    assert gateway.status().state is GatewayState.DOWN
    assert gateway.up() is True
    found = gateway.status()
    assert (found.state, found.problems, found.forwarding, found.listening) == (GatewayState.UP, (), (4, 6), (4, 6))
    assert kernel.switches["net/ipv6/conf/wan0/accept_ra"] == "2"
    assert kernel.switches["net/ipv4/conf/lan0/send_redirects"] == "0"
    assert gateway.down() is True
    assert kernel.switches == before
    assert kernel.table == ""
    assert gateway.down() is False


def test_up_twice_remembers_the_first_state(gateway: Gateway, kernel: FakeKernel) -> None:
    gateway.up()
    assert gateway.up() is False
    gateway.down()
    assert kernel.switches[FORWARD] == "0"


def test_up_after_a_change_of_the_settings_loads_the_new_rules(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile
) -> None:
    gateway.up()
    other = Gateway(GatewayPlan(lan=("lan0",), proxy_port=8080, reject_dot=True), kernel, memory)
    assert other.status().state is GatewayState.OUTDATED
    assert "other settings" in other.status().problems[0]
    assert other.up() is True
    assert other.status().state is GatewayState.UP
    other.down()
    assert kernel.switches[FORWARD] == "0"


@pytest.mark.parametrize("fail_at", ["load", FORWARD, "net/ipv6/conf/all/forwarding"])
def test_a_step_that_fails_takes_all_before_it_back(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, fail_at: str
) -> None:
    before = dict(kernel.switches)
    kernel.fail_at = fail_at
    with pytest.raises(GatewayError):
        gateway.up()
    assert kernel.switches == before
    assert kernel.table == ""
    assert memory.read() is None


def test_nothing_is_changed_while_no_filter_listens(gateway: Gateway, kernel: FakeKernel) -> None:
    kernel.ports = {}
    with pytest.raises(GatewayError, match="nothing listens on port 8080"):
        gateway.up(wait_s=0.05)
    assert kernel.table == ""
    assert gateway.up(check=False) is True
    assert "nothing listens" in gateway.status().problems[0]


def test_a_filter_that_goes_away_meanwhile_takes_the_rules_with_it(gateway: Gateway, kernel: FakeKernel) -> None:
    kernel.stopped_after = 1  # there before the rules are loaded, gone after
    with pytest.raises(GatewayError, match="stopped to listen"):
        gateway.up()
    assert kernel.table == ""
    assert kernel.switches[FORWARD] == "0"


def test_a_failing_change_brings_the_old_rules_back(gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    gateway.up()
    old = kernel.table
    kernel.stopped_after = 1
    with pytest.raises(GatewayError):
        Gateway(GatewayPlan(lan=("lan0",), proxy_port=8080, reject_dot=True), kernel, memory).up()
    assert kernel.table == old
    kernel.stopped_after = 1000
    assert gateway.status().state is GatewayState.UP


def test_an_interface_that_is_not_there_is_named(kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    with pytest.raises(GatewayError, match="no interface lan9; there are lan0, lo, wan0"):
        Gateway(GatewayPlan(lan=("lan9",), proxy_port=8080), kernel, memory).up()


def test_rules_that_somebody_changed_or_made_are_told(gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    gateway.up()
    kernel.table += "\n# by hand"
    assert gateway.status().state is GatewayState.CHANGED
    assert gateway.up() is True
    assert gateway.status().state is GatewayState.UP
    memory.forget()
    assert gateway.status().state is GatewayState.FOREIGN


def test_forwarding_that_was_switched_off_is_told(gateway: Gateway, kernel: FakeKernel) -> None:
    gateway.up()
    kernel.switches[FORWARD] = "0"
    assert gateway.status().problems == ("the kernel does not forward IPv4: gateway up switches it on",)
    assert gateway.up() is True
    assert (gateway.status().problems, gateway.up()) == ((), False)


COUNTED = """
table inet gatewayfilter {
    chain divert {
        tcp dport { 80, 443 } counter packets 7 bytes 420 redirect to :8080
        tcp dport 8443 counter packets 10 bytes 600 redirect to :8080
    }
    chain forward {
        tcp dport { 80, 443 } ct status & dnat == 0 counter packets 100 bytes 1 reject with tcp reset
        udp dport { 80, 443 } counter packets 1000 bytes 1 reject with icmpx port-unreachable comment "QUIC"
        udp dport 443 counter packets 20000 bytes 1 reject with icmpx port-unreachable comment "QUIC"
        tcp dport 853 counter packets 300000 bytes 1 reject with tcp reset comment "DNS over TLS"
        udp dport 853 counter packets 4000000 bytes 1 reject with icmpx port-unreachable comment "DNS over QUIC"
    }
}
"""


def test_what_the_rules_counted(gateway: Gateway, kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway.up()
    monkeypatch.setattr(kernel, "counted", lambda: COUNTED)
    assert (gateway.status().redirected, gateway.status().quic_refused) == (17, 21_000)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"digest": 1}', '{"digest": "", "listing": "", "switches": 3}', "null"],
)
def test_a_damaged_memory_is_none(memory: RuntimeStateFile, text: str) -> None:
    memory.write(RuntimeState())
    memory.path.write_text(text)
    assert memory.read() is None


def test_the_memory_never_makes_root_set_what_is_not_ours(memory: RuntimeStateFile) -> None:
    switches = {
        "net/ipv4/ip_forward": "0",
        "kernel/core_pattern": "1",
        "net/ipv4/../../kernel/x": "1",
        "net/ipv4/tcp_mem": "9 9 9",
    }
    memory.write(RuntimeState(switches=switches))
    found = memory.read()
    assert found is not None
    assert found.switches == {"net/ipv4/ip_forward": "0"}


class TestWatchdog:
    @pytest.fixture
    def gateway(self, kernel: FakeKernel, memory: RuntimeStateFile) -> Gateway:
        return Gateway(OPENING, kernel, memory)

    @pytest.fixture
    def watchdog(self, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> Watchdog:
        gateway.up()
        return Watchdog(gateway, kernel, memory, 8080)

    def test_it_opens_after_some_looks_and_closes_at_the_first(
        self, watchdog: Watchdog, gateway: Gateway, kernel: FakeKernel
    ) -> None:
        kernel.ports = {}
        for _ in range(OPEN_AFTER - 1):
            assert watchdog.look()
            assert gateway.status().state is GatewayState.UP
        assert watchdog.look()
        assert gateway.status().state is GatewayState.OPEN
        kernel.ports = {8080: frozenset({4})}
        assert watchdog.look()
        assert gateway.status().state is GatewayState.UP

    def test_a_short_fall_does_not_open(self, watchdog: Watchdog, gateway: Gateway, kernel: FakeKernel) -> None:
        for _ in range(5):
            kernel.ports = {}
            for _ in range(OPEN_AFTER - 1):
                watchdog.look()
            kernel.ports = {8080: frozenset({4})}
            watchdog.look()
            assert gateway.status().state is GatewayState.UP

    def test_it_opens_when_workers_listen_but_none_answers(
        self, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile
    ) -> None:
        answers = True
        gateway.up()
        watchdog = Watchdog(gateway, kernel, memory, 8080, answers=lambda: answers)
        for _ in range(3 * ASK_EVERY):
            watchdog.look()
        assert gateway.status().state is GatewayState.UP
        answers = False
        looks = 0
        while gateway.status().state is GatewayState.UP and looks <= ASK_EVERY + UNANSWERED:
            watchdog.look()
            looks += 1
        assert gateway.status().state is GatewayState.OPEN
        assert UNANSWERED <= looks <= ASK_EVERY + UNANSWERED
        watchdog.look()
        assert gateway.status().state is GatewayState.OPEN, "it listens, but that is not enough"
        answers = True
        watchdog.look()
        assert gateway.status().state is GatewayState.UP

    def test_a_question_left_open_now_and_then_does_not_open(
        self, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile
    ) -> None:
        turns = itertools.cycle([*[False] * (UNANSWERED - 1), True])
        gateway.up()
        watchdog = Watchdog(gateway, kernel, memory, 8080, answers=lambda: next(turns))
        for _ in range(20 * ASK_EVERY):
            watchdog.look()
            assert gateway.status().state is GatewayState.UP

    def test_it_ends_when_the_gateway_is_down_or_closed_for_good(
        self, watchdog: Watchdog, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile
    ) -> None:
        Gateway(PLAN, kernel, memory).up()
        assert watchdog.look() is False
        gateway.down()
        assert watchdog.look() is False
        assert kernel.table == ""

    def test_rules_are_looked_for_now_and_then(
        self, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        restored: list[int] = []
        looks = 0
        gateway.up()
        watchdog = Watchdog(gateway, kernel, memory, 8080, restoring=True)
        monkeypatch.setattr(gateway, "restore", lambda: restored.append(looks))
        while looks <= 2 * RESTORE_EVERY:
            assert watchdog.look() is True
            looks += 1
        assert restored == [0, RESTORE_EVERY, 2 * RESTORE_EVERY]

    def test_only_what_may_restore_does(self, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> None:
        gateway.up()
        kernel.table = ""
        assert Watchdog(gateway, kernel, memory, 8080).restore() is False
        assert kernel.table == ""
        assert Watchdog(gateway, kernel, memory, 8080, restoring=True).restore() is True
        assert kernel.table
        assert Watchdog(gateway, kernel, memory, 8080, restoring=True).restore() is False

    def test_how_often_the_filter_is_asked(self, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> None:
        answers, asked = [True] * 100, 0

        def ask() -> bool:
            nonlocal asked
            asked += 1
            return answers.pop()

        gateway.up()
        watchdog = Watchdog(gateway, kernel, memory, 8080, answers=ask)
        for _ in range(3 * ASK_EVERY):
            watchdog.look()
        assert asked == 3
        answers.append(False)
        for _ in range(ASK_EVERY):
            watchdog.look()
        assert asked == 4
        watchdog.look()  # after a failure at once
        watchdog.look()
        assert asked == 5
        kernel.ports = {}
        for _ in range(2):  # no port, no question
            watchdog.look()
        assert asked == 5

    def test_there_is_one_at_a_time(self, watchdog: Watchdog, memory: RuntimeStateFile) -> None:
        stop = threading.Event()
        stop.set()
        assert watchdog.run(stop) is True
        assert memory.is_watched() is False
        with RuntimeStateFile(memory.path.parent).watching() as only:
            assert only is True
            assert memory.is_watched() is True
            assert watchdog.run(stop) is False

    def test_status_tells_when_nobody_watches(self, watchdog: Watchdog, gateway: Gateway) -> None:
        del watchdog
        assert "no watchdog is running" in gateway.status().problems[0]

    def test_what_goes_because_of_a_down_is_not_put_back(
        self, gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The keeper hears of the deleted table before `down` has forgotten the rest: it has to wait and ask again."""
        gateway.up()
        keeper = Watchdog(gateway, kernel, memory, 8080, restoring=True)
        restored: list[bool] = []
        hearing = threading.Thread(target=lambda: restored.append(keeper.restore()))
        forget = RuntimeStateFile.forget

        def forget_later(this: RuntimeStateFile) -> None:
            hearing.start()
            hearing.join(0.2)  # it is waiting for the lock now
            assert restored == []
            forget(this)

        monkeypatch.setattr(RuntimeStateFile, "forget", forget_later)
        gateway.down()
        hearing.join(10)
        assert restored == [False]
        assert kernel.table == ""

    @pytest.mark.parametrize("fail_open", [False, True])
    def test_rules_that_vanish_are_loaded_again_but_not_after_a_down(
        self, kernel: FakeKernel, memory: RuntimeStateFile, *, fail_open: bool
    ) -> None:
        gateway = Gateway(OPENING if fail_open else PLAN, kernel, memory)
        gateway.up()
        keeper = Watchdog(gateway, kernel, memory, 8080, restoring=True)
        assert keeper.look() is True
        kernel.table = ""  # nft flush ruleset
        assert Watchdog(gateway, kernel, memory, 8080).look() is fail_open
        assert kernel.table == ""
        for _ in range(RESTORE_EVERY):
            assert keeper.look() is True
        assert gateway.status().state is GatewayState.UP
        gateway.down()
        for _ in range(RESTORE_EVERY):
            assert keeper.look() is False
        assert kernel.table == ""
