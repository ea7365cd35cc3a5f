"""`match` on access logs, probes and Parquet: the verdicts of the engine, bad lines counted or kept apart, clear refusals."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from gatewayfilter.cli.bulk.json_lines import read_batches
from gatewayfilter.cli.filter.match_command import ALONE
from gatewayfilter.cli.filter.request_workers import RequestWorker
from gatewayfilter.cli.filter.traffic_requests import TrafficLines
from gatewayfilter.model import Action, Explanation, Reason, Request, Verdict
from gatewayfilter.scaleout.stream.batch import RECORD
from gatewayfilter.scaleout.stream.deciding import RecordDecider
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat
from gatewayfilter.scaleout.stream.traffic.lines import FIELDS
from tests.cli.conftest import Cli

SQUID = "1793449800.123     45 192.0.2.7 TCP_MISS/200 12 GET http://{}/x.js - HIER_DIRECT/198.51.100.1 text/javascript"
COMBINED = '192.0.2.7 - - [31/Oct/2026:12:30:00 +0000] "GET http://{}/x HTTP/1.1" 200 17 "http://page.test/" "curl"'
ZEEK = "#fields\tts\tid.orig_h\tmethod\thost\turi\n1793449800.5\t192.0.2.7\tGET\t{}\t/x"
TSHARK = "1793449800.5\t192.0.2.7\t40000\t198.51.100.1\t80\t6\t{}\t/x?y\tGET\t"
LINES = {"squid": SQUID, "combined": COMBINED, "zeek": ZEEK, "tshark": TSHARK, "jsonl": '{{"url": "http://{}/", "id": 1}}'}


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.txt"
    path.write_text("0.0.0.0 bad.example\n")
    return path


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    """Parquet with a column that is none of a record's, and one row that is no request."""
    path = tmp_path / "traffic.parquet"
    rows = [
        {"url": "http://bad.example/", "n": 1, "score": float("nan")},
        {"url": "nonsense", "n": 2, "score": 0.5},
        {"url": "http://fine.example/", "n": 3, "score": None},
    ]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_fields_of_lines_are_those_of_batches() -> None:
    assert {field.name: str(field.type) for field in RECORD} == FIELDS


@pytest.mark.parametrize("form", LINES)
def test_lines_of_each_format(cli: Cli, form: str, hosts: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = [LINES[form].format("bad.example"), "nonsense {", "", LINES[form].format("fine.example")]
    log.write_text("\n".join(lines) + "\n")
    arguments = ("match", "--list", hosts, "--format", form, "--requests", log)
    answer = cli(*arguments, "--stats")
    assert answer.code == 0, answer.err
    assert [(line.get("action"), line.get("reason")) for line in answer.lines] == [
        *(("block", "blacklist"), (None, None), ("allow", "unknown")),
    ]
    assert answer.lines[1]["input"] == "nonsense {"
    assert "1 line held no request" in answer.err
    assert f"line {lines[0].count(chr(10)) + 2}: " in answer.err
    if form != "jsonl":
        assert (answer.lines[0]["client"], answer.lines[0]["source_list"]) == ("192.0.2.7", "hosts.txt")

    apart = cli(*arguments, "--dead", tmp_path / "dead", "--output", tmp_path / "out")
    assert (apart.code, apart.out) == (0, "")
    assert [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()] == [answer.lines[0], answer.lines[2]]
    (letter,) = map(json.loads, (tmp_path / "dead").read_text().splitlines())
    assert letter == {"line": lines[0].count("\n") + 2, "error": answer.lines[1]["error"], "input": "nonsense {"}
    assert (tmp_path / "dead").stat().st_mode & 0o777 == 0o600

    table = cli(*arguments, "--output", tmp_path / "out.parquet", "--stats")
    assert table.code == 0, table.err
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["action"], row["reason"]) for row in rows] == [("block", "blacklist"), ("allow", "unknown")]
    assert "1 line held no request" in table.err
    assert not (tmp_path / "out.parquet.part").exists()


def test_parquet_in_and_out(cli: Cli, hosts: Path, traffic: Path, tmp_path: Path) -> None:
    arguments = ("match", "--list", hosts, "--format", "parquet", "--requests", traffic)
    answer = cli(*arguments)
    assert answer.code == 0, answer.err
    blocked, bad, allowed = answer.lines
    assert blocked.pop("rules_version")
    assert blocked == {"url": "http://bad.example/", "n": 1, "action": "block", "reason": "blacklist", "rule": "bad.example",
                       "source_list": "hosts.txt", "category": blocked["category"]}  # fmt: skip
    assert (bad["n"], bad["error"], "action" in bad) == (2, "not a URL: 'nonsense'", False)
    assert allowed["action"] == "allow"
    assert "line 2: not a URL: 'nonsense'" in answer.err

    out, dead = tmp_path / "out.parquet", tmp_path / "dead"
    assert cli(*arguments, "--output", out, "--dead", dead).code == 0
    table = parquet.read_table(out)
    assert table["n"].to_pylist() == [1, 3]
    assert table["action"].to_pylist() == ["block", "allow"]
    assert json.loads(dead.read_text()) == {"line": 2, "error": "not a URL: 'nonsense'", "input": "nonsense"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--format", "parquet", "--requests", "{hosts}"], "cannot use {hosts}: "),
        (["--format", "parquet", "--requests", "{other}"], "cannot use {other}: the records have no column url"),
        (["--format", "parquet", "--requests", "{other}", "--output", "{out}"], "cannot use {other}: the records have no column"),
        (["--format", "squid", "--requests", "{hosts}", "--dead", "{hosts}"], "cannot write {hosts}: it is also the input"),
        (["--format", "squid", "--requests", "{hosts}", "--output", "{hosts}"], "cannot write {hosts}: it is also the input"),
        (
            ["--requests", "{hosts}", "--output", "{out}", "--dead", "{out}"],
            "cannot write {out}: it is also the file of dead lines",
        ),
        (["--requests", "{hosts}", "--output", "/nowhere/x"], "cannot write /nowhere/x: No such file or directory"),
    ],
)
def test_refusals_leave_files_as_they_were(cli: Cli, hosts: Path, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    other = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"uri": ["http://a.example/"]}), other)
    names = {"hosts": hosts, "other": other, "out": tmp_path / "out.parquet"}
    before = hosts.read_bytes()
    complaint = cli("match", "--list", hosts, *(part.format(**names) for part in arguments)).complains()
    assert complaint.startswith(sentence.format(**names))
    assert hosts.read_bytes() == before
    assert sorted(path.name for path in tmp_path.glob("out*")) == []


