"""Content encodings taken off a body while it streams, in pieces of bounded size, so that no body can fill the memory."""

from gatewayfilter.content_encoding.bodies import (
    MAX_RATIO,
    MOST_ENCODINGS,
    RATIO_FROM,
    BoundedBody,
    EncodingError,
    StreamDecoder,
    decode_up_to,
)
from gatewayfilter.content_encoding.decoders import MAX_WINDOW
from gatewayfilter.content_encoding.headers import ACCEPTED, KNOWN, as_shown, media_type

__all__ = [
    "ACCEPTED",
    "KNOWN",
    "MAX_RATIO",
    "MAX_WINDOW",
    "MOST_ENCODINGS",
    "RATIO_FROM",
    "BoundedBody",
    "EncodingError",
    "StreamDecoder",
    "as_shown",
    "decode_up_to",
    "media_type",
]
