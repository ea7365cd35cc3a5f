"""`gateway`, `doctor` and `ca` as commands. What they do to a real kernel: tests/netns."""

import plistlib
from pathlib import Path

import pytest
from cryptography import x509

from gatewayfilter.gateway.doctor import CHECKS
from tests.cli.conftest import Cli

TRANSPARENT = ("GATEWAYFILTER_PROXY__MODE", "transparent"), ("GATEWAYFILTER_PROXY__LISTEN", "[::]:8080")


@pytest.fixture
def transparent(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del state  # it empties the environment first
    for name, value in TRANSPARENT:
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("transparent")
def test_print_shows_the_rules_without_any_rights(cli: Cli) -> None:
    answer = cli("gateway", "print", "--lan", "lan0", "--lan", "wlan0")
    assert answer.code == 0
    assert 'elements = { "lan0", "wlan0" }' in answer.out
    assert "redirect to :8080" in answer.out
    assert answer.out == cli("gateway", "print", "--lan", "lan0", "--lan", "wlan0").out


@pytest.mark.usefixtures("transparent")
@pytest.mark.parametrize("command", ["up", "status", "print"])
def test_without_an_interface_there_is_one_sentence(cli: Cli, command: str) -> None:
    assert "no interface of the LAN is named" in cli("gateway", command).complains()


def test_a_proxy_on_loopback_is_no_gateway(cli: Cli) -> None:
    assert "set proxy.listen to [::]:8080" in cli("gateway", "print", "--lan", "lan0").complains()


@pytest.mark.usefixtures("transparent")
def test_the_doctor_says_all_as_json_and_by_its_exit_code(cli: Cli, state: Path) -> None:
    answer = cli("doctor", "--json")
    found = answer.json
    assert len(found["findings"]) == len(CHECKS)
    assert found["healthy"] is (answer.code == 0)
    levels = {item["check"]: item["level"] for item in found["findings"]}
    assert levels["firewall"] == "error"  # a transparent proxy without gateway.lan
    assert levels["state folder"] == "note"
    assert all(item["mend"] for item in found["findings"] if item["level"] in {"warning", "error"})
    assert not state.exists()  # it only looks


def test_the_doctor_tells_people_how_to_mend(cli: Cli) -> None:
    answer = cli("doctor")
    assert "· state folder: There is no " in answer.out
    assert "gatewayfilter run makes it" in answer.out


def test_the_authority_is_renewed_with_its_key(cli: Cli) -> None:
    before = cli("ca", "show", "--json").json
    after = cli("ca", "renew", "--json").json
    assert (after["name"], after["sha256"] != before["sha256"]) == (before["name"], True)
    assert cli("ca", "show", "--json").json["sha256"] == after["sha256"]
    assert cli("ca", "show", "--json").json["days_left"] > 3000


def test_a_new_key_is_handed_out_before_it_is_in_force(cli: Cli, tmp_path: Path) -> None:
    old = cli("ca", "show", "--json").json
    assert "no authority is waiting" in cli("ca", "export", "--next").complains()
    assert "no authority is waiting" in cli("ca", "renew", "--activate").complains()
    assert "two steps" in cli("ca", "renew", "--activate", "--new-key").complains()
    new = cli("ca", "renew", "--new-key", "--json").json
    shown = cli("ca", "show", "--json").json
    assert (shown["sha256"], shown["next"]["sha256"]) == (old["sha256"], new["sha256"])
    assert cli("ca", "export", "--next", "-o", str(tmp_path / "next.pem")).code == 0
    assert x509.load_pem_x509_certificate((tmp_path / "next.pem").read_bytes()).subject.rfc4514_string().count(new["name"]) == 1
    assert cli("ca", "renew", "--activate", "--json").json["sha256"] == new["sha256"]
    assert cli("ca", "show", "--json").json["next"] is None


def test_the_authority_is_exported_as_apples_profile(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "ca.mobileconfig"
    assert cli("ca", "export", "--format", "mobileconfig", "-o", str(file)).code == 0
    (payload,) = plistlib.loads(file.read_bytes())["PayloadContent"]
    assert cli("ca", "show", "--json").json["name"] == payload["PayloadDisplayName"]
