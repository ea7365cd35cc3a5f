"""Which manifests contradict themselves: each of their bounds, from both sides."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.blocks import DIGEST_BYTES
from gatewayfilter.fleet.deltas.chain import MOST_LINKS, DeltaLink
from gatewayfilter.fleet.keys import MOST_KEYS
from gatewayfilter.fleet.manifest import LARGEST_BUNDLE, Manifest, SnapshotPart, _check

NAME = "a" * 64
PART = SnapshotPart(NAME, 12_289, 1, 7.0, 4_096, (4_096, 8_193), bytes(DIGEST_BYTES * 4))
WHOLE = Manifest(7, 7.0, None, "1.0", (b"k" * 32,), PART, NAME, 5)


def sized(block_bytes: int, *segments: int) -> Manifest:
    count = sum(-(-length // block_bytes) for length in segments)
    part = replace(PART, size=sum(segments), block_bytes=block_bytes, segments=segments, blocks=bytes(DIGEST_BYTES * count))
    return replace(WHOLE, snapshot=part)


def linked(*sizes: int) -> Manifest:
    return replace(WHOLE, deltas=tuple(DeltaLink(NAME, NAME, size) for size in sizes))


def parted(**changed: object) -> Manifest:
    return replace(WHOLE, snapshot=replace(PART, **changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (
            [replace(WHOLE, sequence=1), replace(WHOLE, sequence=2**53 - 1)],
            [replace(WHOLE, sequence=0), replace(WHOLE, sequence=2**53)],
        ),
        ([replace(WHOLE, expires_at=9.0)], [replace(WHOLE, created_at=float("inf")), replace(WHOLE, expires_at=float("nan"))]),
        ([], [parted(made_at=float("inf")), replace(WHOLE, program="1\n0"), parted(name="x"), replace(WHOLE, bundle="x")]),
        ([replace(WHOLE, bundle="")], [replace(WHOLE, keys=()), replace(WHOLE, keys=(b"k" * 32,) * (MOST_KEYS + 1))]),
        (
            [replace(WHOLE, keys=(b"k" * 32,) * MOST_KEYS)],
            [replace(WHOLE, bundle_size=-1), replace(WHOLE, bundle_size=LARGEST_BUNDLE + 1)],
        ),
        ([replace(WHOLE, bundle_size=0), replace(WHOLE, bundle_size=LARGEST_BUNDLE)], [sized(4_095, 5), sized(2**24 + 1, 5)]),
        ([sized(4_096, 5), sized(2**24, 5)], [sized(4_096, *[5] * 129), sized(4_096, 5, 0, 5)]),
        ([sized(4_096, *[5] * 128)], [parted(size=12_288), parted(blocks=bytes(DIGEST_BYTES * 3)), parted(blocks=b"")]),
        ([linked(*[1] * MOST_LINKS)], [linked(*[1] * (MOST_LINKS + 1)), linked(0)]),
        ([linked(6_144)], [linked(6_145), linked(6_000, 145)]),
        ([], [replace(WHOLE, deltas=(DeltaLink("x", NAME, 1),)), replace(WHOLE, deltas=(DeltaLink(NAME, "x", 1),))]),
    ],
)
def test_what_a_manifest_may_say(good: list[Manifest], bad: list[Manifest]) -> None:
    checked: Callable[[Manifest], None] = _check
    for manifest in (WHOLE, *good):
        checked(manifest)
    for manifest in bad:
        with pytest.raises(FleetError, match="contradicts itself"):
            checked(manifest)
