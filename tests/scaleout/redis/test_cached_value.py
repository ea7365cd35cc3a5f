import json
import struct
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.model import Classification, ContentId, ContentKind, Evidence, Fingerprint
from gatewayfilter.scaleout.redis import packed_verdict
from gatewayfilter.scaleout.redis.cached_value import BINARY, HEAD_BYTES, JSON, ValueCodec, key_of
from gatewayfilter.scaleout.redis.packed_verdict import pack, unpack
from gatewayfilter.store.sql.classification_json import EVIDENCE_ROW, as_document

CODEC = ValueCodec(b"k" * 32)
COMPILED: Any = load("gatewayfilter.scaleout.redis._packed_verdict")
SAID = Classification("gambling", 42.5, 20.0, {"gambling": 42.5}, (Evidence("赌场", "gambling", 12.0, "title", 4),), "Casino")
CONTENT = ContentId(ContentKind.PAGE, b"k" * 16, b"p" * 16)


@given(judge=st.text(max_size=5), hits=st.integers(0, 2**31), until=st.floats(0, 9e9), title=st.text(max_size=20))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(judge: str, hits: int, until: float, title: str) -> None:
    said = Classification("gambling", 42.5, 20.0, {"gambling": 42.5}, SAID.evidence, title.encode(errors="replace").decode())
    judge = judge.encode(errors="replace").decode()
    written = Fingerprint(CONTENT, said, judge, "w", "http://a.example/", 7.25, round(until, 3), hits)
    value = CODEC.encode(written)
    assert value is not None
    read = CODEC.decode(CONTENT, value)
    assert read is not None
    assert abs(read.expires_at - written.expires_at) < 0.002
    assert (read.classification, read.judge, read.hits, read.judged_at) == (said, judge, hits, 7.25)


@given(st.binary(max_size=200))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_foreign_bytes_are_nothing(value: bytes) -> None:
    assert CODEC.decode(CONTENT, value) is None
    for kind in (b"1C", b"1P", b"2C", b"2P", b"3C"):
        assert CODEC.decode(CONTENT, kind + value) is None


@pytest.mark.parametrize(("judge", "kind"), [("", BINARY + b"C"), ("ada", JSON + b"P")])
def test_any_changed_byte_of_what_never_changes_is_noticed(judge: str, kind: bytes) -> None:
    value = CODEC.encode(Fingerprint(CONTENT, SAID, judge, "w", "http://a.example/", 7.0, 900.0))
    assert value is not None
    assert value[:2] == kind
    for place in (*range(18), *range(HEAD_BYTES, len(value))):
        assert CODEC.decode(CONTENT, value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]) is None


def test_keys_are_hexadecimal_and_apart_by_secret_and_kind() -> None:
    assert key_of(CODEC.space, CONTENT) == f"gf:{{2b}}:{CODEC.space}:p:{'6b' * 16}"
    assert ValueCodec(b"x" * 32).space == "34981d6f" != CODEC.space, "as of releases before"
    image = ContentId(ContentKind.IMAGE, CONTENT.digest, bytes(16))
    assert key_of(CODEC.space, image) != key_of(CODEC.space, CONTENT)


def of_the_release_before(fingerprint: Fingerprint) -> bytes:
    """The value as that release wrote it."""
    document = [as_document(fingerprint.classification), fingerprint.judge, fingerprint.words, fingerprint.url, 7.0]
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    kind, content = (b"1P" if fingerprint.judge else b"1C"), fingerprint.content
    return kind + mac(kind, content, text) + f"{fingerprint.hits:08x}{fingerprint.expires_at:014.3f}".encode() + text


def mac(kind: bytes, content: ContentId, body: bytes) -> bytes:
    made = blake2b(key=CODEC.key, digest_size=16, person=b"gf-cache-value")
    made.update(kind + content.digest + content.proof + content.kind.encode() + body)
    return made.digest()


@pytest.mark.parametrize("judge", ["", "ada"])
def test_values_of_the_release_before_are_read(judge: str) -> None:
    written = Fingerprint(CONTENT, SAID, judge, "w", "http://a.example/", 7.0, 900.0, 3)
    assert CODEC.decode(CONTENT, of_the_release_before(written)) == written


def test_a_reviewers_decision_is_written_as_the_release_before_reads_it() -> None:
    decided = Fingerprint(CONTENT, SAID, "ada", "", "http://a.example/", 7.0, 900.0)
    assert CODEC.encode(decided) == of_the_release_before(decided)


