"""Rule sets and the decisions by them: files and folders of snapshots, what is remembered, columns of other types."""

import json
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.format import read_sections
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import SnapshotError, UrlError
from gatewayfilter.model import Action, Reason, Request, ResourceType, Source, Verdict
from gatewayfilter.scaleout.stream import counts, deciding
from gatewayfilter.scaleout.stream.batch import decide_batch, match_batch
from gatewayfilter.scaleout.stream.counts import count_messages, values_of
from gatewayfilter.scaleout.stream.deciding import RecordDecider, RememberingDecider, page_of, type_of, why_no_url
from gatewayfilter.scaleout.stream.rule_set import RuleFile, RuleFolder, RuleSet, version_of
from gatewayfilter.scaleout.stream.worker.answers import Answering, Places, dead_letter, divided
from gatewayfilter.scaleout.stream.worker.meters import Meters
from tests.case_tables import all_cases


def _blob(*hosts: str) -> bytes:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [f".{host}" for host in hosts])
    return builder.build()


BLOB, OTHER = _blob("bad.test"), _blob("bad.test", "b.test")
ENGINE = FilterEngine(Snapshot.from_bytes(BLOB))
RULES = RuleSet.of_engine(ENGINE, "v1")


def test_a_rule_file_is_opened_by_its_version_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.gfs"
    path.write_bytes(BLOB)
    folder = RuleFolder(path, ("gambling",))
    file = folder.current()
    assert file == RuleFile(str(path), f"mine-{ENGINE.snapshot.mark[:8].hex()}", ("gambling",))
    rules = file.open()
    assert rules.version == file.version
    assert rules is RuleFile(*(file.path, file.version, file.off_categories)).open()
    assert match_batch(pa.RecordBatch.from_pydict({"url": ["http://bad.test/"]}), rules)["action"].to_pylist() == ["allow"]
    assert RuleFile(file.path, file.version).open() is not rules
    with pytest.raises(SnapshotError, match=f"holds rules {file.version}, not v0"):
        RuleFile(file.path, "v0").open()
    assert RuleSet.of_engine(ENGINE).version == f"rules-{ENGINE.snapshot.mark[:8].hex()}" == version_of(ENGINE.snapshot)


def test_a_fixed_file_that_changes_is_taken_up_and_a_damaged_one_refused_once(tmp_path: Path) -> None:
    path, told = tmp_path / "mine.gfs", list[str]()
    folder = RuleFolder(path, on_refused=told.append)
    for _ in range(2):
        with pytest.raises(SnapshotError):
            folder.current()
    path.write_bytes(BLOB)
    first = folder.current()
    assert folder.current() is first
    path.with_suffix(".new").write_bytes(b"damaged")
    path.with_suffix(".new").replace(path)
    assert folder.current() is first
    assert folder.current() is first
    assert [text.partition(":")[0] for text in told] == [f"rules stay at {first.version}"]
    path.with_suffix(".new").write_bytes(OTHER)
    path.with_suffix(".new").replace(path)
    assert folder.current().version != first.version
    path.unlink()
    assert folder.current().version != first.version
    assert len(told) == 2


