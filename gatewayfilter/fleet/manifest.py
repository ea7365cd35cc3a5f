"""The signed manifest of a fleet: which snapshot and which rules are in force, with the digest of every block.

File: `GWFLEET1`, then for each key a line `PUBLIC-KEY SIGNATURE` in Base64, an empty line, and the payload, JSON in UTF-8. The
signatures are over the bytes of the payload after a label; nothing of it is parsed before one of a trusted key was verified.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.blocks import DIGEST_BYTES, spans
from gatewayfilter.fleet.deltas.chain import MOST_LINKS, SHARE, DeltaLink
from gatewayfilter.fleet.keys import MOST_KEYS, SigningKeys, is_signed
from gatewayfilter.fleet.public_keys import parse_public_key, write_public_key

MAGIC: Final = b"GWFLEET1"
LARGEST_MANIFEST: Final = 4_000_000
"""Bytes; a snapshot of 8 GB has 2.7 MB of digests."""
LARGEST_BUNDLE: Final = 32_000_000
_LABEL: Final = b"gatewayfilter fleet manifest 1\0"
_LINE: Final = re.compile(rb"([A-Za-z0-9+/]{43}=) ([A-Za-z0-9+/]{86}==)")
_NAME: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LEAST_BLOCK: Final = 4_096
_MOST_BLOCK: Final = 16 * 1024 * 1024
_MOST_SEGMENTS: Final = 128
_MOST_SEQUENCE: Final = 2**53


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """The snapshot of a manifest.

    Attributes:
        name: SHA-256 of the file in hexadecimal digits, under which it is fetched.
        size: its length in bytes.
        format_version: of the file (docs/snapshot-format.md).
        made_at: when it was published (Unix seconds).
        block_bytes: size of its blocks.
        segments: lengths of its segments (`blocks.cut_segments`).
        blocks: the digests of all blocks, one after the other.
    """

    name: str
    size: int
    format_version: int
    made_at: float
    block_bytes: int
    segments: tuple[int, ...]
    blocks: bytes

    def digests(self) -> list[bytes]:
        """Returns the digest of each block."""
        return [self.blocks[at : at + DIGEST_BYTES] for at in range(0, len(self.blocks), DIGEST_BYTES)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a publisher has in force.

    Attributes:
        sequence: rises with every manifest; a follower refuses a lower one than it has seen.
        created_at: Unix seconds by the publisher's clock.
        expires_at: after it a follower refuses the manifest; `None` for never.
        program: version of the publisher's program.
        keys: public keys that a follower trusts from now on.
        snapshot: the lists.
        bundle: SHA-256 of the rules and policies in hexadecimal digits, `""` where none are shared.
        bundle_size: their length in bytes.
        deltas: lead from earlier snapshots to this one, each to the next; programs before them pass them over.
    """

    sequence: int
    created_at: float
    expires_at: float | None
    program: str
    keys: tuple[bytes, ...]
    snapshot: SnapshotPart
    bundle: str
    bundle_size: int
    deltas: tuple[DeltaLink, ...] = ()


def is_blob_name(name: str) -> bool:
    """Returns whether a name is that of a file of an export: a SHA-256 in hexadecimal digits."""
    return _NAME.fullmatch(name) is not None


def sign_manifest(manifest: Manifest, keys: SigningKeys) -> bytes:
    """Returns the file of a manifest."""
    payload = json.dumps(_to_json(manifest), separators=(",", ":")).encode()
    signed = keys.sign(_LABEL + payload)
    lines = [b64encode(key) + b" " + b64encode(signature) for key, signature in signed]
    return b"\n".join((MAGIC, *lines, b"", payload))


