"""What `setup` asks, shows and tells, and the first account: `gatewayfilter.cli.operate.setup_command`,
`gatewayfilter.cli.operate.first_account`.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from gatewayfilter.cli.operate.first_account import (
    Credentials,
    FirstAccount,
    add_first_account,
    ask_first_account,
    first_account_step,
)
from gatewayfilter.cli.operate.setup_command import setup
from gatewayfilter.errors import AccountError
from gatewayfilter.model import PolicySet, Role
from gatewayfilter.sources import ListFormat, ParseReport, UpdateResult, UpdateStatus
from gatewayfilter.use_cases.setup import PlannedList, PlannedValue, SetupChoices, SetupPlan, SetupResult
from tests.cli.test_command_doubles import SETTINGS, Doubled, called, table, texts

LIST = PlannedList("ads", "Ads", "ads", "https://a.example/", "MIT", 1_000, 1.5)
PLAN = SetupPlan(
    "home",
    Path("/c.toml"),
    (LIST, replace(LIST, name="more", size_mb=0.25)),
    (PlannedValue("proxy.listen", "127.0.0.1:8080", "10.0.0.1:8080"),),
    (PlannedValue("safesearch", "", "on"),),
    ("it has no effect",),
)
EMPTY = SetupPlan("home", Path("/c.toml"), (), (), ())
REPORT = ParseReport(ListFormat.HOSTS, accepted=2_000)
DONE = SetupResult(
    (UpdateResult("ads", UpdateStatus.UPDATED, REPORT), UpdateResult("late", UpdateStatus.PENDING, None, "no answer")), None
)
PLANNED = [
    ["list", "category", "entries", "MB", "licence", "publisher"],
    ["ads", "ads", "~1,000", "~1.5", "MIT", "https://a.example/"],
    ["more", "ads", "~1,000", "~0.25", "MIT", "https://a.example/"],
    ["2 lists of others, about 2,000 entries and 2 MB to download."],
    ["/c.toml: proxy.listen = '10.0.0.1:8080' (now '127.0.0.1:8080')"],
    ["policy default: safesearch=on"],
    ["Note: it has no effect."],
]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A set-up that was planned, its result, and what was asked for."""
    holder: dict[str, Any] = {"plan": PLAN, "result": DONE, "asked": [], "exist": False, "listen": ""}

    def plan(loaded: Any, policies: PolicySet, choices: SetupChoices, config_file: Path) -> SetupPlan:
        holder["asked"].append((loaded.settings, policies, choices, config_file))
        found: SetupPlan = holder["plan"]
        return found

    def apply(loaded: Any, store: object, plan: SetupPlan, progress: object) -> SetupResult:
        assert progress is not None
        holder["asked"].append((loaded.settings, store, plan))
        found: SetupResult = holder["result"]
        return found

    accounts = SimpleNamespace(exist=lambda: holder["exist"])
    store = SimpleNamespace(close=lambda: None, policies=SimpleNamespace(read=lambda: "policies"), accounts=accounts)
    holder["store"] = store
    module = "gatewayfilter.cli.operate.setup_command"
    monkeypatch.setattr("gatewayfilter.use_cases.setup.plan_setup", plan)
    monkeypatch.setattr("gatewayfilter.use_cases.setup.apply_setup", apply)
    monkeypatch.setattr("gatewayfilter.wiring.prepare_data_dir", lambda _settings: None)
    monkeypatch.setattr(f"{module}.open_store", lambda _settings: store)
    monkeypatch.setattr(f"{module}.showing", lambda *, quiet: nullcontext(lambda *_: quiet))
    monkeypatch.setattr("gatewayfilter.use_cases.filter_status.running_listen", lambda _settings: holder["listen"])
    return holder


