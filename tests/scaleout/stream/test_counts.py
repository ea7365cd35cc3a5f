"""Counts are those of records one by one, whatever their times, clients and URLs are."""

import json
from collections import Counter
from ipaddress import ip_address, ip_network
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import Source
from gatewayfilter.scaleout.spark.partition_counts import PartitionCounts
from gatewayfilter.scaleout.stream import counts
from gatewayfilter.scaleout.stream.batch import RECORD, decide_batch, match_batch
from gatewayfilter.scaleout.stream.counts import count_messages
from gatewayfilter.scaleout.stream.rule_set import RuleSet

NOW = 90.0


def _rules() -> RuleSet:
    builder = SnapshotBuilder(created_at=0.0)
    for name, category, host in (
        ("black", "gambling", ".bad.test"),
        ("grey", "ads", ".ads.test"),
        ("l" * 150, "c" * 300, ".l.test"),
    ):
        builder.add_keys(builder.add_source(Source(name, category=category)), [host])
    return RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(builder.build())), "v1")


RULES = _rules()
_records = st.fixed_dictionaries(
    {
        "url": st.sampled_from(
            [
                *("http://bad.test/x", "https://bad.test/y", "http://a.test/", "http://A.test:80/", "no url", "http://[::1]/"),
                *("http://ads.test/%41", "http://" + "h" * 300 + ".test/", "ftp://x/", "", "http://l.test/" + "p" * 200),
            ]
        )
    },
    optional={
        "time": st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 59.9, 60.0, 3e9, 1e300, -1e13, float("nan"), float("inf")])),
        "client": st.one_of(
            st.none(), st.sampled_from(["192.0.2.1", "192.0.2.9", "2001:db8::1", "fe80::1%eth0", "::ffff:192.0.2.1", "host", ""])
        ),
    },
)


def _network(client: str | None) -> str:
    try:
        address = ip_address(client or "")
    except ValueError:
        return ""
    return str(ip_network(f"{address}/{24 if address.version == 4 else 48}", strict=False))  # IPv4


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower()[: counts.LONGEST_VALUE]


def _expected(records: list[dict[str, Any]], verdicts: list[dict[str, Any]]) -> dict[tuple[int, str, str], list[int]]:
    found: dict[tuple[int, str, str], list[int]] = {}
    for record, verdict in zip(records, verdicts, strict=True):
        if verdict["error"] is not None:
            continue
        time = record.get("time")
        window = int((NOW if time is None or not abs(time) < 1e12 else time) // 60) * 60
        rule = f"{verdict['source_list']}: {verdict['rule']}"[: counts.LONGEST_VALUE] if verdict["rule"] else ""
        named = {
            "host": _host(record["url"]),
            "category": verdict["category"][: counts.LONGEST_VALUE],
            "rule": rule,
            "network": _network(record.get("client")),
        }
        for name, value in named.items():
            known = found.setdefault((window, name, value), [0, 0])
            known[0] += 1
            known[1] += verdict["action"] == "block"
    return found


@given(st.lists(st.lists(_records, max_size=12), max_size=3))
@settings(max_examples=30, deadline=None)
def test_counts_are_those_of_single_records(parts: list[list[dict[str, Any]]]) -> None:
    partition, expected = PartitionCounts(60), Counter[tuple[int, str, str, int]]()
    for records in parts:
        batch = pa.RecordBatch.from_pylist(records, schema=RECORD)
        verdicts = match_batch(batch, RULES).to_pylist()
        alone = _expected(records, verdicts)
        decided = decide_batch(batch, RULES)
        partition.add(batch, decided, NOW)
        for key, both in alone.items():
            expected.update({(*key, place): number for place, number in enumerate(both)})
        messages = [json.loads(text) for _, text in count_messages(batch, decided, 60, NOW, "v1")]
        told = {
            (message["window"], name, value): both
            for message in messages
            for name, table in message["counts"].items()
            for value, both in table.items()
        }
        assert told == alone
        for message in messages:
            of_hosts = [both for (window, name, _), both in alone.items() if (window, name) == (message["window"], "host")]
            assert [message["records"], message["blocked"]] == [sum(column) for column in zip(*of_hosts, strict=True)]
    rows = partition.table("v1").to_pylist()
    found = {(row["window"], row["dimension"], row["value"]): [row["records"], row["blocked"]] for row in rows}
    assert len(rows) == len(found)
    assert found == {key: [expected[*key, 0], expected[*key, 1]] for key in {key[:3] for key in expected}}


def test_a_window_for_each_record_costs_no_more_than_one_for_all() -> None:
    """As of a hostile client: each window would be looked for among all records."""
    times = [60.0 * number for number in range(5_000)]
    batch = pa.RecordBatch.from_pylist([{"url": f"http://h{number}.test/", "time": time} for number, time in enumerate(times)])
    partition = PartitionCounts(60)
    partition.add(batch, decide_batch(batch, RULES), NOW)
    table = partition.table("v1")
    assert table.num_rows == 4 * len(times)
    assert sorted(set(table["window"].to_pylist())) == times


@pytest.mark.parametrize("memory", [counts._hosts_by_head, counts._networks_by_client])
def test_what_is_remembered_is_bounded(memory: counts._Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_REMEMBERED", 3)
    keys = [f"http://192.0.2.{number}".encode() for number in range(9)]
    given: list[counts.Key] = [*keys] if memory is counts._hosts_by_head else [key.decode()[7:] for key in keys]
    memory.clear()
    values = [memory[key] for key in given]
    assert len(memory) <= 3
    assert values == ([key.decode()[7:] for key in keys] if memory is counts._hosts_by_head else ["192.0.2.0/24"] * 9)
