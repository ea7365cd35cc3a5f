"""What the status of a gateway tells, and what up and down make of a kernel that does not keep what it is given."""

from types import SimpleNamespace

import pytest

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway import control
from gatewayfilter.gateway.control import Gateway, GatewayState
from gatewayfilter.gateway.plan import GatewayPlan
from gatewayfilter.gateway.runtime_state import RuntimeStateFile
from tests.gateway.gateway_fakes import FakeKernel

PLAN = GatewayPlan(lan=("lan0",), proxy_port=8080)
OPENING = GatewayPlan(lan=("lan0",), proxy_port=8080, fail_open=True)
FORWARD6 = "net/ipv6/conf/all/forwarding"


@pytest.fixture
def gateway(kernel: FakeKernel, memory: RuntimeStateFile) -> Gateway:
    return Gateway(PLAN, kernel, memory)


def test_a_gateway_that_is_down_has_no_problem(gateway: Gateway, kernel: FakeKernel) -> None:
    kernel.ports = {}
    found = gateway.status()
    assert (found.state, found.problems, found.forwarding) == (GatewayState.DOWN, (), ())
    assert (found.fail_open, found.watched, found.redirected, found.quic_refused) == (False, False, 0, 0)


def test_where_web_traffic_goes_while_nothing_listens(kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    opening = Gateway(OPENING, kernel, memory)
    opening.up()
    kernel.ports = {}
    with memory.watching():
        assert opening.status().problems == ("nothing listens on port 8080, so web traffic is refused: start the filter",)
        opening.open_way()
        assert opening.status().problems == (
            "nothing listens on port 8080, so web traffic goes past the filter: start the filter",
        )
        assert (opening.status().fail_open, opening.status().watched) == (True, True)
        opening.close_way()
        assert opening.status().state is GatewayState.UP


def test_a_filter_for_ipv4_alone_is_told_where_ipv6_is_planned(kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    kernel.ports = {8080: frozenset({4})}
    Gateway(PLAN, kernel, memory).up()
    assert Gateway(PLAN, kernel, memory).status().problems == (
        "the filter listens for IPv4 alone, so IPv6 web traffic is refused",
    )
    assert Gateway(GatewayPlan(lan=("lan0",), proxy_port=8080, ipv6=False), kernel, memory).status().problems == ()


def test_forwarding_of_ipv6_is_told_where_the_kernel_has_it(gateway: Gateway, kernel: FakeKernel) -> None:
    gateway.up()
    kernel.switches[FORWARD6] = "0"
    found = gateway.status()
    assert found.problems == ("the kernel does not forward IPv6: gateway up switches it on",)
    assert found.forwarding == (4,)
    del kernel.switches[FORWARD6]
    assert gateway.status().problems == ()


@pytest.mark.parametrize(("plan", "watched", "told"), [(OPENING, False, 1), (OPENING, True, 0), (PLAN, False, 0)])
def test_who_opens_the_way(kernel: FakeKernel, memory: RuntimeStateFile, plan: GatewayPlan, told: int, *, watched: bool) -> None:
    gateway = Gateway(plan, kernel, memory)
    gateway.up()
    if not watched:
        assert len(gateway.status().problems) == told
        return
    with memory.watching():
        assert gateway.status().problems == ()


def test_a_switch_that_the_kernel_does_not_have_is_left_alone(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile
) -> None:
    del kernel.switches[FORWARD6]
    kernel.switches |= {
        "net/ipv6/conf/wan0/accept_ra": "0",
        "net/ipv6/conf/lan0/accept_ra": "1",
        "net/ipv6/conf/lo/accept_ra": "1",
    }
    before = dict(kernel.switches)
    assert gateway.up() is True
    assert {name for name, value in kernel.switches.items() if value != before.get(name)} == {
        "net/ipv4/ip_forward",
        "net/ipv4/conf/all/send_redirects",
        "net/ipv4/conf/lan0/send_redirects",
    }
    del kernel.switches["net/ipv4/conf/lan0/send_redirects"]  # the interface went away meanwhile
    assert gateway.down() is True
    assert "net/ipv4/conf/lan0/send_redirects" not in kernel.switches
    assert memory.read() is None


def test_rules_or_switches_that_do_not_stay_fail_the_step(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "has_table", lambda: False)
    with pytest.raises(GatewayError, match="the kernel lost the rules again; nothing was changed"):
        gateway.up()
    monkeypatch.undo()
    monkeypatch.setattr(kernel, "set_switch", lambda *_: None)
    with pytest.raises(GatewayError, match=r"net\.ipv6\.conf\.wan0\.accept_ra does not stay 2; nothing was changed"):
        gateway.up()
    assert (kernel.table, memory.read()) == ("", None)


def test_another_answer_to_a_filter_that_is_gone_is_a_change(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile
) -> None:
    """It is in the stored state alone, not in the rules."""
    assert Gateway(OPENING, kernel, memory).up() is True
    assert Gateway(OPENING, kernel, memory).up() is False
    assert gateway.up() is True
    assert gateway.status().fail_open is False


def test_down_tells_whether_anything_was_there(gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    gateway.up()
    kernel.table = ""
    assert gateway.down() is True  # what was stored is forgotten
    gateway.up()
    memory.forget()
    assert gateway.down() is True  # a table of somebody else goes
    assert gateway.down() is False


def test_rules_are_restored_though_nothing_listens_yet(gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    assert gateway.restore() is False  # never up
    gateway.up()
    assert gateway.restore() is False
    kernel.table, kernel.ports = "", {}
    assert gateway.restore() is True
    assert (gateway.status().state, memory.read() is not None) == (GatewayState.UP, True)


def test_a_way_is_opened_by_a_gateway_that_is_up(gateway: Gateway) -> None:
    for change in (gateway.open_way, gateway.close_way):
        with pytest.raises(GatewayError, match="the gateway is not up"):
            change()


def test_up_waits_for_the_filter(gateway: Gateway, kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    now, ports = [0.0], kernel.ports
    kernel.ports = {}

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] >= 4.0:
            kernel.ports = ports

    def monotonic() -> float:
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr(control, "time", SimpleNamespace(monotonic=monotonic, sleep=sleep))
    with pytest.raises(GatewayError, match="nothing listens on port 8080"):
        gateway.up(wait_s=2.0)
    assert 2.0 <= now[0] < 3.0
    assert gateway.up(wait_s=60.0) is True
    assert 4.0 <= now[0] < 5.0