def open_manifest(data: bytes, trusted: Collection[bytes]) -> Manifest:
    """Returns the manifest of a file, once a signature of a trusted key was verified.

    Args:
        data: the file.
        trusted: public keys.

    Raises:
        FleetError: no trusted signature, or a content that cannot be used.
    """
    head, found, payload = data.partition(b"\n\n")
    lines = head.split(b"\n")
    if len(data) > LARGEST_MANIFEST or not found or lines[0] != MAGIC or not 1 <= len(lines) - 1 <= MOST_KEYS:
        raise FleetError("the publisher's answer is no manifest of a fleet")
    signatures = [match.groups() for line in lines[1:] if (match := _LINE.fullmatch(line))]
    decoded = [(b64decode(key), b64decode(signature)) for key, signature in signatures]
    if not any(key in trusted and is_signed(_LABEL + payload, signature, key) for key, signature in decoded):
        raise FleetError("the manifest has no valid signature of a key that this follower trusts")
    try:
        manifest = _from_json(json.loads(payload))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise FleetError("the manifest is signed, but cannot be read: it may be of a later version of the program") from error
    _check(manifest)
    return manifest


def _to_json(manifest: Manifest) -> dict[str, object]:
    part = manifest.snapshot
    return {
        "sequence": manifest.sequence,
        "created_at": manifest.created_at,
        "expires_at": manifest.expires_at,
        "program": manifest.program,
        "keys": [write_public_key(key) for key in manifest.keys],
        "snapshot": {
            "name": part.name,
            "size": part.size,
            "format": part.format_version,
            "made_at": part.made_at,
            "block_bytes": part.block_bytes,
            "segments": list(part.segments),
            "blocks": b64encode(part.blocks).decode("ascii"),
        },
        "bundle": {"name": manifest.bundle, "size": manifest.bundle_size},
        "deltas": [[link.older, link.name, link.size] for link in manifest.deltas],
    }


def _from_json(document: Mapping[str, Any]) -> Manifest:
    part, bundle = document["snapshot"], document["bundle"]
    expires_at = document["expires_at"]
    return Manifest(
        int(document["sequence"]),
        float(document["created_at"]),
        None if expires_at is None else float(expires_at),
        str(document["program"])[:40],
        tuple(parse_public_key(str(key)) for key in document["keys"]),
        SnapshotPart(
            str(part["name"]),
            int(part["size"]),
            int(part["format"]),
            float(part["made_at"]),
            int(part["block_bytes"]),
            tuple(map(int, part["segments"])),
            b64decode(part["blocks"], validate=True),
        ),
        str(bundle["name"]),
        int(bundle["size"]),
        tuple(DeltaLink(str(older), str(name), int(size)) for older, name, size in document.get("deltas", ())),
    )


def _check(manifest: Manifest) -> None:
    part = manifest.snapshot
    whole = (
        0 < manifest.sequence < _MOST_SEQUENCE
        and all(map(math.isfinite, (manifest.created_at, manifest.expires_at or 0.0, part.made_at)))
        and manifest.program.isprintable()
        and 1 <= len(manifest.keys) <= MOST_KEYS
        and is_blob_name(part.name)
        and (not manifest.bundle or is_blob_name(manifest.bundle))
        and 0 <= manifest.bundle_size <= LARGEST_BUNDLE
        and _LEAST_BLOCK <= part.block_bytes <= _MOST_BLOCK
        and len(part.segments) <= _MOST_SEGMENTS
        and all(length > 0 for length in part.segments)
        and sum(part.segments) == part.size
        and sum(-(-length // part.block_bytes) for length in part.segments) * DIGEST_BYTES == len(part.blocks)
        and len(manifest.deltas) <= MOST_LINKS
        and all(is_blob_name(link.older) and is_blob_name(link.name) and link.size > 0 for link in manifest.deltas)
        and sum(link.size for link in manifest.deltas) <= part.size // SHARE
    )
    if not whole:
        raise FleetError("the manifest is signed, but contradicts itself")


def spans_of(part: SnapshotPart) -> list[tuple[int, int]]:
    """Returns offset and length of each block of a snapshot."""
    return list(spans(part.segments, part.block_bytes))
