"""`match --list`, in processes of its own: no state folder, streams, answers line by line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_bad_input_is_one_sentence(
    arguments: list[str], sentence: str, lists: list[Path], environment: dict[str, str], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    names = {"empty": empty, "list": lists[0], "folder": tmp_path}
    done = subprocess.run(
        [*COMMAND, *(argument.format(**names) for argument in arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        input="",
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence.format(**names) in done.stderr
    assert done.stderr.startswith("gatewayfilter: ")
