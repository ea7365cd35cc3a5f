"""What happens when things break: killed processes, damaged files, ports in use; the last good state serves."""

import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from gatewayfilter.engine.snapshot.format import read_sections
from gatewayfilter.engine.snapshot.reader import Snapshot
from tests.e2e.e2e_gateway import COMMAND, GatewayProcess, Origin, free_port, has_ended, until

pytestmark = pytest.mark.slow


def learn(gateway: GatewayProcess, url: str) -> None:
    assert gateway.get(url).status == 200
    until("block", lambda: gateway.get(url).reason == "learned", 30.0)  # the learner may still be starting


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A filter with two workers, for tests after which it is whole again; SIGTERM ends all of it, whatever they have killed."""
    with GatewayProcess(tmp_path_factory.mktemp("pair") / "state", proxy__workers="2") as gateway:
        yield gateway
        remaining = [gateway.child(name) for name in ("proxy-0", "proxy-1", "learner")]
        assert gateway.stop() == 0
        until("end of all", lambda: all(has_ended(child) for child in remaining), 1.0)  # a process is some ms in its end


def is_back(gateway: GatewayProcess, name: str, before: int) -> bool:
    """Returns whether another process serves in the place of one that was killed, and the supervisor has written that down."""
    now, known = gateway.status(name), gateway.status("supervisor")["children"][name]["pid"]
    return now.get("pid") not in {None, before} and now["pid"] == known and now.get("state") == "serving"


def test_restart_keeps_what_was_learned(state: Path, http_site: Origin) -> None:
    url, allowed = f"{http_site.base}/casino/10", f"{http_site.base}/casino/11"
    with GatewayProcess(state) as gateway:
        learn(gateway, url)
        learn(gateway, allowed)
        assert gateway.cli("list", "add", "--allow", allowed).returncode == 0
        assert gateway.stop() == 0
        gateway.start()
        page = gateway.get(url)
        assert page.reason == "learned"
        assert "score" in page.text
        assert gateway.get(allowed).status == 200
        assert gateway.cli("publish").returncode == 0
        assert gateway.stop() == 0
        gateway.start()
        page = gateway.get(url)
        assert page.reason == "learned"
        assert "score" in page.text
        assert gateway.get(allowed).status == 200


def test_a_killed_learner_disturbs_nothing_and_comes_back(pair: GatewayProcess, http_site: Origin) -> None:
    first = pair.child("learner")
    first.send_signal(signal.SIGKILL)
    for number in range(10):
        assert pair.get(f"{http_site.base}/garden/{number}").status == 200
    assert pair.get("http://blocked.gatewayfilter.test/").status == 403
    until("new learner", lambda: pair.status("learner").get("pid", first.pid) != first.pid, 15.0)
    now = pair.status("learner")["pid"]
    until("its number", lambda: pair.status("supervisor")["children"]["learner"]["pid"] == now)
    learn(pair, f"{http_site.base}/casino/12")


def test_a_killed_worker_comes_back(pair: GatewayProcess, http_site: Origin) -> None:
    first = pair.child("proxy-0")
    first.send_signal(signal.SIGKILL)
    until("new worker", lambda: pair.status("proxy-0").get("pid", first.pid) != first.pid, 15.0)
    until("serving", lambda: pair.status("proxy-0").get("state") == "serving", 15.0)
    now = pair.status("proxy-0")["pid"]
    until("its number", lambda: pair.status("supervisor")["children"]["proxy-0"]["pid"] == now)
    assert f"proxy-0 was started again as process {now}" in pair.log.read_text()
    for _ in range(10):
        assert pair.get(f"{http_site.base}/garden/1").status == 200


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced(state: Path, http_site: Origin) -> None:
    """Stopped, it still has connections accepted, by the kernel, and answers none of them."""
    with GatewayProcess(state, proxy__workers="2", proxy__stall_s="10") as gateway:  # no stall of the machine lasts so long
        first = gateway.child("proxy-0")
        first.send_signal(signal.SIGSTOP)
        until("new worker", lambda: gateway.status("proxy-0").get("pid", first.pid) != first.pid, 40.0)
        until("serving", lambda: gateway.status("proxy-0").get("state") == "serving", 15.0)
        for number in range(10):  # to both workers
            assert gateway.get(f"{http_site.base}/garden/{number}").status == 200
        assert gateway.status("supervisor")["children"]["proxy-0"]["stalls"] == 1
        assert gateway.status("supervisor")["children"]["proxy-1"]["restarts"] == 0
        assert "has not stirred" in gateway.log.read_text()


def ready_again(gateway: GatewayProcess) -> int:
    """Returns how often the fork server was replaced."""
    return gateway.log.read_text().count("the fork server is ready again")


def fork_server_of(gateway: GatewayProcess) -> psutil.Process | None:
    assert gateway.process is not None
    for child in psutil.Process(gateway.process.pid).children():
        with suppress(psutil.Error):
            if "forkserver" in " ".join(child.cmdline()):
                return child
    return None


def test_a_killed_fork_server_ends_nothing(pair: GatewayProcess, http_site: Origin) -> None:
    """It is replaced; a worker that falls afterwards comes back from the new one; SIGTERM ends all of them (`pair`)."""

    def restarts() -> dict[str, int]:
        return {name: pair.status("supervisor")["children"][name]["restarts"] for name in names}

    names = ("proxy-0", "proxy-1", "learner")
    before, restarted, replaced = {name: pair.child(name) for name in names}, restarts(), ready_again(pair)
    fork_server = until("fork server", lambda: fork_server_of(pair))
    fork_server.kill()
    until("another fork server", lambda: ready_again(pair) == replaced + 1, 20.0)
    for _ in range(10):
        assert pair.get(f"{http_site.base}/garden/1").status == 200
    assert all(child.is_running() for child in before.values())
    assert restarts() == restarted
    before["proxy-0"].kill()
    until("new worker", lambda: pair.status("proxy-0").get("pid") not in {None, before["proxy-0"].pid}, 15.0)
    until("note of it", lambda: restarts() == {**restarted, "proxy-0": restarted["proxy-0"] + 1})
    assert pair.child("proxy-0").ppid() != fork_server.pid
    until("serving", lambda: pair.status("proxy-0").get("state") == "serving", 15.0)


def test_a_fork_server_without_children_is_replaced_before_it_is_needed(pair: GatewayProcess, http_site: Origin) -> None:
    """All processes are still those of others: the end of the second one shows in none of them."""
    workers, replaced = [pair.child("proxy-0"), pair.child("proxy-1")], ready_again(pair)
    for kills in (1, 2):
        until("fork server", lambda: fork_server_of(pair)).kill()
        until("another one", lambda wanted=replaced + kills: ready_again(pair) == wanted, 20.0)  # type: ignore[misc]
    for worker in workers:
        worker.kill()
    for name, worker in zip(("proxy-0", "proxy-1"), workers, strict=True):
        until("new worker", partial(is_back, pair, name, worker.pid), 15.0)
    assert pair.get(f"{http_site.base}/garden/1").status == 200


def test_a_killed_supervisor_leaves_nobody_behind(state: Path) -> None:
    with GatewayProcess(state) as gateway:
        children = [gateway.child("proxy-0"), gateway.child("learner")]
        assert gateway.process is not None
        gateway.process.send_signal(signal.SIGKILL)
        gateway.process.wait(30)
        until("end of the children", lambda: all(has_ended(child) for child in children), 40.0)


def test_a_damaged_snapshot_is_passed_over_while_serving(state: Path, http_site: Origin) -> None:
    with GatewayProcess(state) as gateway:
        good = (state / "snapshots" / "current").resolve()
        damaged = good.with_name("snapshot-99999999.gfs")
        damaged.write_bytes(good.read_bytes()[:-100])
        pointer = state / "snapshots" / "next"
        pointer.symlink_to(damaged.name)
        pointer.rename(state / "snapshots" / "current")
        until("refusal", lambda: gateway.status("proxy-0").get("counters", {}).get("snapshot_refused"), 10.0)
        assert gateway.get("http://blocked.gatewayfilter.test/").status == 403
        assert gateway.get(f"{http_site.base}/garden/1").status == 200
        assert gateway.stop() == 0
        gateway.start()
        assert gateway.get("http://blocked.gatewayfilter.test/").status == 403


def test_a_snapshot_damaged_on_the_disk_opens_nothing(pair: GatewayProcess, tmp_path: Path) -> None:
    """Both workers are killed: those that take their place must not follow the pointer to what cannot be verified."""
    hosts = [f"casino{number}.test" for number in range(50)]
    listed = tmp_path / "casinos.txt"
    listed.write_text("\n".join(hosts))

    def blocked() -> int:
        return sum(pair.get(f"http://{host}/").status == 403 for host in hosts)

    state = pair.state
    added = pair.cli("source", "add", str(listed), "--category", "gambling", "--name", "casinos")
    assert added.returncode == 0, added.stderr
    assert pair.cli("publish").returncode == 0
    until("block", lambda: blocked() == 50)
    current = (state / "snapshots" / "current").resolve()
    bloom = read_sections(current.read_bytes())["bloom"]
    workers = {name: pair.child(name) for name in ("proxy-0", "proxy-1")}
    learner = pair.child("learner")
    learner.suspend()  # it publishes another one as soon as the first worker has refused this one; the other may come back later
    try:
        with current.open("r+b") as file:
            file.seek(bloom.offset + 24)
            file.write(bytes(bloom.length - 24))
        for worker in workers.values():
            worker.kill()
        for name, worker in workers.items():
            until(f"another {name}", partial(is_back, pair, name, worker.pid), 30.0)
        assert blocked() == 50
        for name in workers:
            assert pair.status(name)["counters"]["snapshot_refused"] >= 1
        assert f"{current.name} is refused: its section 'bloom' is damaged" in pair.log.read_text()
    finally:
        learner.resume()
    until("healing", lambda: (state / "snapshots" / "current").resolve() != current, 30.0)
    Snapshot.open(state / "snapshots" / "current", verify=True).close()
    for name in workers:
        until(f"swap in {name}", lambda name=name: pair.status(name).get("counters", {}).get("snapshot_swaps"), 15.0)  # type: ignore[misc]
    assert blocked() == 50


@pytest.mark.parametrize("gone", [False, True])
def test_all_snapshots_unusable_while_it_runs_are_made_anew(state: Path, gone: bool) -> None:  # noqa: FBT001
    """No worker can start any more, and says so; the learner publishes."""
    with GatewayProcess(state) as gateway:
        for path in (state / "snapshots").glob("*.gfs"):
            damaged = path.read_bytes()[:-64]
            path.unlink()
            path.write_bytes(damaged)
        if gone:
            shutil.rmtree(state / "snapshots")
        gateway.child("proxy-0").kill()

        def blocks() -> bool:
            try:
                return gateway.get("http://blocked.gatewayfilter.test/").status == 403
            except OSError:
                return False

        until("a worker with a snapshot", blocks, 60.0)


def test_all_snapshots_damaged_are_made_anew(used: Path) -> None:
    for path in (used / "snapshots").glob("*.gfs"):
        path.write_bytes(b"not a snapshot")
    with GatewayProcess(used) as gateway:
        assert gateway.get("http://blocked.gatewayfilter.test/").status == 403


def test_a_damaged_database_does_not_stop_the_filter(used: Path, http_site: Origin) -> None:
    for path in used.glob("gatewayfilter.sqlite3*"):
        path.unlink()
    (used / "gatewayfilter.sqlite3").write_bytes(b"this is no database" * 1000)
    with GatewayProcess(used) as gateway:
        assert gateway.get("http://blocked.gatewayfilter.test/").status == 403
        assert gateway.get(f"{http_site.base}/garden/1").status == 200
        assert "goes on with the last snapshot" in gateway.log.read_text()
        shown = gateway.cli("list", "show")
        assert shown.returncode == 2
        assert "Traceback" not in shown.stderr
        (used / "gatewayfilter.sqlite3").unlink()
        until("log again", lambda: gateway.get(f"{http_site.base}/garden/2") and gateway.json("log", "stats")["decisions"], 20.0)


def refused(gateway: GatewayProcess, *arguments: str) -> str:
    """Starts the filter where it must not start; returns what it says."""
    done = subprocess.run(
        [COMMAND, "run", *arguments], env=gateway.environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_port_in_use(state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused(GatewayProcess(state), "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert "cannot listen" in said
    assert "in use" in said


def test_an_address_of_another_machine(state: Path) -> None:
    assert "cannot listen" in refused(GatewayProcess(state), "--listen", "192.0.2.1:8080")


def test_two_filters_on_one_state_folder(pair: GatewayProcess) -> None:
    assert "another GatewayFilter" in refused(pair)
    assert pair.get("http://blocked.gatewayfilter.test/").status == 403


def test_no_database_and_no_snapshot(state: Path) -> None:
    (state / "gatewayfilter.sqlite3").write_bytes(b"this is no database" * 1000)
    assert "gatewayfilter.sqlite3" in refused(GatewayProcess(state))


def test_a_missing_authority_key(used: Path) -> None:
    (used / "ca" / "mitmproxy-ca.pem").write_text("not a key")
    assert "mitmproxy-ca.pem" in refused(GatewayProcess(used))


def test_an_unknown_setting(state: Path) -> None:
    assert "did you mean 'proxy.listen'" in refused(GatewayProcess(state, proxy__listn="x"))


def test_a_state_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    assert "state folder" in refused(GatewayProcess(tmp_path / "state"))


@pytest.mark.parametrize("program", ["mitmdump", pytest.param("mitmweb", marks=pytest.mark.slow)])
def test_stock_mitmproxy_with_the_addon(state: Path, http_site: Origin, program: str) -> None:
    addon = Path(__file__).parents[2] / "addons" / "gatewayfilter_addon.py"
    gateway = GatewayProcess(state)
    port, web_port = free_port(), free_port()
    web = ["--no-web-open-browser", "--web-port", str(web_port)] if program == "mitmweb" else []
    stock = str(Path(sys.executable).with_name(program))
    with gateway.log.open("w") as log:
        process = subprocess.Popen(
            [
                stock,
                "-q",
                *web,
                "-s",
                str(addon),
                "--listen-host",
                "127.0.0.1",
                "-p",
                str(port),
                "--set",
                f"confdir={state / 'ca'}",
            ],
            env=gateway.environment,
            stdout=log,
            stderr=log,
        )
    gateway.address = f"127.0.0.1:{port}"
    try:

        def answers() -> bool:
            try:
                return gateway.get("http://blocked.gatewayfilter.test/").reason != ""
            except OSError:
                return False

        until(program, answers, 30.0)
        learn(gateway, f"{http_site.base}/casino/13")
    finally:
        process.terminate()
        process.wait(60)
    until("end of the learner", lambda: not (state / "run" / "learner.json").exists(), 10.0)


def test_the_database_is_whole_after_a_kill(state: Path, http_site: Origin) -> None:
    with GatewayProcess(state) as gateway:
        for number in range(5):
            gateway.get(f"{http_site.base}/casino/{number}")
        assert gateway.child("learner").is_running()
        gateway.kill()  # all of it: a worker that drains writes to what is copied
    copy = state.with_name("copy.sqlite3")
    shutil.copy(state / "gatewayfilter.sqlite3", copy)
    for suffix in ("-wal", "-shm"):
        if (state / f"gatewayfilter.sqlite3{suffix}").exists():
            shutil.copy(state / f"gatewayfilter.sqlite3{suffix}", f"{copy}{suffix}")
    with sqlite3.connect(copy) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
