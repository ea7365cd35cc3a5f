"""`gatewayfilter setup` and `status`: by options, at a terminal, offline, interrupted, repeated, on folders that refuse."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gatewayfilter import wiring
from gatewayfilter.cli.operate.first_account import Credentials, FirstAccount, add_first_account
from gatewayfilter.config import load
from tests.held_ports import hold_port, port_of
from tests.sources.list_server import BUNDLED, ListServer, ut1_archive

type Cli = Callable[..., Any]

_NAME = re.compile(r"^\[([a-z0-9-]+)\]$")
_PROGRAM = (
    "import sys; from pathlib import Path; import gatewayfilter.wiring.storage as storage; "
    "folder = Path(sys.argv.pop(1)); storage.bundled_folder = lambda: folder; from gatewayfilter.cli import main; main()"
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    listening = ListServer()
    yield listening
    listening.close()


@pytest.fixture
def bundled(tmp_path: Path, server: ListServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lists that come with the program, in whose catalogue the addresses are those of a server on loopback."""
    folder = tmp_path / "bundled"
    shutil.copytree(BUNDLED / "starter", folder / "starter")
    shutil.copy(BUNDLED / "categories.toml", folder)
    shutil.copy(BUNDLED / "services.toml", folder)
    lines, name = [], ""
    for line in (BUNDLED / "catalog.toml").read_text(encoding="utf-8").splitlines():
        name = found[1] if (found := _NAME.match(line)) else name
        lines.append(f'address = "{server.base}/{name}"' if line.startswith("address = ") else line)
        if line.startswith("format = "):
            server.serve(f"/{name}", content_of(name, line))
    (folder / "catalog.toml").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr("gatewayfilter.wiring.storage.bundled_folder", lambda: folder)
    monkeypatch.setattr("gatewayfilter.sources.download.http_download.time.sleep", lambda _: None)
    return folder


def content_of(name: str, form: str) -> bytes:
    host = f"{name}.example"
    if "ut1" in form:
        return ut1_archive(**{name.removeprefix("ut1-"): {"domains": f"{host}\n"}})
    if "adblock" in form:
        return f"||{host}^\n".encode()
    return f"http://{host}/x\n".encode() if "urls" in form else f"0.0.0.0 {host}\n".encode()


def test_a_first_day_protects(cli: Cli, bundled: Path, state: Path) -> None:
    del bundled
    plan = cli("setup", "--dry-run", "--for", "home")
    assert plan.code == 0
    assert "Nothing was changed." in plan.out
    assert "GPL-3.0-only" in plan.out
    assert not state.exists()

    done = cli("setup", "--yes", "--for", "home", "--listen", "192.0.2.1:8080", "--timezone", "Europe/Berlin")
    assert done.code == 0, done.err
    assert "8 lists with 8 entries in force." in done.out
    assert "open http://192.0.2.1:8080/ and install the certificate" in done.out
    assert cli("check", "http://oisd-nsfw.example/").code == 1
    assert cli("check", "http://ut1-phishing.example/").code == 1
    config = state / "config.toml"
    assert config.read_text() == '[proxy]\nlisten = "192.0.2.1:8080"\n\n[filter]\ntimezone = "Europe/Berlin"\n'
    assert config.stat().st_mode & 0o777 == 0o600

    again = cli("setup", "--yes", "--for", "home", "--json")
    assert again.code == 0
    assert (again.json["plan"]["lists"], again.json["plan"]["settings"], again.json["results"]) == ([], [], [])
    cli("schedule", "add", "night", "--policy", "default", "--block", "all", "--daily", "21:00-06:00")
    assert cli("schedule", "list", "--json").json[0]["timezone"] == "Europe/Berlin"


def test_an_operators_file_and_lists_stay(cli: Cli, bundled: Path, state: Path) -> None:
    del bundled
    state.mkdir(parents=True)
    config = state / "config.toml"
    config.write_text("# mine\n[log]\nlevel = 'warning' # quiet\n")
    cli("source", "add", "easylist", "--name", "easylist", "--interval", "5")
    assert cli("setup", "--yes", "--for", "office", "--without", "urlhaus", "--listen", "127.0.0.1:9").code == 0
    assert config.read_text() == "# mine\n[log]\nlevel = 'warning' # quiet\n\n[proxy]\nlisten = \"127.0.0.1:9\"\n"
    names = {item["definition"]["name"]: item["definition"] for item in cli("source", "status", "--json").json}
    assert names["easylist"]["interval_h"] == 5
    assert "urlhaus" not in names
    assert "blocklistproject-fraud" in names


