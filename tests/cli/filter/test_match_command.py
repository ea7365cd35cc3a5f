"""`match --list`, in processes of its own: no state folder, streams, answers line by line."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest

from tests.cli.conftest import Cli

COMMAND = [sys.executable, "-m", "gatewayfilter.cli", "match"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAYFILTER_")}
    return {**clean, "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def lists(tmp_path: Path) -> list[Path]:
    rules, hosts = tmp_path / "rules.txt", tmp_path / "hosts.txt"
    rules.write_text("[Adblock Plus 2.0]\n||ads.example^$third-party,script\n@@||ads.example/fine^\n")
    hosts.write_text("0.0.0.0 casino.example\n")
    return [rules, hosts]


def test_only_the_named_lists_count_and_no_state_is_made(lists: list[Path], environment: dict[str, str], tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    records = [
        {"url": "https://ads.example/a.js", "source": "https://news.example/", "type": "script", "n": 1},
        {"url": "https://ads.example/fine", "source": "https://news.example/", "type": "script"},
        {"url": "https://ads.example/a.js", "source": "https://ads.example/", "type": "script"},
        {"url": "http://casino.example/", "type": "document"},
        {"url": "http://casino.example/"},
        {"url": "not a url"},
    ]
    requests.write_text("\n".join(map(json.dumps, records)))
    arguments = [part for path in lists for part in ("--list", str(path))]
    done = subprocess.run(
        [*COMMAND, "--requests", requests, *arguments, "--stats"], capture_output=True, text=True, check=True, env=environment
    )
    out = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line.get("action"), line.get("reason"), line.get("source_list")) for line in out] == [
        ("block", "adblock", "rules.txt"),
        ("allow", "adblock-exception", "rules.txt"),
        ("allow", "unknown", ""),
        ("block", "blacklist", "hosts.txt"),
        ("block", "blacklist", "hosts.txt"),
        (None, None, None),
    ]
    assert out[0]["n"] == 1
    assert out[5]["error"]
    assert "2  block blacklist" in done.stderr
    assert "line 6: not a URL: 'not a url'\ngatewayfilter: 1 line held no request" in done.stderr
    assert not (tmp_path / "state").exists()
    assert not (tmp_path / "home").exists()


def test_answers_come_while_requests_still_come(lists: list[Path], environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*COMMAND, "--list", lists[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for host, action in (("casino.example", "block"), ("fine.example", "allow")):
            process.stdin.write(json.dumps({"url": f"http://{host}/"}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["action"] == action
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_reader_that_leaves_early_is_no_error(lists: list[Path], environment: dict[str, str], tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text('{"url": "http://casino.example/"}\n' * 20_000)
    line = f"{' '.join(COMMAND)} --list {lists[1]} --requests {requests} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
    assert done.stdout.splitlines()[1] in {"0", "141"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--list", "not-there.txt"], "cannot read not-there.txt: No such file or directory"),
        (["--list", "{empty}"], "cannot use {empty}"),
        (["--requests", "not-there.jsonl", "--list", "{list}"], "cannot read not-there.jsonl"),
        (["--requests", "{folder}", "--list", "{list}"], "cannot read {folder}: Is a directory"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str, lists: list[Path], cli: Cli, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    names = {"empty": empty, "list": lists[0], "folder": tmp_path}
    done = cli("match", *(argument.format(**names) for argument in arguments), stdin="")
    assert sentence.format(**names) in done.complains()
    assert done.code == 2


@pytest.fixture
def long_input(tmp_path: Path) -> Path:
    """More lines than are decided without workers, each its own; every thousandth is none."""
    file = tmp_path / "long.jsonl"
    hosts = ("casino.example", "fine.example", "ads.example")
    records = (
        "nonsense" if number % 1000 == 999 else json.dumps({"url": f"http://{hosts[number % 3]}/{number}", "n": number})
        for number in range(40_000)
    )
    file.write_text("\n".join(records) + "\n")
    return file


@pytest.mark.slow
def test_all_jobs_give_the_same_answers_in_the_same_order(
    lists: list[Path], environment: dict[str, str], long_input: Path
) -> None:
    arguments = [part for path in lists for part in ("--list", str(path))]
    done = [
        subprocess.run(
            [*COMMAND, *arguments, "--requests", long_input, "--jobs", jobs, "--stats"],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        for jobs in ("1", "3")
    ]
    assert done[0].stdout == done[1].stdout
    answers = [json.loads(line) for line in done[1].stdout.splitlines()]
    assert [answer.get("n") for answer in answers] == [None if number % 1000 == 999 else number for number in range(40_000)]
    for run in done:
        assert "line 1,000: not JSON" in run.stderr
        assert "40 lines held no request" in run.stderr
        assert "40,000  in all" in run.stderr


def _workers(process: psutil.Process, count: int) -> list[psutil.Process]:
    """Waits for a run's worker processes: those that have the snapshot mapped."""
    found: list[psutil.Process] = []
    while len(found) < count:
        found = [child for child in process.children(recursive=True) if _has_snapshot(child)]
    return found


