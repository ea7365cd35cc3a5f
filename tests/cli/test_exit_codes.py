"""The exit code of every command that is given the name or number of something that is not there: 1, with one sentence."""

from pathlib import Path

import click
import pytest

from gatewayfilter.cli.root import main
from tests.case_tables import all_cases
from tests.cli.cli_commands import leaves
from tests.cli.conftest import Cli

NAMED = {
    "list remove": ["nowhere.example"],
    "list enable": ["nowhere.example"],
    "list disable": ["77"],
    "list add": ["x.example", "--for", "client:nobody"],
    "list search": ["nowhere.example"],
    "source remove": ["nosuch"],
    "source enable": ["nosuch"],
    "source disable": ["nosuch"],
    "source update": ["nosuch"],
    "source status": ["nosuch"],
    "client add": ["pad", "--address", "10.0.0.1", "--group", "nosuch"],
    "client set": ["nobody", "--note", "x"],
    "client remove": ["nobody"],
    "group add": ["kids", "--policy", "nosuch"],
    "group set": ["nosuch", "--note", "x"],
    "group remove": ["nosuch"],
    "group rename": ["nosuch", "other"],
    "policy add": ["kids", "--group", "nosuch"],
    "policy set": ["nosuch", "unknown=hold"],
    "policy show": ["nosuch"],
    "policy remove": ["nosuch"],
    "schedule add": ["s", "--policy", "nosuch", "--block", "all", "--daily", "21:00-06:00"],
    "schedule remove": ["nosuch"],
    "service list": ["--group", "nosuch"],
    "service show": ["nosuch"],
    "quota add": ["q", "--policy", "nosuch", "--minutes", "5", "--service", "youtube"],
    "quota set": ["nosuch", "--minutes", "5"],
    "quota remove": ["nosuch"],
    "pause": ["5min", "--client", "nobody"],
    "resume": ["--client", "nobody"],
    "request approve": ["77"],
    "request deny": ["77"],
    "request link": ["77"],
    "bypass add": ["http://x.example/", "--client", "nobody"],
    "bypass revoke": ["77"],
    "crawl": ["--task", "nosuch", "http://x.example/"],
    "queue add": ["--task", "nosuch", "http://x.example/"],
    "words remove": ["--category", "gambling", "no such phrase"],
    "rules show": ["nosuch"],
    "rules history": ["nosuch"],
    "rules restore": ["nosuch", "1"],
    "rules remove": ["nosuch"],
    "learn status": [],
    "learn off": [],
    "review list": ["--group", "77"],
    "review show": ["77"],
    "review page": ["77"],
    "review approve": ["77"],
    "review reject": ["77"],
    "review change": ["77", "fraud"],
    "review undo": ["77"],
    "review redo": ["77"],
    "log tail": ["--group", "nosuch"],
    "log search": ["--group", "nosuch"],
    "log stats": ["--group", "nosuch"],
    "log export": ["--group", "nosuch"],
    "pinned-apps remove": ["nowhere.example"],
    "proxy-user remove": ["nobody"],
    "check": ["--service", "nosuch"],
    "client erase": ["nobody", "--yes"],
    "user remove": ["nobody"],
    "user link": ["nobody", "subject"],
    "user unlink": ["nobody"],
    "user passwd": ["nobody", "--password-stdin"],
    "user role": ["nobody", "viewer"],
    "user rename": ["nobody", "somebody"],
    "user disable": ["nobody"],
    "user enable": ["nobody"],
    "user token add": ["nobody", "script"],
    "user token remove": ["77"],
    "audit undo": ["77"],
    "fleet follower remove": ["nosuch"],
}
"""Command → arguments that name something that is not there."""

WITHOUT = {
    *("run", "match", "list show", "list groups", "list import", "list export", "list stats", "source add", "source catalog"),
    *("publish", "client list", "client seen", "group list", "policy list", "schedule list", "quota list", "request list"),
    *("bypass list", "notify test", "notify status", "queue tasks", "queue show", "queue stats", "queue pause", "queue resume"),
    *("queue proxies", "queue retry", "queue clear", "classify", "words add", "words show", "words import", "words export"),
    *("words test", "rules add", "rules list", "learn report", "learn train", "review stats", "review log", "review phrases"),
    *("review export", "fingerprints stats", "fingerprints images", "log purge", "report", "stream worker", "stream spark"),
    *("crawler schedule", "crawler fetch", "crawler parse", "crawler store"),
    *("gateway up", "gateway down", "fleet init", "fleet key", "fleet rotate", "fleet export", "fleet pull", "fleet status"),
    *("fleet follower add", "fleet follower list", "helper squid", "helper daemon", "stream decisions", "fleet gateways"),
    *("gateway status", "gateway print", "gateway watch", "setup", "status", "doctor", "pinned-apps list", "proxy-user add"),
    *("proxy-user list", "ca show", "ca export", "ca renew", "backup", "restore", "metrics", "config show", "config check"),
    *(
        "config schema",
        "db status",
        "db upgrade",
        "db check",
        "db repair",
        "db rollback",
        "user add",
        "user list",
        "user token list",
        "audit list",
    ),
}
"""Commands that name nothing which may be missing: their arguments are new, are files, or are words of the program."""


def test_each_command_is_in_a_table() -> None:
    assert NAMED.keys() | WITHOUT == set(leaves(main))
    assert not NAMED.keys() & WITHOUT


@pytest.mark.parametrize("command", NAMED)
def test_what_is_not_there_has_code_1(command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_PROXY__AUTH_FILE", str(tmp_path / "users"))
    monkeypatch.setenv("GATEWAYFILTER_WEB__OIDC__ISSUER", "https://login.example")
    monkeypatch.setenv("GATEWAYFILTER_WEB__OIDC__CLIENT_ID", "filter")
    monkeypatch.setattr("gatewayfilter.cli.lists.list_search._PATIENCE_S", 600.0)  # no progress, however busy the machine is
    answer = cli(*command.split(), *NAMED[command])
    output = answer.result.output
    assert (answer.code, output) == (1, output)
    assert 1 <= len(output.splitlines()) <= 2


@all_cases("command", sorted(NAMED.keys() | WITHOUT))
def test_an_option_that_does_not_exist_has_code_2(command: str, cli: Cli) -> None:
    answer = cli(*command.split(), "--no-such-option")
    assert answer.code == 2
    assert "no such option" in answer.err


def test_a_command_that_does_not_exist_has_code_2(cli: Cli) -> None:
    assert "no such command" in cli("nosuch").complains()
    assert isinstance(main, click.Group)