def test_a_snapshot_that_is_damaged_inside_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, closed = tmp_path / "mine.gfs", list[bytes]()
    path.write_bytes(BLOB)
    monkeypatch.setattr(Snapshot, "close", lambda snapshot: closed.append(snapshot.mark))
    file = RuleFolder(path).current()
    assert closed == [ENGINE.snapshot.mark], "it is opened again where it is used"
    table = read_sections(BLOB)["blacklist"]
    damaged = bytearray(BLOB)
    damaged[table.offset + table.length - 1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(SnapshotError):
        RuleFolder(path).current()
    with pytest.raises(SnapshotError):
        RuleFile(file.path, file.version, ("of this test",)).open()


def test_a_folder_has_the_snapshot_that_it_points_to(tmp_path: Path) -> None:
    empty = RuleFolder(tmp_path)
    with pytest.raises(SnapshotError, match=f"there is no snapshot in {tmp_path}"):
        empty.current()
    published = SnapshotFolder(tmp_path)
    published.publish(BLOB)
    first = empty.current()
    assert first.version.startswith("snapshot-00000001-")
    assert empty.current() is first
    published.publish(OTHER)
    assert empty.current().version.startswith("snapshot-00000002-")


class Engine:
    """Decides by a reason that is told, and counts."""

    def __init__(self, reason: Reason = Reason.UNKNOWN) -> None:
        self.asked: list[Request] = []
        self.reason = reason

    def decide(self, request: Request) -> Verdict:
        self.asked.append(request)
        return Verdict(Action.ALLOW, self.reason)

    def explain(self, request: Request) -> Any:
        raise NotImplementedError


def test_verdicts_that_last_are_remembered() -> None:
    lasting = set()
    for reason in Reason:
        engine = Engine(reason)
        decider = RememberingDecider(engine, "192.0.2.9")
        for _ in range(2):
            decider.verdict("http://a.test/")
        assert engine.asked[0].client == "192.0.2.9"
        if len(engine.asked) == 1:
            lasting.add(reason)
    assert lasting == {Reason.ADBLOCK, Reason.ADBLOCK_EXCEPTION, Reason.BLACKLIST, Reason.UNKNOWN}


def test_what_is_remembered_is_known_by_its_texts_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    decider = RememberingDecider(engine)
    same: list[tuple[Any, ...]] = [
        ("http://a.test/", "http://s.test/", "script", "POST"), ("http://b.test/", "http://s.test/", "script", "POST"),
        ("http://a.test/", "http://t.test/", "script", "POST"), ("http://a.test/", "http://s.test/", "image", "POST"),
        ("http://a.test/", "http://s.test/", "script", "GET"), ("http://a.test/", None, None, "GET"),
    ]  # fmt: skip
    for record in same * 2:
        decider.verdict(*record)
    assert len(engine.asked) == len(same)
    decider.verdict("http://a.test/", 7, b"x")  # what is no text counts as none
    assert len(engine.asked) == len(same)
    request = engine.asked[0]
    assert (request.method, str(request.source), request.resource_type, request.client) == (
        "POST", "http://s.test/", ResourceType.SCRIPT, "",
    )  # fmt: skip
    longest = "http://a.test/" + "x" * (deciding.LONGEST_KEPT - 14)
    for url, source, times in (
        (longest, None, 1),
        (longest + "x", None, 2),
        ("http://c.test/", longest, 1),
        ("http://c.test/", longest + "x", 2),
    ):
        before = len(engine.asked)
        decider.verdict(url, source)
        decider.verdict(url, source)
        assert len(engine.asked) == before + times
    monkeypatch.setattr(deciding, "GENERATION", 2)
    decider = RememberingDecider(engine)

    def asks(*hosts: str) -> int:
        before = len(engine.asked)
        for host in hosts:
            decider.verdict(f"http://{host}/")
        return len(engine.asked) - before

    assert asks("a", "b", "c") == 3
    assert asks("a", "c") == 0, "of the generation before, and of this one"
    assert asks("d", "b", "e") == 3, "a came into this one again; b is gone"
    with pytest.raises(UrlError):
        decider.verdict("no url")


def test_a_memory_is_used_where_time_changes_nothing() -> None:
    def decider(policies: object, *, approves: bool) -> type:
        rules = SimpleNamespace(approves=approves)
        state = SimpleNamespace(policies=policies, overlay=SimpleNamespace(rules=rules))
        engine: Any = SimpleNamespace(state=state, decide=None)
        return type(RecordDecider.over(engine))

    assert decider(None, approves=False) is RememberingDecider
    assert decider(object(), approves=False) is RecordDecider
    assert decider(None, approves=True) is RecordDecider


def test_pages_and_types_of_records() -> None:
    for none in (None, "", 7, "no url", "no url" * 200):
        assert page_of(none) is None
    for text in ("http://a.test/x", "http://a.test/" + "x" * 600):
        assert str(page_of(text)) == text
    names = ("script", "SCRIPT", "xhr", "?", "", None, 7)
    kinds = ["script", "script", "xmlhttprequest", "other", "other", "other", "other"]
    assert [type_of(name).value for name in names] == kinds
    assert why_no_url(UrlError("x" * 400)) == "x" * 300


URLS = ["http://bad.test/", None, "http://a.test/", "no url"]


def _columns() -> Iterator[tuple[str, Any]]:
    texts = pa.array(URLS)
    yield from (("large", texts.cast(pa.large_string())), ("view", texts.cast(pa.string_view())))
    yield from (("dictionary", texts.dictionary_encode()), ("sliced", pa.array(["http://bad.test/x", *URLS]).slice(1)))


@all_cases(("name", "urls"), list(_columns()))
def test_texts_may_be_of_any_type(name: str, urls: Any) -> None:
    batch = pa.RecordBatch.from_arrays([urls, pa.nulls(4), urls], ["url", "source", "type"])
    found = match_batch(batch, RULES)
    assert found["action"].to_pylist() == ["block", None, "allow", None], name
    assert found["error"].to_pylist()[:3] == [None, "no url", None]
    assert found["category"].to_pylist() == ["gambling", None, "", None]
    assert found["rules_version"].to_pylist() == ["v1"] * 4


def test_a_column_that_is_not_there_is_no_other_one() -> None:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_adblock_list(builder.add_source(Source("ads", category="ads")), ["/pixel$image", "/post$method=post"])
    engine = RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(builder.build())), "v1")
    urls = pa.array(["http://a.test/pixel", "http://a.test/post"])
    for name, actions in (("note", ["allow", "allow"]), ("type", ["block", "allow"]), ("method", ["allow", "block"])):
        words = pa.array(["image", "POST"]).dictionary_encode()
        for columns, names in (([urls, words], ["url", name]), ([words, urls], [name, "url"])):
            found = match_batch(pa.RecordBatch.from_arrays(columns, names), engine)
            assert found["action"].to_pylist() == actions


