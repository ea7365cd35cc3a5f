"""Bodies taken out of their encodings while they stream: bounded in size, and in how far they may expand."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gatewayfilter.content_encoding.decoders import DAMAGE, DECODERS, STEP, Decoder
from gatewayfilter.errors import GatewayFilterError

MAX_RATIO: Final = 250
"""A body that expands further is a bomb; what passes 100:1 on real sites are tables of zeros in the first `RATIO_FROM` bytes."""
RATIO_FROM: Final = 1_048_576
MOST_ENCODINGS: Final = 10
"""As many as Chromium takes off a body."""
_NONE: Final = ([""], ["identity"])
_PORTION: Final = 16_384
_LARGE: Final = 4_096
"""Bytes from which on a piece of a body is not copied before all of it is there."""


class EncodingError(GatewayFilterError):
    """A body is not in the encoding that it claims, in one that is not known, or expands without measure."""


class _Layer:
    """One of the encodings of a body."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.given = 0


class StreamDecoder:
    """Decodes one body, piece by piece.

    Args:
        content_encoding: the header's value: encodings in the order in which they were put on, `""` for none.
        max_ratio: a body that expands further, on its way or at its end, is a bomb.
        ratio_from: decoded bytes up to which it may expand as it likes.

    Attributes:
        encoded: whether there is anything to decode.

    Raises:
        EncodingError: an encoding that is not known, or more than `MOST_ENCODINGS`.
    """

    def __init__(self, content_encoding: str, *, max_ratio: int = MAX_RATIO, ratio_from: int = RATIO_FROM) -> None:
        names = [name.strip().lower() for name in content_encoding.split(",")]
        if names in _NONE:
            names = []
        if not DECODERS.keys() >= set(names):
            raise EncodingError(f"the body is in the unknown encoding {content_encoding.strip().lower()[:40]!r}")
        if len(names) > MOST_ENCODINGS:
            raise EncodingError(f"the body is encoded {len(names)} times")
        self._layers = [_Layer(DECODERS[name]()) for name in reversed(names)]
        self.encoded = bool(names)
        self._max_ratio = max_ratio
        self._ratio_from = ratio_from
        self._taken = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields what the next bytes from the wire decode to, in pieces of some 64 KB.

        Raises:
            EncodingError: they are not of that encoding, or a bomb. What stands before the damage is yielded first, as browsers
                show it.
        """
        self._taken += len(data)
        most = max(self._ratio_from, self._taken * self._max_ratio)
        try:
            yield from self._through(self._layers, data, most)
        except DAMAGE as error:
            raise EncodingError("the body is not in the encoding that it claims") from error

    def _through(self, layers: Sequence[_Layer], data: bytes, most: int) -> Iterator[bytes]:
        if not data:
            return
        if not layers:
            yield data
            return
        layer = layers[0]
        for piece in layer.decoder.decode(data, most - layer.given):
            layer.given += len(piece)
            if layer.given > most:
                raise EncodingError(f"the body expands to more than {self._max_ratio} times its size")
            yield from self._through(layers[1:], piece, most)


class BoundedBody:
    """Collects a body off the wire, decoded: never more than `limit` bytes of it, nor many more encoded ones.

    Attributes:
        truncated: there was more than `limit`, of which the body holds exactly `limit` bytes, or it is damaged further on.

    Raises:
        EncodingError: as `StreamDecoder`.
    """

    def __init__(self, content_encoding: str, limit: int, *, max_ratio: int = MAX_RATIO, ratio_from: int = RATIO_FROM) -> None:
        self._decoder = StreamDecoder(content_encoding, max_ratio=max_ratio, ratio_from=ratio_from)
        self._limit = limit
        self._wire_bytes = 0
        self._given = 0
        self._pieces: list[bytes] = []
        self._crumbs = bytearray()
        self.truncated = False

    @property
    def body(self) -> bytes:
        """What was decoded so far."""
        self._sweep_up()
        return b"".join(self._pieces)  # one piece is not copied

    def feed(self, data: bytes) -> bool:
        """Decodes the next bytes from the wire. Returns False when no more are wanted: at the limit, or behind damage.

        Raises:
            EncodingError: the bytes are not of that encoding, or a bomb, and nothing was decoded before.
        """
        try:
            return self._decode(data)
        except EncodingError:
            if not self._given:
                raise
            self.truncated = True  # browsers show what came before
            return False

    def _decode(self, data: bytes) -> bool:
        self._wire_bytes += len(data)
        if self._decoder.encoded and self._wire_bytes > self._limit + STEP:
            raise EncodingError("the body is longer encoded than it may be decoded")
        for some in self._portions(data):
            for piece in self._decoder.feed(some):
                room = self._limit - self._given
                self._keep(piece[:room])
                if len(piece) > room:
                    self.truncated = True
                    return False
        return True

    def _portions(self, data: bytes) -> Iterable[bytes]:
        """Returns encoded bytes in small portions: what they may expand to is measured by those that were taken so far."""
        if not self._decoder.encoded:
            return (data,)
        return (data[at : at + _PORTION] for at in range(0, len(data), _PORTION))

    def _keep(self, piece: bytes) -> None:
        """Keeps large pieces as they came; of small ones each would take more than it holds."""
        self._given += len(piece)
        if len(piece) >= _LARGE:
            self._sweep_up()
            self._pieces.append(piece)
        else:
            self._crumbs += piece
            if len(self._crumbs) >= STEP:
                self._sweep_up()

    def _sweep_up(self) -> None:
        if self._crumbs:
            self._pieces.append(bytes(self._crumbs))
            self._crumbs.clear()


def decode_up_to(body: bytes, content_encoding: str, limit: int) -> tuple[bytes, bool]:
    """Decodes a whole body.

    Args:
        body: as it came over the wire, perhaps cut off.
        content_encoding: the header's value.
        limit: most bytes that are wanted.

    Returns:
        The decoded body, and whether it was cut: at the limit, or where it is damaged, as browsers show what stands before that.

    Raises:
        EncodingError: nothing of it can be decoded.
    """
    whole = bytearray()
    try:
        for piece in StreamDecoder(content_encoding).feed(body):
            whole += piece
            if len(whole) > limit:
                return bytes(whole[:limit]), True
    except EncodingError:
        if not whole:
            raise
        return bytes(whole), True
    return bytes(whole), False