def test_without_pyarrow_one_sentence_names_the_extra(
    cli: Cli, hosts: Path, traffic: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.startswith(("pyarrow", "gatewayfilter.cli.filter.table_match"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    complaint = cli("match", "--list", hosts, "--format", "parquet", "--requests", traffic).complains()
    assert "gatewayfilter[parquet]" in complaint
    log = tmp_path / "log"
    log.write_text(SQUID.format("bad.example") + "\n")
    assert cli("match", "--list", hosts, "--format", "squid", "--requests", log).lines[0]["action"] == "block"


class _Engine:
    def decide(self, request: Request) -> Verdict:
        return Verdict(Action.ALLOW, Reason.UNKNOWN, rule=request.url.host)

    def explain(self, request: Request) -> Explanation:
        raise NotImplementedError


class _ByClient(_Engine):
    def decide(self, request: Request) -> Verdict:
        return Verdict(Action.ALLOW, Reason.UNKNOWN, rule=request.client)


def test_a_record_is_decided_for_its_client() -> None:
    for form, client in (("squid", "192.0.2.7"), ("combined", "192.0.2.7"), ("jsonl", "")):
        lines = TrafficLines(RecordDecider(_ByClient()), TrafficFormat(form))
        [batch] = lines.batches(io.BytesIO(LINES[form].format("a.example").encode() + b"\n"))
        assert json.loads(lines.decide(batch).text).get("rule", "") == client, form


def test_zeeks_batches_can_be_read_apart() -> None:
    """Each batch has the header that holds for it, whoever reads it, and lines keep their numbers."""
    text = "".join(
        f"{header}\n" + "".join(f"{values.format(number)}\n" for number in range(30)) + "bad\n"
        for header, values in (
            ("#separator \\x09\n#fields\tts\thost\turi", "1.0\th{}.test\t/"),
            ("#separator \\x09\n#fields\thost\tts\turi", "h{}.test\t1.0\t/"),
            ("#separator |\n#unset_field|~\n#fields|ts|host|uri", "~|h{}.test|/"),
            ("#separator \\x09\n#unset_field\t-\nuri\thost", "-\th{}.test"),
        )
    )

    class _Slow(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read1(100)

    lines = TrafficLines(RecordDecider(_Engine()), TrafficFormat.ZEEK)
    batches = list(lines.batches(_Slow(text.encode())))
    assert len(batches) > 5
    found: list[dict[str, Any]] = []
    bad: list[int] = []
    for batch in batches:
        answers = TrafficLines(RecordDecider(_Engine()), TrafficFormat.ZEEK).decide(batch)
        found += map(json.loads, answers.text.decode().splitlines())
        bad += [number for number, _ in answers.bad]
    assert [row["rule"] for row in found if "rule" in row] == [f"h{number}.test" for number in range(30)] * 4
    assert bad == [33, 66, 100, 134]
    assert sum(batch.size for batch in batches) == len(text)
    assert [batch.size for batch in batches] == [batch.size for batch in read_batches(_Slow(text.encode()))]


@pytest.mark.slow
def test_workers_decide_zeeks_lines_in_order(cli: Cli, hosts: Path, tmp_path: Path) -> None:
    assert RequestWorker.preload
    log = tmp_path / "http.log"
    names = ("bad.example", "fine.example")
    rows = (f"{number}\t{names[number % 2]}\t/{number}" if number % 1000 else "nonsense" for number in range(2 * ALONE))
    log.write_text("#fields\tts\thost\turi\n" + "\n".join(rows) + "\n")
    arguments = ("match", "--list", hosts, "--format", "zeek", "--requests", log, "--dead", tmp_path / "dead")
    one, two = (cli(*arguments, "--jobs", jobs, "--output", tmp_path / f"out{jobs}") for jobs in (1, 2))
    assert (one.code, two.code) == (0, 0), two.err
    assert (tmp_path / "out1").read_bytes() == (tmp_path / "out2").read_bytes()
    assert len((tmp_path / "out2").read_text().splitlines()) == 2 * ALONE - 40
    assert [json.loads(line)["line"] for line in (tmp_path / "dead").read_text().splitlines()] == list(range(2, 2 * ALONE, 1000))