def test_a_batch_without_rows_or_verdicts() -> None:
    for batch in (
        pa.RecordBatch.from_pydict({"url": pa.array([], pa.string())}),
        pa.RecordBatch.from_pydict({"url": pa.nulls(2)}),
    ):
        decided = decide_batch(batch, RULES)
        assert not decided.blocked.any()
        assert len(decided.blocked) == batch.num_rows
        assert match_batch(batch, RULES)["error"].to_pylist() == ["no url"] * batch.num_rows
        assert list(count_messages(batch, decided, 60, 90.0, "v1")) == []


def test_columns_decide_row_by_row() -> None:
    builder = SnapshotBuilder(created_at=0.0)
    rules = ["||ads.test^$third-party", "/pixel$image", "/post$method=post"]
    builder.add_adblock_list(builder.add_source(Source("ads", category="ads")), rules)
    engine = RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(builder.build())), "v1")
    words = pa.array(["http://ads.test/", None, "http://a.test/", "http://a.test/"])
    urls = ["http://ads.test/x", "http://ads.test/y", "http://ads.test/x", "http://b.test/x"]
    found = match_batch(pa.RecordBatch.from_arrays([pa.array(urls), words.dictionary_encode()], ["url", "source"]), engine)
    assert found["action"].to_pylist() == ["allow", "block", "block", "allow"]
    kinds, methods = pa.array(["image", "script", None, "IMAGE"]), pa.array([None, "GET", "POST", "POST"])
    urls = ["http://a.test/pixel", "http://a.test/pixel", "http://a.test/post", "http://a.test/pixel"]
    found = match_batch(pa.RecordBatch.from_arrays([pa.array(urls), kinds, methods], ["url", "type", "method"]), engine)
    assert found["action"].to_pylist() == ["block", "allow", "block", "block"]


