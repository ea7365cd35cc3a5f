from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.model import Classification, ContentId, ContentKind, Evidence, Fingerprint
from gatewayfilter.scaleout.redis.cached_value import HEAD_BYTES, ValueCodec, key_of

CODEC = ValueCodec(b"k" * 32)
SAID = Classification("gambling", 42.5, 20.0, {"gambling": 42.5}, (Evidence("赌场", "gambling", 12.0, "title", 4),), "Casino")
CONTENT = ContentId(ContentKind.PAGE, b"k" * 16, b"p" * 16)


@given(judge=st.text(max_size=5), hits=st.integers(0, 2**31), until=st.floats(0, 9e9), title=st.text(max_size=20))
@settings(max_examples=30)
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
@settings(max_examples=30)
def test_foreign_bytes_are_nothing(value: bytes) -> None:
    assert CODEC.decode(CONTENT, value) is None
    assert CODEC.decode(CONTENT, b"1C" + value) is None


def test_any_changed_byte_of_what_never_changes_is_noticed() -> None:
    value = CODEC.encode(Fingerprint(CONTENT, SAID, "", "w", "http://a.example/", 7.0, 900.0))
    assert value is not None
    for place in (*range(18), *range(HEAD_BYTES, len(value))):
        assert CODEC.decode(CONTENT, value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]) is None


def test_keys_are_hexadecimal_and_apart_by_secret_and_kind() -> None:
    assert key_of(CODEC.space, CONTENT) == f"gf:{{2b}}:{CODEC.space}:p:{'6b' * 16}"
    assert ValueCodec(b"x" * 32).space != CODEC.space
    image = ContentId(ContentKind.IMAGE, CONTENT.digest, bytes(16))
    assert key_of(CODEC.space, image) != key_of(CODEC.space, CONTENT)