@pytest.mark.slow
def test_lists_that_do_not_come_are_pending_and_come_later(cli: Cli, bundled: Path, server: ListServer) -> None:
    del bundled
    working = server.answers.copy()
    server.serve("/easylist", b"<!doctype html><title>Log in to the hotel", status=200)
    server.serve("/urlhaus", b"", status=503)
    server.serve("/oisd-nsfw", b"\0\1\2" * 99)
    server.serve("/ut1-gambling", ut1_archive(gambling={"domains": "../../etc/passwd\n"}), status=404)
    first = cli("setup", "--yes", "--for", "home", "--json")
    assert first.code == 1
    status = {result["name"]: result["status"] for result in first.json["results"]}
    assert {name for name, how in status.items() if how == "pending"} == {"easylist", "urlhaus", "oisd-nsfw", "ut1-gambling"}
    assert first.json["published"]["size_bytes"] > 0
    assert "Log in" not in cli("source", "status").out

    server.answers.update(working)
    second = cli("setup", "--yes", "--for", "home")
    assert second.code == 0, second.err
    assert "4 lists with 4 entries in force." in second.out


@pytest.mark.slow
def test_without_a_network_everything_is_pending(cli: Cli, bundled: Path) -> None:
    catalog = bundled / "catalog.toml"
    with hold_port() as nobody:
        address = f"127.0.0.1:{port_of(nobody)}"
        catalog.write_text(re.sub(r"127\.0\.0\.1:\d+", address, catalog.read_text(encoding="utf-8")), encoding="utf-8")
        done = cli("setup", "--yes", "--for", "home")
    assert done.code == 1
    assert done.err.count("pending, the running filter fetches it later") == 8
    found = cli("status", "--json")
    assert (found.code, len(found.json["lists"]["pending"])) == (1, 8)
    assert [row["action"] for row in cli("audit", "list", "--json").json] == ["setup.done"], "it has changed something"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--yes"], "needs --for home, school or office"),
        (["--dry-run"], "needs --for home, school or office"),
        ([], "there is no terminal to ask at: give --yes and --for"),
        (["--for", "home"], "there is no terminal to ask at"),
        (["--yes", "--for", "moon"], "'moon' is not one of"),
        (["--yes", "--for", "home", "--listen", "nowhere"], "must be HOST:PORT"),
        (["--yes", "--for", "home", "--timezone", "Mars/Olympus"], "there is no time zone 'Mars/Olympus'"),
        (["--yes", "--for", "home", "--timezone", "../../etc/passwd"], "there is no time zone"),
        (["--yes", "--for", "home", "--without", "nosuch"], "'nosuch' is none of the lists for 'home'"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_changes_nothing(
    cli: Cli, bundled: Path, state: Path, arguments: list[str], sentence: str
) -> None:
    del bundled
    assert sentence in cli("setup", *arguments).complains()
    assert not state.exists()


@pytest.mark.parametrize("text", ["[proxy\n", "proxy = 3\n", "\xff"])
def test_a_file_that_cannot_be_changed_stops_before_anything_is_done(cli: Cli, bundled: Path, state: Path, text: str) -> None:
    del bundled
    state.mkdir(parents=True)
    (state / "config.toml").write_bytes(text.encode("latin-1"))
    cli("setup", "--yes", "--for", "home", "--listen", "127.0.0.1:9").complains()
    assert [path.name for path in state.iterdir()] == ["config.toml"]
    assert (state / "config.toml").read_bytes() == text.encode("latin-1")


def test_a_folder_that_refuses_is_said(cli: Cli, bundled: Path, state: Path, tmp_path: Path) -> None:
    del bundled
    (tmp_path / "state").write_text("a file where the folder should be")
    done = cli("setup", "--yes", "--for", "home")
    assert (done.code, f"cannot use the state folder {state}" in done.err) == (2, True)


def test_a_full_disk_is_said_and_what_was_there_stays(cli: Cli, bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del bundled

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    cli("db", "upgrade")
    with monkeypatch.context() as patch:
        patch.setattr("gatewayfilter.sources.subscriptions.write_json", full)
        done = cli("setup", "--yes", "--for", "home")
        assert (done.code, "No space left on device" in done.err) == (2, True)
    assert cli("setup", "--yes", "--for", "home").code == 0


def in_terminal(bundled: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """Starts the command on a terminal of its own. Returns the process, and the terminal's other end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(bundled), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "100"},
    )
    os.close(theirs)
    return process, ours


def read_until(terminal: int, text: str) -> str:
    """Reads until a text appears, or the command has ended (`text` is empty)."""
    seen, deadline = b"", time.monotonic() + 90
    while not text or text.encode() not in seen:
        if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise AssertionError(seen.decode(errors="replace"))
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end was closed
            part = b""
        if not part:
            assert not text, seen.decode(errors="replace")
            break
        seen += part
    return seen.decode(errors="replace")


@pytest.mark.slow
def test_the_wizard_asks_shows_and_does(bundled: Path, cli: Cli) -> None:
    process, terminal = in_terminal(bundled, "setup", "--listen", "127.0.0.1:9")
    assert "Advertisements, trackers, malware" in read_until(terminal, "For [home]:")
    os.write(terminal, b"moon\n")
    read_until(terminal, "For [home]:")
    os.write(terminal, b"office\n")
    read_until(terminal, "Time zone of schedules")
    os.write(terminal, b"Asia/Shanghai\n")
    shown = read_until(terminal, "Carry this out? [Y/n]:")
    assert "9 lists of others, about" in shown
    os.write(terminal, b"\n")
    before = read_until(terminal, "Name [")
    os.write(terminal, b"two words\n")
    assert "letters, digits" in read_until(terminal, "Name [")
    os.write(terminal, b"ada\n")
    assert "Its password has at least 10 characters." in before
    read_until(terminal, "New password of ada:")
    for password, prompt in ((b"short", "New password of ada:"), (b"long enough, really", "")):
        os.write(terminal, password + b"\n")
        read_until(terminal, "Repeat for confirmation:")
        os.write(terminal, password + b"\n")
        if prompt:
            assert "at least 10 characters" in read_until(terminal, prompt)
    end = read_until(terminal, "")
    os.close(terminal)
    assert process.wait(60) == 0, end
    assert "9 lists with 9 entries in force." in end
    assert "start the filter:" in end
    assert "Added ada, admin of the dashboard." in end
    assert "long enough" not in end
    assert [(item["name"], item["role"]) for item in cli("user", "list", "--json").json] == [("ada", "admin")]
    assert cli("config", "show", "filter.timezone", "--json").json["filter.timezone"]["value"] == "Asia/Shanghai"


def test_saying_no_changes_nothing(bundled: Path, state: Path) -> None:
    process, terminal = in_terminal(bundled, "setup", "--for", "home", "--listen", "127.0.0.1:9", "--timezone", "UTC")
    read_until(terminal, "Carry this out? [Y/n]:")
    os.write(terminal, b"n\n")
    read_until(terminal, "")
    os.close(terminal)
    assert process.wait(60) == 1
    assert not state.exists()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--no-account"], []])
def test_no_account_is_asked_for_where_none_is_wanted_or_one_is_there(bundled: Path, cli: Cli, arguments: list[str]) -> None:
    cli("setup", "--yes", "--for", "home", "--no-account")
    if not arguments:
        cli("user", "add", "kim", "--password-stdin", stdin="long enough, really\n")
    process, terminal = in_terminal(bundled, "setup", "--for", "home", "--listen", "127.0.0.1:9", "--timezone", "UTC", *arguments)
    read_until(terminal, "Carry this out? [Y/n]:")
    os.write(terminal, b"y\n")
    end = read_until(terminal, "")
    os.close(terminal)
    assert process.wait(60) == 0, end
    assert "Name [" not in end
    assert "first account" not in end


def test_without_questions_the_browser_makes_the_first_account(cli: Cli, bundled: Path) -> None:
    del bundled
    here = cli("setup", "--yes", "--for", "home").out
    assert "4. make the first account of the dashboard: open http://127.0.0.1:8081/ in the browser of this machine, or " in here
    elsewhere = cli("setup", "--yes", "--for", "home", "--listen", "192.0.2.1:8080").out
    assert re.search(r"open the address that \S*gatewayfilter run prints, or \S*gatewayfilter user add NAME", elsewhere)
    assert cli("setup", "--yes", "--for", "home", "--json").json["account"] == "browser"
    assert cli("setup", "--yes", "--for", "home", "--no-account", "--json").json["account"] == "skipped"
    cli("user", "add", "kim", "--password-stdin", stdin="long enough, really\n")
    assert cli("setup", "--yes", "--for", "home", "--json").json["account"] == "there"
    assert "first account" not in cli("setup", "--yes", "--for", "home").out


def test_an_account_made_meanwhile_stays_the_first(tmp_path: Path) -> None:
    with closing(wiring.open_store(load(options={"data_dir": tmp_path}).settings)) as store:
        assert add_first_account(store, Credentials("ada", "long enough, really")) is FirstAccount.ADDED
        assert add_first_account(store, Credentials("eve", "long enough, really")) is FirstAccount.THERE
        assert [account.name for account in store.accounts.all()] == ["ada"]


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Presses Ctrl-C until the command ends: between its prompt and the read that follows, one has no effect.

    Not while it ends: the interpreter that shuts down would be killed by it.
    """
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            continue
        return
    raise AssertionError("the command goes on")


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["For [home]:", "Time zone", ""])
def test_an_interruption_leaves_a_state_that_the_next_one_completes(
    bundled: Path, server: ListServer, cli: Cli, asked: str
) -> None:
    stalled, interrupted = Event(), Event()

    def stall(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.flush()
        stalled.set()
        interrupted.wait(90)

    working = server.answers["/easylist"]
    server.answers["/easylist"] = stall
    arguments = [] if asked else ["--yes", "--for", "home"]
    process, terminal = in_terminal(bundled, "setup", "--listen", "127.0.0.1:9", *arguments)
    if asked:
        read_until(terminal, "For [home]:")
        if asked == "Time zone":
            os.write(terminal, b"home\n")
            read_until(terminal, asked)
    else:
        assert stalled.wait(60)
    interrupt(process)
    interrupted.set()
    read_until(terminal, "")
    os.close(terminal)
    assert process.returncode == 130
    server.answers["/easylist"] = working
    if not asked:
        assert {item["definition"]["name"] for item in cli("source", "status", "--json").json} >= {"easylist", "oisd-nsfw"}
    done = cli("setup", "--yes", "--for", "home")
    assert done.code == 0, done.err
    assert cli("check", "http://easylist.example/").code == 1


def test_status_of_a_filter_that_does_not_run(cli: Cli, bundled: Path) -> None:
    del bundled
    cli("setup", "--yes", "--for", "home")
    cli("pause", "10min")
    found = cli("status")
    assert found.code == 1
    assert "no (127.0.0.1:8080 in the settings)" in found.out
    assert "Lists     8 subscribed, " in found.out
    assert "all until" in found.out
    assert "! The filter does not run." in found.out
    facts = cli("status", "--json").json
    assert (facts["running"], facts["lists"]["subscribed"], facts["lists"]["pending"]) == (False, 8, [])
    assert [item["words"] for item in facts["attention"]] == ["The filter does not run."]


def test_status_of_a_running_filter(cli: Cli, bundled: Path, state: Path) -> None:
    del bundled
    cli("setup", "--yes", "--for", "home")
    (state / "run").mkdir(exist_ok=True)
    now = time.time()
    children = {"proxy-0": {"restarts": 0}, "learner": {"restarts": 0}}
    files: dict[str, dict[str, Any]] = {
        "supervisor": {"listen": "127.0.0.1:1", "started_at": now - 7200, "children": children},
        "proxy-0": {"state": "serving"},
        "learner": {"state": "learning"},
    }
    for name, facts in files.items():
        (state / "run" / f"{name}.json").write_text(json.dumps({"pid": os.getpid(), "at": now, **facts}))
    found = cli("status")
    assert found.code == 0, found.out
    assert "yes, on 127.0.0.1:1, for 2 h 0 min" in found.out
    assert "1 of 1 serve; learner: learning" in found.out
    (state / "run" / "proxy-0.json").write_text("{damaged")
    assert "0 of 1 workers serve" in cli("status").out
