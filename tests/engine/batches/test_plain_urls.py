"""Plain URLs: what is recognised as canonical is what parse_url leaves as it is, by both implementations."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.engine.batches import plain_urls
from gatewayfilter.engine.batches.plain_urls import OTHER_KEY, SLASH, SPELLED, PlainUrls, is_canonical, plain_url, read_plain
from gatewayfilter.engine.path_spellings import has_spellings
from gatewayfilter.urls import parse_url

COMPILED = load("gatewayfilter.engine.batches._plain_urls")

_parts = st.lists(
    st.sampled_from(
        [*"aZ09-._~:/?#[]@!$&'()*+,;=%^|{}`\\\"<> \t\n\0é例", "%2e", "%2F", "%41", "%c3%A9", "/.", "//", ".", "..", "./"]
    ),
    max_size=8,
).map("".join)
_heads = st.sampled_from(
    ["http://a.test", "https://b.example.org", "http://A.test", "ws://a.test", "http://1.2.3.4", "http://1.2", "http://xn--a",
     "https://a.test.", "http://a_b.test", "http://-", "http://a..b", "http://a.test:80", "http://u@a.test", "http:/a", "http://"]
)  # fmt: skip
urls = st.one_of(st.builds("{}/{}".format, _heads, _parts), st.builds("{}{}".format, _heads, _parts), st.text(max_size=9))


def _columns(texts: list[str]) -> tuple[bytes, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    blobs = [text.encode() for text in texts]
    return b"".join(blobs), np.cumsum([0, *map(len, blobs)]).astype(np.int32)


def _read(texts: list[str], *, hashed: bool = True) -> PlainUrls:
    return read_plain(*_columns(texts), hashed=hashed)


@given(st.lists(urls, max_size=6))
@example(["http://a.test/?", "http://a.test/x?y/./z", "http://a.test/%7a/", "http://a.test/" + "a" * 200])
@settings(max_examples=30)
def test_a_plain_url_is_canonical_and_has_the_digest_of_its_key(texts: list[str]) -> None:
    read = _read(texts)
    for row, text in enumerate(texts):
        head = int(read.heads[row])
        if head < 0 or not is_canonical(read.names[head]):
            continue
        url = parse_url(text)
        plain = plain_url(text, read.names[head].decode())
        assert [getattr(url, name) for name in url.__slots__[2:]] == [getattr(plain, name) for name in url.__slots__[2:]]
        assert url.text == text
        flags = read.flags[row]
        assert read.digests is not None
        if not flags & OTHER_KEY:
            assert read.digests[row].tobytes() == url.digest
        assert flags & SPELLED or not has_spellings(url)
        assert bool(flags & SLASH) == (len(url.path) > 1 and url.path.endswith("/"))
        assert read.lowered[read.starts[row] : read.starts[row + 1] - 1] == text.lower().encode()


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@given(st.lists(st.one_of(urls, st.text()), max_size=6), st.booleans())
@settings(max_examples=30)
def test_both_implementations_read_the_same(texts: list[str], hashed: bool) -> None:  # noqa: FBT001  # drawn
    data, offsets = _columns(texts)
    assert COMPILED is not None
    assert COMPILED.read(data, offsets, hashed=hashed) == plain_urls._read(data, offsets, hashed=hashed)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@pytest.mark.parametrize("offsets", [[0, 4], [2, 1], [-1, 2], []])
def test_offsets_out_of_range_are_refused(offsets: list[int]) -> None:
    assert COMPILED is not None
    with pytest.raises(ValueError, match="offsets"):
        COMPILED.read(b"abc", np.array(offsets, np.int32), hashed=True)


def test_the_longest_urls() -> None:
    texts = ["http://a.test/" + "a" * (65_536 - 14), "http://a.test/" + "a" * (65_537 - 14), f"http://{'a' * 256}/"]
    assert _read(texts).heads.tolist() == [0, -1, -1]