def test_the_most_frequent_values_are_told_and_the_others_together(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ["a.test"] * 3 + ["bad.test"] * 2 + ["c.test", "d.test"]
    batch = pa.RecordBatch.from_pylist([{"url": f"http://{host}/"} for host in hosts])
    decided = decide_batch(batch, RULES)

    def told() -> dict[str, list[int]]:
        (message,) = [json.loads(text) for _, text in count_messages(batch, decided, 60, 130.0, "v1")]
        assert (message["window"], message["seconds"], message["rules_version"]) == (120, 60, "v1")
        assert (message["records"], message["blocked"]) == (7, 2)
        table: dict[str, list[int]] = message["counts"]["host"]
        return table

    whole = {"a.test": [3, 0], "bad.test": [2, 2], "c.test": [1, 0], "d.test": [1, 0]}
    monkeypatch.setattr(counts, "MOST_VALUES", 4)
    assert told() == whole
    monkeypatch.setattr(counts, "MOST_VALUES", 3)
    assert told() == {"a.test": [3, 0], "bad.test": [2, 2], "c.test": [1, 0], "": [1, 0]}
    monkeypatch.setattr(counts, "MOST_VALUES", 1)
    assert told() == {"a.test": [3, 0], "": [4, 2]}


def test_hosts_and_networks_by_which_is_counted() -> None:
    heads = [b"http://A.test", b"https://b.test:81", b"http://" + b"h" * 300]
    assert values_of("host", [*heads, "", None]) == ["A.test", "b.test:81", "h" * 200, "", ""]
    clients = ["192.0.2.77", "2001:db8:1:2::3", "host", None, "", "1" * 70]
    assert values_of("network", clients) == ["192.0.2.0/24", "2001:db8:1::/48", "", "", "", ""]
    urls = ["http://user:pw@A.test/x", "http://A.test:80/y", "http://[::1]/z"]
    batch = pa.RecordBatch.from_pylist([{"url": url} for url in urls])
    ((_, text),) = count_messages(batch, decide_batch(batch, RULES), 60, 130.0, "v1")
    assert json.loads(text)["counts"]["host"] == {"a.test": [1, 0], "a.test:80": [1, 0], "[::1]": [1, 0]}


def test_what_is_counted_by_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(text: str) -> object:
        asked.append(text)
        return ip_address(text)

    monkeypatch.setattr(counts, "ip_address", read)
    clients = [f"203.0.113.{number}" for number in range(1, 4)]
    for _ in range(2):
        assert values_of("network", clients) == ["203.0.113.0/24"] * 3
    assert asked == clients


@all_cases(
    ("times", "windows"),
    [
        ([59.9, 60.0], [0, 60]), ([60.0, 119.9], [60]), ([None, 60.0], [60, 120]), ([None, None], [120]),
        ([1e12, 130.0], [120]), ([-1e12, 130.0], [120]), ([1e12 - 1, 130.0], [120, 999_999_999_960]),
        ([float("nan"), 60.0], [60, 120]), ([-1.0, 0.0], [-60, 0]),
    ],
)  # fmt: skip
def test_windows_of_times(times: list[float | None], windows: list[int]) -> None:
    records = [{"url": "http://a.test/", "time": time} for time in times]
    batch = pa.RecordBatch.from_pylist(records, schema=pa.schema([("url", pa.string()), ("time", pa.float64())]))
    messages = list(count_messages(batch, decide_batch(batch, RULES), 60, 130.0, "v1"))
    assert [start for start, _ in messages] == windows
    assert [json.loads(text)["window"] for _, text in messages] == windows
    assert sum(json.loads(text)["records"] for _, text in messages) == 2


def test_answers_have_the_places_of_their_messages() -> None:
    places = Places([("in", 1), ("in", 2), ("to", 1)], [7, 8, 255])
    keys = [places.key(row) for row in range(3)]
    assert len(set(keys)) == 3
    assert [key[16:] for key in keys] == [b"%016x" % offset for offset in (7, 8, 255)]
    assert [len(key) for key in keys] == [32] * 3
    assert places.prefixes() == [key[:16] for key in keys]
    assert places.part(1, 3) == Places([("in", 2), ("to", 1)], [8, 255])
    letter = dead_letter(b"\xff" + b"x" * 200_000, places, 2, "why")
    found = json.loads(letter["value"])
    assert (letter["key"], len(found.pop("input"))) == (keys[2], 99_999 + 4)
    assert found == {"error": "why", "topic": "to", "partition": 1, "offset": 255}


def test_poison_is_found_by_halving() -> None:
    def answer(values: Any, places: Places) -> tuple[list[bytes], list[int]]:
        if b"poison" in values:
            raise RuntimeError("x" * 400)
        return list(values), places.offsets

    def refused(value: bytes, places: Places, why: str) -> Any:
        assert why == ("internal error: RuntimeError: " + "x" * 400)[:300]
        return value, places.offsets

    values = [b"a", b"poison", b"c", b"d", b"e"]
    found = list(divided(answer, refused, values, Places([("in", 0)] * 5, [5, 6, 7, 8, 9])))
    assert found == [([b"a"], [5]), (b"poison", [6]), ([b"c", b"d", b"e"], [7, 8, 9])]
    assert list(divided(answer, refused, [b"a"], Places([("in", 0)], [1]))) == [([b"a"], [1])]


def test_answers_of_a_batch() -> None:
    from gatewayfilter.scaleout.stream.traffic.lines import JsonReader  # noqa: PLC0415  beside its only use

    values = [
        b"{",
        b'{"url": "http://bad.test/", "time": 5}',
        b'{"url": "no"}',
        b'{"url": "http://a.test/", "user": null, "x": 1}',
    ]
    places = Places([("in", 3)] * 4, [7, 8, 9, 10])

    def answered(**options: Any) -> Any:
        return Answering(JsonReader(), **options).answer(values, places, RULES, 130.0)

    def sent(answers: Any) -> list[tuple[bytes, dict[str, Any]]]:
        letters = [letter for spliced in answers.decided for run in spliced.runs() for letter in run]
        return [(letter["key"], json.loads(letter["value"])) for letter in letters]

    whole = answered()
    assert (whole.records, whole.blocked) == (2, 1)
    assert [key for key, _ in sent(whole)] == [places.key(1), places.key(3)]
    assert [json.loads(letter["value"])["offset"] for letter in whole.dead] == [7, 9]
    assert [letter["key"] for letter in whole.counts] == [places.key(0) + b"/0", places.key(0) + b"/120"]
    verdict = {"action": "block", "reason": "blacklist", "rule": ".bad.test", "source_list": "black", "category": "gambling"}
    assert sent(whole)[0][1] == {"url": "http://bad.test/", "time": 5, **verdict, "rules_version": "v1"}
    assert sent(answered(blocked_only=True)) == sent(whole)[:1]
    assert answered(window_s=0).counts == []
    assert answered(window_s=60).counts == whole.counts
    plain = sent(answered(splices=False))
    assert plain[1][1]["url"] == "http://a.test/"
    assert {"user", "x"}.isdisjoint(plain[1][1])
    assert sent(whole)[1][1]["x"] == 1
    values = [b"{"]
    places = Places([("in", 3)], [7])
    assert (answered().decided, answered().records, len(answered().dead)) == ([], 0, 1)
    values = [b'{"url": "no"}']
    assert (answered().records, answered().counts, len(answered().dead)) == (0, [], 1)


def test_meters_count_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from gatewayfilter.errors import StartupError  # noqa: PLC0415  beside its only use
    from gatewayfilter.scaleout.stream.worker import meters as module  # noqa: PLC0415  likewise

    meters = Meters()
    answers: Any = SimpleNamespace(records=10, blocked=3, dead=[1, 2])
    meters.done(12, answers, "v1", 0.5)
    meters.done(12, answers, "v2", 0.25)
    read: Callable[..., float | None] = meters.registry.get_sample_value
    name = "gatewayfilter_stream"
    assert read(f"{name}_messages_total") == 24
    assert [read(f"{name}_records_total", {"action": action}) for action in ("block", "allow")] == [6, 14]
    assert (read(f"{name}_dead_letters_total"), read(f"{name}_cpu_seconds_total")) == (4, 0.75)
    assert [read(f"{name}_rules", {"version": version}) for version in ("v1", "v2")] == [None, 1]
    assert (read(f"{name}_outages_total"), read(f"{name}_rules_refused_total")) == (0, 0)
    listened: list[tuple[Any, ...]] = []
    monkeypatch.setattr(module, "start_http_server", lambda *values: listened.append(values))
    for address in (":9000", "[::1]:9001"):
        meters.listen(address)
    assert listened == [(9000, "127.0.0.1", meters.registry), (9001, "::1", meters.registry)]
    with pytest.raises(StartupError, match="cannot listen on a:b"):
        meters.listen("a:b")