def _has_snapshot(process: psutil.Process) -> bool:
    try:
        return any("gatewayfilter-" in place.path for place in process.memory_maps())
    except psutil.NoSuchProcess:  # it has ended
        return False


@pytest.mark.slow
def test_answers_of_workers_come_while_requests_still_come(
    lists: list[Path], environment: dict[str, str], long_input: Path
) -> None:
    command = [*COMMAND, "--list", str(lists[1]), "--jobs", "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        writer = threading.Thread(target=process.stdin.write, args=(long_input.read_bytes(),))
        writer.start()
        for _ in range(40_000):
            assert process.stdout.readline()
        writer.join()
        for host, action in (("casino.example", b"block"), ("fine.example", b"allow")):
            process.stdin.write(json.dumps({"url": f"http://{host}/"}).encode() + b"\n")
            process.stdin.flush()
            assert action in process.stdout.readline()
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code", "sentence"),
    [
        ("worker", 2, "gatewayfilter: a worker process of match ended unexpectedly"),
        ("interrupt", 130, ""),
        ("reader", None, ""),
    ],
)
def test_every_end_is_clean(
    end: str, code: int | None, sentence: str, lists: list[Path], environment: dict[str, str], long_input: Path
) -> None:
    command = [*COMMAND, "--list", str(lists[1]), "--jobs", "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=environment, process_group=0) as process:  # type: ignore[call-overload]
        assert process.stdin is not None
        writer = threading.Thread(target=_keep_writing, args=(process.stdin, long_input.read_bytes()), daemon=True)
        writer.start()
        answers = [process.stdout.readline() for _ in range(30_000)]
        workers = _workers(psutil.Process(process.pid), 1)
        if end == "worker":
            workers[0].kill()
            answers += process.stdout.readlines()
        elif end == "interrupt":
            os.killpg(process.pid, signal.SIGINT)
            process.stdout.read()
        else:
            process.stdout.close()
        said = process.stderr.read().decode()
        process.wait(30)
        writer.join(30)
    assert sentence in said
    assert "Traceback" not in said
    assert "Fatal" not in said
    if code is not None:
        assert process.returncode == code
    numbers = [json.loads(line)["n"] if b"input" not in line else None for line in answers]
    assert numbers == [None if number % 1000 == 999 else number for number in (place % 40_000 for place in range(len(numbers)))]
    psutil.wait_procs(workers, timeout=30)
    assert not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers)


def _keep_writing(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError):
        while True:
            stream.write(data)


@pytest.mark.slow
def test_workers_end_with_a_parent_that_was_killed(lists: list[Path], environment: dict[str, str], long_input: Path) -> None:
    command = [*COMMAND, "--list", str(lists[1]), "--jobs", "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        writer = threading.Thread(target=_keep_writing, args=(process.stdin, long_input.read_bytes()), daemon=True)
        writer.start()
        for _ in range(30_000):
            process.stdout.readline()
        workers = _workers(psutil.Process(process.pid), 1)
        process.kill()
        process.stdout.close()
        process.wait(30)
        writer.join(30)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
