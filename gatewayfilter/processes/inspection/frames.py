"""The frames between a proxy worker and its inspector: a number, two lengths, a head and a body.

Both ends are trusted: the socket pair is theirs alone.
"""

import json
import pickle
import struct
from typing import Final

from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.model import Classification

LENGTHS: Final = struct.Struct(">QII")
"""Number of the request, length of the head, length of the body."""


def pack_request(number: int, response: PassedResponse) -> bytes:
    """Returns a page as a frame."""
    head = json.dumps([response.url, response.status, dict(response.headers), response.public, response.said]).encode()
    return LENGTHS.pack(number, len(head), len(response.body)) + head + response.body


def pack_answer(number: int, found: Classification | None) -> bytes:
    """Returns a judgement as a frame."""
    head = pickle.dumps(found)
    return LENGTHS.pack(number, len(head), 0) + head


def unpack_answer(head: bytes) -> Classification | None:
    """Returns the judgement in a frame."""
    found: Classification | None = pickle.loads(head)  # noqa: S301  from our own child, over a socket that only it has
    return found
