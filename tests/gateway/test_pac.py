"""The PAC file, evaluated by Node.js with the functions that browsers give it."""

import json
import shutil
import subprocess

import pytest

from gatewayfilter.config import GatewaySettings
from gatewayfilter.gateway.pac import pac_file

BROWSER = r"""
function isPlainHostName(host) { return host.indexOf(".") < 0; }
function dnsDomainIs(host, domain) { return host.endsWith(domain); }
function number(text) { return text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0); }
function isInNet(host, net, mask) { const m = number(mask); return ((number(host) & m) >>> 0) === ((number(net) & m) >>> 0); }
function dnsResolve() { throw new Error("a look-up"); }
"""
BYPASS = GatewaySettings(pac_bypass=("bank.example", "*.clinic.example", "203.0.113.0/24", "198.51.100.7", "2001:db8:5::/64"))


def ask(pac: str, hosts: list[str], *, extra: str = "") -> list[str]:
    if (node := shutil.which("node")) is None:
        pytest.skip("needs Node.js to evaluate the file")
    answers = f"{json.dumps(hosts)}.map(host => FindProxyForURL('http://' + host + '/', host))"
    script = f"{BROWSER}{extra}\n{pac}\nconsole.log(JSON.stringify({answers}))"
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_what_goes_through_and_what_past() -> None:
    past = [
        "localhost", "printer", "nas.local", "router.home.arpa", "127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1",
        "bank.example", "www.bank.example", "BANK.example", "clinic.example", "my.clinic.example", "203.0.113.9", "198.51.100.7",
        "::1", "169.254.1.1",
    ]  # fmt: skip
    through = [
        "example.com", "notbank.example", "bank.example.com", "172.32.0.1", "203.0.114.1", "198.51.100.8", "1.2.3.4",
        "2001:db8::1", "gatewayfilter.internal", "10.1.2.3.example", "192.0.2.80", "local.example",
    ]  # fmt: skip
    pac = pac_file(BYPASS, "192.168.1.1:8080", own_hosts=BYPASS.hosts)
    assert dict(zip(past, ask(pac, past), strict=True)) == dict.fromkeys(past, "DIRECT")
    assert dict(zip(through, ask(pac, through), strict=True)) == dict.fromkeys(through, "PROXY 192.168.1.1:8080")


def test_browsers_that_know_ipv6_networks_use_them() -> None:
    extra = "function isInNetEx(host, net) { return net.indexOf(':') > 0 && host.startsWith(net.split('::')[0]); }"
    pac = pac_file(BYPASS, "[fd00::1]:8080")
    assert ask(pac, ["2001:db8:5::9", "2001:db8:6::9"], extra=extra) == ["DIRECT", "PROXY [fd00::1]:8080"]
    assert ask(pac, ["2001:db8:5::9"]) == ["PROXY [fd00::1]:8080"]


@pytest.mark.parametrize(
    ("settings", "proxy", "answer"),
    [
        (GatewaySettings(), "192.168.1.1:8080", "PROXY 192.168.1.1:8080"),
        (GatewaySettings(fail_open=True), "192.168.1.1:8080", "PROXY 192.168.1.1:8080; DIRECT"),
        (GatewaySettings(), "", "DIRECT"),
    ],
)
def test_the_fail_policy_and_the_mode_decide_what_is_answered(settings: GatewaySettings, proxy: str, answer: str) -> None:
    assert ask(pac_file(settings, proxy), ["example.com"]) == [answer]


def test_private_networks_go_through_when_they_are_filtered() -> None:
    pac = pac_file(GatewaySettings(filter_private=True), "192.168.1.1:8080")
    assert ask(pac, ["10.1.2.3", "127.0.0.1"]) == ["PROXY 192.168.1.1:8080", "DIRECT"]