def test_a_dry_run_of_the_set_up_shows_the_plan(planned: dict[str, Any]) -> None:
    code, out, _ = texts(Doubled(), "setup", "--dry-run", "--for", "home")
    assert (code, table(out)) == (0, [*PLANNED, ["Nothing was changed."]])
    choices = SetupChoices("home", "", "", True, ())
    assert planned["asked"] == [(SETTINGS, PolicySet(), choices, SETTINGS.data_dir / "config.toml")]
    arguments = ("--listen", "h:1", "--timezone", "UTC", "--without", "a", "--without", "b", "--no-safe-search")
    document = called(Doubled(), "setup", "--dry-run", "--for", "school", *arguments, "--json").json
    assert (document["plan"]["lists"][0]["name"], document["results"], document["published"], document["account"]) == (
        "ads",
        [],
        None,
        None,
    )
    assert planned["asked"][1][2] == SetupChoices("school", "h:1", "UTC", False, ("a", "b"))
    planned["plan"] = EMPTY
    none = "Nothing is left to do: lists and settings are as this needs them.\nNothing was changed.\n"
    assert texts(Doubled(), "setup", "--dry-run", "--for", "home")[1] == none
    assert "without questions it needs --for" in called(Doubled(), "setup", "--yes").complains()
    assert "without questions it needs --for" in called(Doubled(), "setup", "--dry-run").complains()
    assert "there is no terminal to ask at" in called(Doubled(), "setup", "--for", "home").complains()
    assert "there is no terminal to ask at" in called(Doubled(), "setup", "--json").complains()


def next_steps(settings: Any, *arguments: str) -> list[str]:
    out = texts(Doubled(settings=settings), "setup", "--yes", "--for", "home", *arguments)[1]
    return out[out.index("\nNext:\n") + 7 :].splitlines()


def test_a_set_up_without_questions_tells_what_comes_next(planned: dict[str, Any]) -> None:
    context = Doubled()
    code, out, err = texts(context, "setup", "--yes", "--for", "home")
    assert (code, err) == (1, "late: pending, the running filter fetches it later: no answer\n")
    assert table(out)[len(PLANNED) :][:2] == [["1 list with 2,000 entries in force."], ["Next:"]]
    assert (planned["asked"][1][1:], context.changed) == ((planned["store"], PLAN), True)
    planned["result"] = SetupResult((), None)
    page = "http://10.0.0.1:8080/"
    steps = next_steps(SETTINGS)
    assert steps[:3] == [
        "  1. start the filter: gatewayfilter run",
        f"  2. on each device, set the proxy to 10.0.0.1:8080, open {page} and install the certificate",
        "  3. check: gatewayfilter status",
    ]
    assert steps[3].startswith("  4. make the first account of the dashboard: open ")
    assert len(next_steps(SETTINGS, "--no-account")) == 3
    planned["listen"] = "127.0.0.1:8080"
    assert next_steps(SETTINGS)[0] == "  1. restart the filter: it listens on 127.0.0.1:8080 until then"
    planned["listen"] = "10.0.0.1:8080"
    assert next_steps(SETTINGS)[0] == "  1. the filter is running: nothing to start"
    planned["plan"] = EMPTY
    context = Doubled()
    assert texts(context, "setup", "--yes", "--for", "home")[0] == 0
    assert context.changed is False
    certificate = SETTINGS.data_dir / "ca" / "mitmproxy-ca-cert.pem"
    for listen, step in (
        ("127.0.0.1:1", f"in the browser of this machine, set the proxy to 127.0.0.1:1 and install {certificate}"),
        ("localhost:1", f"in the browser of this machine, set the proxy to localhost:1 and install {certificate}"),
        ("0.0.0.0:1", "on each device, set the proxy to THIS-MACHINE:1, open http://THIS-MACHINE:1/ and install the certificate"),
        ("[::]:1", "on each device, set the proxy to THIS-MACHINE:1, open http://THIS-MACHINE:1/ and install the certificate"),
        ("[fd00::1]:1", "on each device, set the proxy to [fd00::1]:1, open http://[fd00::1]:1/ and install the certificate"),
    ):
        assert (
            next_steps(SETTINGS.model_copy(update={"proxy": SETTINGS.proxy.model_copy(update={"listen": listen})}))[1]
            == f"  2. {step}"
        )


