"""Hostile servers between a publisher and its followers, and publishers whose key was stolen."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.export import copy_export
from gatewayfilter.fleet.follower_state import Fault
from gatewayfilter.fleet.keys import KeyFile, SigningKeys
from gatewayfilter.fleet.transport import Answer, Transport, TransportError
from tests.fleet.fleet_fakes import Gateway, Publisher
from tests.fleet.test_fleet_endpoint import answering, plain

NAN, INF = float("nan"), float("inf")


def rule(**facts: object) -> list[object]:
    row = {"action": "block", "kind": "domain", "pattern": "x.example", "comment": "", "locked": False, "end": 0, "scope": ""}
    return list({**row, **facts}.values())


def bundle(*rules: list[object], items: object = ()) -> bytes:
    return json.dumps({"rules": rules, "items": items, "locked": []}).encode()


def test_signed_manifests_with_values_that_cannot_be(publisher: Publisher, gateway: Gateway) -> None:
    wrong: list[dict[str, object]] = [
        {"sequence": 1e300}, {"sequence": 2**53}, {"sequence": NAN}, {"created_at": NAN}, {"created_at": INF},
        {"expires_at": NAN}, {"expires_at": INF}, {"program": "\x1b[2J"}, {"keys": []}, {"snapshot": {}},
    ]  # fmt: skip
    parts: list[dict[str, object]] = [
        {"made_at": NAN}, {"size": 10**13}, {"name": "../../etc/passwd"}, {"block_bytes": 0}, {"segments": [10**30]},
    ]  # fmt: skip
    publisher.export()
    assert gateway.follower.poll().fault is Fault.OK
    whole = (publisher.folder / "manifest").read_bytes()
    for number, facts in enumerate([*wrong, *parts]):
        (publisher.folder / "manifest").write_bytes(whole)
        publisher.forge(parts=facts) if facts in parts else publisher.forge(facts)
        state = gateway.follower.poll()
        assert (state.fault, state.failures) == (Fault.SIGNATURE, number + 1), facts
        assert state.sentence.isprintable()


def test_signed_rules_that_cannot_be(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.follower.poll()
    contents = [
        *(bundle(rule(end=end)) for end in (NAN, INF, 1e300, -5.0)),
        bundle(rule(scope="group:\x1b[2J\n")), bundle(rule(scope="group:" + "a" * 10_000)), bundle(rule(scope="../group:a")),
        bundle(rule(pattern="\u202ex")), bundle(rule(pattern=5)), bundle(rule(kind=[])), bundle(rule(action="allow-all")),
        bundle(rule(kind="regex", pattern="(a{1,30000}){1,3000}")), bundle(rule(kind="regex", pattern=r"(.*)*\1x")),
        bundle(items=[{"kind": "pause", "name": "x", "scope": "all", "target": "", "until": 1e300}]),
        bundle(items=[{"kind": "policy", "name": "a", "sources": []}]), b"[" * 100_000, b"[]", b"5", b"\xff",
    ]  # fmt: skip
    for content in contents:
        publisher.forge(bundle=content)
        state = gateway.follower.poll()
        assert state.fault is Fault.CONTENT, content[:100]
        assert state.sentence.isprintable()
        assert not gateway.store.lists.rules()
    assert gateway.blocks(".host-7.example"), "the last good lists stay"


def test_texts_of_policies_have_no_control_characters(publisher: Publisher, gateway: Gateway) -> None:
    note = "one\ntwo \x1b[2J\x07\x9b" + "x" * 100_000
    publisher.export()
    publisher.forge(bundle=bundle(items=[{"kind": "group", "name": "class \x1b]0;", "note": note}]))
    assert gateway.follower.poll().fault is Fault.OK
    group = gateway.store.policies.read().groups["class ]0;"]
    assert group.note.startswith("one\ntwo [2Jx")
    assert len(group.note) <= 10_000


def test_a_server_that_always_answers_that_nothing_changed(publisher: Publisher, gateway: Gateway) -> None:
    publisher.settings = publisher.settings.model_copy(update={"valid_h": 1.0})
    publisher.export()
    gateway.now = publisher.now
    assert gateway.follower.poll().fault is Fault.OK
    gateway.transport.manifest = lambda etag, most: Answer(304, etag, b"")  # type: ignore[method-assign]
    gateway.now += 3_600
    assert gateway.follower.poll().fault is Fault.OK
    gateway.now += 7_300
    assert gateway.restarted().poll().fault is Fault.EXPIRED
    assert gateway.blocks(".host-7.example"), "the last good lists stay"


def test_a_damaged_file_of_a_follower_is_fetched_again(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.follower.poll()
    for name in ("base.gfs", "bundle.json"):
        damaged = gateway.home / "fleet" / name
        whole = damaged.read_bytes()
        damaged.write_bytes(bytes(64) + whole[64:])
        assert gateway.follower.poll().fault in {Fault.DISK, Fault.CONTENT}
        assert gateway.follower.poll().fault is Fault.OK
        assert damaged.read_bytes() == whole


@pytest.mark.parametrize(
    "words",
    [
        b"\x1b[2J\x1b]0;x\x07 " + b"A" * 3_000 + b"\r\n\r\n",
        b"HTTP/1.1 \x1b[31mxx no\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 90_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 5_000 + b"\r\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\nx",
    ],
)
def test_words_of_a_server_are_short_and_plain(words: bytes) -> None:
    with (
        answering(plain(words)) as address,
        closing(Transport(address, "", answer_s=2.0)) as transport,
        pytest.raises(TransportError) as failed,
    ):
        transport.manifest("", 1_000)
    assert len(str(failed.value)) < 300
    assert str(failed.value).isprintable()


@pytest.mark.parametrize("tag", [b"a" * 199 + b"\r\n b", b"\x1b[2J", b"\x80\xff", b"a" * 70_000 + b"\r\n b", b"b" * 201])
def test_entity_tags_that_cannot_be_sent_back(tag: bytes) -> None:
    read: Callable[[Transport], Answer] = lambda transport: transport.manifest("", 1_000)  # noqa: E731
    answer = plain(b"HTTP/1.1 200 OK\r\nETag: " + tag + b"\r\nContent-Length: 1\r\n\r\nx")
    with answering(answer) as address, closing(Transport(address, "")) as transport:
        if len(tag) > 60_000:
            with pytest.raises(TransportError):
                read(transport)
        else:
            assert read(transport) == Answer(200, "", b"x")


def test_an_export_follows_no_link_and_removes_no_file_of_others(publisher: Publisher, tmp_path: Path) -> None:
    publisher.export()
    www, precious = tmp_path / "www", tmp_path / "precious"
    precious.write_text("kept")
    assert copy_export(publisher.folder, www)
    snapshot = max((www / "blobs").iterdir(), key=lambda path: path.stat().st_size)
    whole = snapshot.read_bytes()
    snapshot.write_bytes(bytes(len(whole)))  # of the same length
    (www / ".manifest.part").symlink_to(precious)
    (www / "manifest").unlink()
    (www / "manifest").symlink_to(precious)
    (www / "blobs" / "readme.txt").write_text("of others")
    (www / "blobs" / ("0" * 64)).write_text("of an export before")
    copy_export(publisher.folder, www)
    assert precious.read_text() == "kept"
    assert snapshot.read_bytes() == whole
    assert (www / "manifest").read_bytes() == (publisher.folder / "manifest").read_bytes()
    assert (www / "blobs" / "readme.txt").exists()
    assert not (www / "blobs" / ("0" * 64)).exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "blobs").symlink_to(www / "blobs")
    with pytest.raises(FleetError, match="symbolic link"):
        copy_export(publisher.folder, tmp_path / "other")


def test_keys_that_are_made_at_once(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "fleet" / "signing.key")

    def outcome(work: Callable[[], SigningKeys]) -> tuple[bytes, ...]:
        try:
            return work().public
        except FleetError:
            return ()

    with ThreadPoolExecutor(8) as pool:
        for work in (file.create, file.rotate, file.finish):
            found = list(pool.map(lambda _, work=work: outcome(work), range(8)))
            assert [keys for keys in found if keys] == [file.read().public], work.__name__
    assert [path.stat().st_mode & 0o777 for path in sorted((tmp_path / "fleet").iterdir())] == [0o600, 0o600]


def test_a_key_file_that_others_could_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = KeyFile(tmp_path / "signing.key")
    file.create()
    file.read()
    assert caplog.text == ""
    (tmp_path / "signing.key").chmod(0o644)
    file.read()
    assert (tmp_path / "signing.key").stat().st_mode & 0o777 == 0o600
    assert "could read" in caplog.text
    (tmp_path / "signing.key").write_bytes(b"[" * 10_000_000)
    with pytest.raises(FleetError, match="damaged"):
        file.read()
