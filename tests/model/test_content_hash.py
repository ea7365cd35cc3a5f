"""Contents with one digest, which anybody can make, are spread by their proofs, and images, which have one proof, by digests."""

import pytest

from gatewayfilter.model import ContentId, ContentKind


@pytest.mark.parametrize(
    "contents",
    [
        [ContentId(ContentKind.PAGE, b"d" * 16, number.to_bytes(16)) for number in range(1_000)],
        [ContentId(ContentKind.PAGE, number.to_bytes(16), number.to_bytes(16)) for number in range(1_000)],
        [ContentId(ContentKind.IMAGE, number.to_bytes(16), bytes(16)) for number in range(1_000)],
    ],
)
def test_hashes_of_contents_are_spread(contents: list[ContentId]) -> None:
    assert len({hash(content) for content in contents}) > 990
    assert hash(contents[0]) == hash(ContentId(contents[0].kind, bytes(contents[0].digest), bytes(contents[0].proof)))