READERS = [packed_verdict._columns] + ([COMPILED.unpack] if COMPILED is not None else [])


@pytest.fixture(params=READERS, ids=["Python", "compiled"][: len(READERS)], autouse=True)
def _reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_verdict, "_columns_of", request.param)


@pytest.mark.parametrize(
    "said",
    [
        Classification("", 0.0, 20.0),
        replace(SAID, fields={"price": ["12 €"], "": []}, certainty=0.0, doubt="gambling", text_digest=b"d" * 16),
        replace(SAID, scores={f"c{number}": float(number) for number in range(255)}, evidence=SAID.evidence * 300),
        replace(SAID, evidence=(Evidence("", "", -8.0, "", -1),), certainty=1.0),
    ],
    ids=["nothing", "everything", "much", "no place"],
)
def test_a_verdict_in_binary_is_the_same(said: Classification) -> None:
    packed = pack(said, "w", "http://a.example/", 7.25)
    assert packed is not None
    assert unpack(b"head" + packed, 4) == (said, "w", "http://a.example/", 7.25)


@pytest.mark.parametrize(
    "said",
    [
        replace(SAID, title="a\0b"),
        replace(SAID, scores={str(number): 1.0 for number in range(256)}),
        replace(SAID, evidence=(Evidence("w", "c", 1.0, "main", 2**31),)),
        replace(SAID, text_digest=b"x" * 256),
        replace(SAID, score=10**400),
    ],
    ids=["NUL", "many scores", "far position", "long digest", "huge number"],
)
def test_what_has_no_binary_form_is_json(said: Classification) -> None:
    assert pack(said, "w", "u", 1.0) is None
    written = Fingerprint(CONTENT, said, "", "w", "http://a.example/", 7.0, 900.0)
    value = CODEC.encode(written)
    assert value is not None
    assert value[:2] == JSON + b"C"
    assert CODEC.decode(CONTENT, value) == written


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@given(st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_readers_read_the_same_of_any_bytes(data: Any) -> None:
    packed = pack(replace(SAID, evidence=SAID.evidence * 3, fields={"a": ["赌"]}, certainty=0.5), "w", "u", 1.0)
    assert packed is not None
    at = data.draw(st.integers(0, len(packed)))
    value = b"head" + packed[:at] + data.draw(st.binary(max_size=40)) + packed[data.draw(st.integers(at, len(packed))) :]
    arguments = value, data.draw(st.integers(0, 6)), 7, Evidence, EVIDENCE_ROW
    found: list[str] = []
    for read in READERS:
        try:
            found.append(repr(read(*arguments)))  # NaN is unlike itself
        except (ValueError, struct.error):
            found.append("none")
    assert found[0] == found[1]


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@pytest.mark.parametrize("start", [-1, 5, 2**40])
def test_a_place_outside_is_refused(start: int) -> None:
    for value in (b"", b"x" * 36):
        with pytest.raises(ValueError, match="ends in its"):
            COMPILED.unpack(value, start, 7, Evidence, EVIDENCE_ROW)
    with pytest.raises(TypeError):
        COMPILED.unpack(None, 0, 7, Evidence, EVIDENCE_ROW)


@given(st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_packed_verdict_that_is_damaged_is_none_or_an_error(data: Any) -> None:
    """Who has the key may still have written it by a program with faults."""
    packed = pack(replace(SAID, fields={"a": ["b"]}), "w", "u", 1.0)
    assert packed is not None
    at = data.draw(st.integers(0, len(packed)))
    damaged = packed[:at] + data.draw(st.binary(max_size=4)) + packed[data.draw(st.integers(at, len(packed))) :]
    with suppress(ValueError, struct.error):
        unpack(damaged, 0)
    body = b"2C" + mac(b"2C", CONTENT, damaged) + b"0" * 8 + b"0000000900.000" + damaged
    found = CODEC.decode(CONTENT, body)
    assert found is None or found.judge == ""


def test_a_binary_value_is_never_a_reviewers() -> None:
    packed = pack(SAID, "w", "u", 1.0)
    assert packed is not None
    for kind, read in ((b"2C", True), (b"2P", False)):
        value = kind + mac(kind, CONTENT, packed) + b"0" * 8 + b"0000000900.000" + packed
        assert (CODEC.decode(CONTENT, value) is not None) is read
