"""What the settings ask for, and what they may not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.plan import GatewayPlan, make_plan
from gatewayfilter.gateway.ruleset import close_way, digest, open_way, ruleset, tried_ruleset, unload

PLAN = GatewayPlan(lan=("lan0",), proxy_port=8080)


def settings(listen: str = "[::]:8080", mode: str = "transparent", **gateway: Any) -> Settings:
    return Settings.model_validate({"proxy": {"listen": listen, "mode": mode}, "gateway": {"lan": ["lan0"], **gateway}})


def test_the_settings_become_a_plan() -> None:
    plan = make_plan(
        settings(
            bypass_devices=["02-00-00-00-00-0A", "192.168.1.7", "fd00::/64", "192.168.1.7"],
            bypass_destinations=["192.0.2.0/24", "2001:db8::1"],
            reject_dot=True,
            own_port_80=True,
            fail_open=True,
        )
    )
    assert plan == GatewayPlan(
        lan=("lan0",),
        proxy_port=8080,
        reject_dot=True,
        own_port_80=True,
        free_macs=("02:00:00:00:00:0a",),
        free4=("192.168.1.7",),
        free6=("fd00::/64",),
        past4=("192.0.2.0/24",),
        past6=("2001:db8::1",),
        fail_open=True,
    )


@pytest.mark.parametrize(("listen", "ipv6"), [("0.0.0.0:8080", False), ("[::]:8080", True), ("192.168.1.1:8080", False)])
def test_the_listening_address_tells_the_families(listen: str, *, ipv6: bool) -> None:
    assert make_plan(settings(listen)).ipv6 is ipv6


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (settings(lan=[]), "no interface"),
        (settings("127.0.0.1:8080"), "does not reach"),
        (settings("[::1]:8080"), "does not reach"),
        (settings("[::]:0"), "not 0"),
        (settings("[::]:22"), "SSH"),
        (settings("[::]:443"), "redirected to itself"),
        (settings(ports=[22, 80]), "contains 22"),
        (settings(lan=["lo"]), "own traffic"),
        (settings(lan=["lan0; drop"]), "no name"),
        (settings(lan=['"']), "no name"),
        (settings(lan=["a" * 16]), "no name"),
        (settings(bypass_devices=["nas"]), "hardware address"),
        (settings(bypass_devices=["0.0.0.0/0"]), "everything"),
        (settings(bypass_destinations=["bank.example"]), "gateway.bypass_destinations"),
        (settings(bypass_destinations=["02:00:00:00:00:01"]), "gateway.bypass_destinations"),
    ],
)
def test_what_would_lock_somebody_out_or_means_nothing_is_refused(changed: Settings, words: str) -> None:
    with pytest.raises(GatewayError, match=words):
        make_plan(changed)


def test_transparent_redirects_and_regular_refuses_what_goes_around() -> None:
    transparent, regular = ruleset(PLAN), ruleset(GatewayPlan(lan=("lan0",), proxy_port=8080, transparent=False))
    assert "redirect to :8080" in transparent
    assert "redirect to" not in regular
    assert 'reject with tcp reset comment "around the filter"' in regular
    assert "ct status & dnat == 0 drop" in transparent
    assert "ct status" not in regular  # devices reach the proxy's port by themselves there


@pytest.mark.parametrize(
    ("option", "sign"),
    [
        ({"reject_quic": False}, '"QUIC"'),
        ({"reject_dot": True}, "853"),
        ({"own_port_80": True}, "fib daddr type local redirect"),
        ({"past4": ("192.0.2.9",)}, "192.0.2.9"),
        ({"free_macs": ("02:00:00:00:00:01",)}, "02:00:00:00:00:01"),
        ({"filter_private": True}, "192.168.0.0/16"),
    ],
)
def test_each_option_changes_the_rules(option: dict[str, Any], sign: str) -> None:
    changed = GatewayPlan(lan=("lan0",), proxy_port=8080, **option)
    assert (sign in ruleset(PLAN)) is not (sign in ruleset(changed))
    assert digest(PLAN) != digest(changed)


def test_the_machines_own_services_come_before_any_redirect() -> None:
    rules = ruleset(PLAN)
    assert rules.index("fib daddr type local accept") < rules.index("jump divert")
    assert rules.index("iifname != @lan accept") < rules.index("fib daddr type local accept")


@given(
    ports=st.sets(st.integers(1, 65535), min_size=1, max_size=5),
    lan=st.lists(st.from_regex(r"[a-z][a-z0-9]{0,10}", fullmatch=True), min_size=1, max_size=4, unique=True),
)
def test_only_the_filters_own_port_is_ever_dropped(ports: set[int], lan: list[str]) -> None:
    rules = ruleset(GatewayPlan(lan=tuple(lan), proxy_port=8080, ports=tuple(sorted(ports))))
    chain = rules.partition("chain input {")[2].partition("}")[0]
    assert [line for line in chain.splitlines() if "drop" in line and "tcp dport 8080 " not in line] == []
    assert "policy drop" not in rules


def test_opening_and_closing_touch_the_two_chains_of_the_way_alone() -> None:
    for rules in (open_way(), close_way(PLAN)):
        touched = {line.partition("inet gatewayfilter ")[2].split()[0] for line in rules.strip().splitlines()}
        assert touched == {"divert", "strays"}
    assert "add rule" not in open_way()
    assert unload().splitlines() == ["table inet gatewayfilter", "delete table inet gatewayfilter"]


def test_a_dry_run_never_names_the_real_table() -> None:
    # While the kernel takes a dry run back, it shows a table that the run deletes and makes again.
    tried = tried_ruleset(PLAN)
    assert "delete" not in tried
    assert "inet gatewayfilter {" not in tried
    assert tried.partition("{")[2] == ruleset(PLAN).partition("{")[2]


def test_connections_that_are_past_the_filter_already_are_ended() -> None:
    sign = 'ct status & dnat == 0 counter reject with tcp reset comment "made past the filter"'
    assert sign in ruleset(PLAN)
    assert sign in close_way(PLAN)
    assert sign not in ruleset(GatewayPlan(lan=("lan0",), proxy_port=8080, transparent=False))
    forward = ruleset(PLAN).partition("chain forward {")[2].partition("}")[0]
    assert forward.index("jump exempt") < forward.index("ip daddr != @private4 jump strays")


def _elements(rules: str, name: str) -> str:
    """What stands in a set of a ruleset."""
    part = rules.partition(f"    set {name} {{\n")[2].partition("    }\n")[0]
    return part.partition("elements = { ")[2].partition(" }")[0]


@pytest.mark.parametrize("private", [False, True])
def test_which_private_networks_are_never_redirected(*, private: bool) -> None:
    rules = ruleset(replace(PLAN, filter_private=private))
    never4, never6 = "127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3", "::1, fe80::/10, ff00::/8"
    private4 = "10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 224.0.0.0/3"
    assert _elements(rules, "private4") == (never4 if private else private4)
    assert _elements(rules, "private6") == (never6 if private else "::1, fc00::/7, fe80::/10, ff00::/8")


def test_who_and_what_goes_past_the_filter_is_in_sets() -> None:
    plan = replace(PLAN, past4=("192.0.2.0/24",), past6=("2001:db8::1",), free4=("10.0.0.5", "10.0.0.6"), free6=("fd00::/64",))
    rules = ruleset(replace(plan, free_macs=("02:00:00:00:00:0a",), lan=("lan0", "lan1")))
    found = {name: _elements(rules, name) for name in ("lan", "past4", "past6", "free4", "free6", "free_macs")}
    assert found == {
        "lan": '"lan0", "lan1"',
        "past4": "192.0.2.0/24",
        "past6": "2001:db8::1",
        "free4": "10.0.0.5, 10.0.0.6",
        "free6": "fd00::/64",
        "free_macs": "02:00:00:00:00:0a",
    }
    assert rules.count("flags interval") == 6
    assert "elements" not in ruleset(PLAN).partition("set past4")[2]


@pytest.mark.parametrize(
    ("changed", "rule", "stands"),
    [
        ({}, "tcp dport { 80, 443 } counter redirect to :8080", True),
        ({}, 'udp dport { 80, 443 } counter reject with icmpx port-unreachable comment "QUIC"', True),
        ({"reject_quic": False}, 'comment "QUIC"', False),
        ({}, "dport 853", False),
        ({"reject_dot": True}, 'tcp dport 853 counter reject with tcp reset comment "DNS over TLS"', True),
        ({"reject_dot": True}, 'udp dport 853 counter reject with icmpx port-unreachable comment "DNS over QUIC"', True),
        ({}, "tcp dport 80 fib daddr type local redirect to :8080", False),
        ({"own_port_80": True}, "tcp dport 80 fib daddr type local redirect to :8080", True),
        ({}, "tcp dport 8080 ct status & dnat == 0 drop", True),
        ({}, "iifname != @lan tcp dport 8080 drop", True),
        ({}, "ct status & dnat == 0 counter reject with tcp reset", True),
        ({"transparent": False}, "redirect to", False),
        ({"transparent": False}, "ct status", False),
        ({"transparent": False}, 'tcp dport { 80, 443 } counter reject with tcp reset comment "around the filter"', True),
        ({"ports": (80, 8000)}, "tcp dport { 80, 8000 } counter redirect to :8080", True),
        ({"proxy_port": 3128}, "counter redirect to :3128", True),
    ],
)
def test_rules_of_a_plan(changed: dict[str, Any], rule: str, *, stands: bool) -> None:
    assert (rule in ruleset(replace(PLAN, **changed))) is stands


def test_networks_are_written_as_the_kernel_lists_them() -> None:
    given = ["192.168.1.7/24", "192.0.2.9/32", "2001:db8::1/64", "2001:db8::9/128", "192.168.1.0/24", "128.0.0.0/1"]
    plan = make_plan(settings(bypass_destinations=given, lan=["lan0", "lan1", "lan0"], ports=[443, 80, 443]))
    assert plan.past4 == ("192.168.1.0/24", "192.0.2.9", "128.0.0.0/1")
    assert plan.past6 == ("2001:db8::/64", "2001:db8::9")
    assert (plan.lan, plan.ports) == (("lan0", "lan1"), (80, 443))
    assert make_plan(settings("[::]:1")).proxy_port == 1


@pytest.mark.parametrize(("key", "also"), [("bypass_devices", " or a hardware address"), ("bypass_destinations", "")])
def test_what_may_stand_in_a_list_is_told(key: str, also: str) -> None:
    with pytest.raises(GatewayError, match=f"^gateway.{key}: 'nas' is not an address, a network{also}$"):
        make_plan(settings("[::]:8080", "transparent", **{key: ["nas"]}))


def test_a_digest_is_short_and_of_the_whole_ruleset() -> None:
    assert len(digest(PLAN)) == 16
    assert digest(PLAN) == digest(GatewayPlan(lan=("lan0",), proxy_port=8080, fail_open=True))  # not in the rules