def test_the_first_account_is_left_to_the_browser_where_there_is_none(planned: dict[str, Any], tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"data_dir": tmp_path})
    document = called(Doubled(settings=settings), "setup", "--yes", "--for", "home", "--json").json
    assert (document["account"], document["results"][1]["error"], document["published"]) == ("browser", "no answer", None)
    (tmp_path / "gatewayfilter.sqlite3").touch()
    for exist, account in ((False, "browser"), (True, "there")):
        planned["exist"] = exist
        assert called(Doubled(settings=settings), "setup", "--yes", "--for", "home", "--json").json["account"] == account
    assert planned["asked"][-2][1] == "policies"
    assert (
        called(Doubled(settings=settings), "setup", "--yes", "--for", "home", "--no-account", "--json").json["account"]
        == "skipped"
    )
    off = settings.model_copy(update={"web": settings.web.model_copy(update={"listen": ""})})
    assert called(Doubled(settings=off), "setup", "--yes", "--for", "home", "--json").json["account"] == "skipped"


def test_at_a_terminal_what_was_not_given_is_asked_for(
    planned: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: dict[str, Any] = {"For": "office", "Time zone of schedules": "Asia/Tokyo", "Address and port for clients": "h:9"}
    prompts: list[Any] = []
    confirms: list[Any] = []
    yes: list[bool] = []
    near = ["10.0.0.7"]

    def prompt(text: str, **how: Any) -> Any:
        prompts.append((text, how.get("default")))
        return answers[text]

    def confirm(text: str, *, default: bool) -> bool:
        confirms.append((text, default))
        return yes.pop(0)

    bundles = {name: SimpleNamespace(name=name, description=f"for {name}s") for name in ("home", "office")}
    monkeypatch.setattr("gatewayfilter.wiring.subscriptions", lambda _settings: SimpleNamespace(bundles=bundles))
    monkeypatch.setattr("gatewayfilter.addresses.rtnetlink.read_lan_address", lambda: near[0])
    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(click, "confirm", confirm)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    yes += [True, False]
    assert setup.main([], standalone_mode=False, obj=Doubled()) == 1
    assert prompts == [("For", "home"), ("Time zone of schedules", "UTC")]
    assert confirms == [("Shall other devices use it, at 10.0.0.7?", False), ("Carry this out?", True)]
    assert planned["asked"].pop()[2] == SetupChoices("office", "10.0.0.7:8080", "Asia/Tokyo")
    assert capsys.readouterr().out.startswith("What is the filter for?\n  home    for homes\n  office  for offices\n")
    yes += [False, False]
    setup.main(["--for", "home", "--timezone", "UTC"], standalone_mode=False, obj=Doubled())
    assert prompts[2:] == [("Address and port for clients", SETTINGS.proxy.listen)]
    assert planned["asked"].pop()[2] == SetupChoices("home", "h:9", "UTC")
    open_ = SETTINGS.model_copy(update={"proxy": SETTINGS.proxy.model_copy(update={"listen": "0.0.0.0:8080"})})
    for settings, address in ((open_, "10.0.0.7"), (SETTINGS, "")):
        near[0] = address
        yes += [False]
        setup.main(["--for", "home", "--timezone", "UTC"], standalone_mode=False, obj=Doubled(settings=settings))
        assert prompts.pop() == ("Address and port for clients", settings.proxy.listen)
    planned["plan"], planned["result"] = EMPTY, SetupResult((), None)
    credentials, added = Credentials("kim", "p"), [FirstAccount.ADDED]
    module = "gatewayfilter.cli.operate.setup_command"
    monkeypatch.setattr(f"{module}.ask_first_account", lambda: credentials)
    monkeypatch.setattr(
        f"{module}.add_first_account",
        lambda store, given: added[0] if (store, given) == (planned["store"], credentials) else None,
    )
    given = ["--for", "home", "--timezone", "UTC", "--listen", "h:9"]
    capsys.readouterr()
    assert setup.main(given, standalone_mode=False, obj=Doubled()) == 0, "nothing is to be confirmed"
    assert "Added kim, admin of the dashboard.\n" in capsys.readouterr().out
    added[0] = FirstAccount.THERE
    setup.main(given, standalone_mode=False, obj=Doubled())
    assert capsys.readouterr().err == "There is an account by now: kim was not added.\n"


def test_the_first_account_is_asked_for_until_it_can_be_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names, passwords, defaults = ["a b", "kim"], [AccountError("too short"), "long enough to be one"], []

    def prompt(_text: str, *, default: str) -> str:
        defaults.append(default)
        return names.pop(0)

    def read(name: str, *, from_stdin: bool) -> str:
        assert (name, from_stdin) == ("kim", False)
        found = passwords.pop(0)
        if isinstance(found, Exception):
            raise found
        return str(found)

    user = ["kim"]
    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr("gatewayfilter.cli.operate.first_account.read_new_password", read)
    monkeypatch.setattr("gatewayfilter.cli.operate.first_account.user_name", lambda: user[0])
    assert ask_first_account() == Credentials("kim", "long enough to be one")
    out, err = capsys.readouterr()
    assert (defaults, err.splitlines()[-1]) == (["kim", "kim"], "too short.")
    assert out.startswith("The first account of the dashboard is an admin. Its password has at least ")
    user[0] = "a b"
    names[:], passwords[:] = ["kim"], ["long enough to be one"]
    ask_first_account()
    assert defaults[2:] == ["admin"]


def test_the_first_account_is_an_admin_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Any] = []
    asked: list[Any] = []
    fails: list[bool] = []

    class Accounts:
        def __init__(self, store: object) -> None:
            asked.append(store)

        def add(self, name: str, role: Role, password: str, *, only_first: bool) -> SimpleNamespace:
            asked.append((name, role, password, only_first))
            if fails:
                raise AccountError("no")
            return SimpleNamespace(name=name, role=role)

    monkeypatch.setattr("gatewayfilter.use_cases.access.accounts.Accounts", Accounts)
    monkeypatch.setattr("gatewayfilter.cli.operate.first_account.record", lambda *given: recorded.append(given))
    store: Any = SimpleNamespace(accounts=SimpleNamespace(exist=lambda: fails[0]))
    assert add_first_account(store, Credentials("kim", "p")) is FirstAccount.ADDED
    assert asked == [store, ("kim", Role.ADMIN, "p", True)]
    assert recorded == [(store, "user.added", "kim", f"role {Role.ADMIN}")]
    fails.append(True)
    assert add_first_account(store, Credentials("kim", "p")) is FirstAccount.THERE
    fails[0] = False
    with pytest.raises(AccountError, match="no"):
        add_first_account(store, Credentials("kim", "p"))
    assert len(recorded) == 1


def test_where_the_first_account_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    needs = [True]

    def needs_code(settings: Any) -> bool:
        seen.append(settings.proxy.listen)
        return needs[0]

    monkeypatch.setattr("gatewayfilter.use_cases.access.dashboard_access.needs_setup_code", needs_code)
    begin, end = "make the first account of the dashboard: open ", ", or gatewayfilter user add NAME"
    assert first_account_step(SETTINGS, "h:1") == f"{begin}the address that gatewayfilter run prints{end}"
    needs[0] = False
    assert first_account_step(SETTINGS, "h:1") == f"{begin}http://{SETTINGS.web.listen}/ in the browser of this machine{end}"
    assert seen == ["h:1", "h:1"]
