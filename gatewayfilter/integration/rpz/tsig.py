"""TSIG: messages are signed with a secret that both ends share.

Source: RFC 8945 §4.2 (record), §4.3 (digest), §5.3.1 (transfers of many messages).
"""

import hmac
import struct
import time
from base64 import b64decode
from collections.abc import Callable
from typing import Final

from gatewayfilter.integration.rpz.messages import HEAD, TSIG, MessageError, read_name, wire_name

_ALGORITHM: Final = b"\x0bhmac-sha256\0"
_FUDGE_S: Final = 300
_ANY: Final = 255
_MAC_LENGTH: Final = 32


class TsigKey:
    """A key of the algorithm hmac-sha256.

    Args:
        name: of the key.
        secret: base64.
        clock: Unix seconds.

    Raises:
        ValueError: name or secret are malformed, or the secret is empty.
    """

    def __init__(self, name: str, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._name = wire_name(name.lower())
        self._secret = b64decode(secret, validate=True)
        if not self._secret:
            raise ValueError("an empty secret")
        self._clock = clock

    def verify(self, data: bytes, tsig_at: int) -> bytes | None:
        """Returns the MAC of a query, `None` where it is not signed by this key now."""
        try:
            name, at = read_name(data, tsig_at)
            kind, _, _, length = struct.unpack_from(">HHIH", data, at)
            algorithm, at = read_name(data, at + 10)
            moment, fudge, size = struct.unpack_from(">6sHH", data, at)
            mac = data[at + 10 : at + 10 + size]
            number, error, other = struct.unpack_from(">HHH", data, at + 10 + size)
        except (MessageError, struct.error):
            return None
        if kind != TSIG or name != self._name or algorithm != _ALGORITHM or error or other or not length:
            return None
        if abs(int.from_bytes(moment, "big") - self._clock()) > min(fudge, _FUDGE_S) or len(mac) != _MAC_LENGTH:
            return None
        head = HEAD.unpack_from(data)
        plain = HEAD.pack(number, *head[1:5], head[5] - 1) + data[HEAD.size : tsig_at]
        wanted = self._mac(plain + self._variables(moment, fudge))
        return mac if hmac.compare_digest(mac, wanted) else None

    def sign(self, message: bytes, before: bytes, *, first: bool = True) -> tuple[bytes, bytes]:
        """Signs an answer.

        Args:
            message: whole.
            before: MAC of the query, or of the message before it in a transfer; `b""` for a message that answers none.
            first: it is the first message of the answer.

        Returns:
            The message with its TSIG record, and its MAC.
        """
        moment = int(self._clock()).to_bytes(6, "big")
        variables = self._variables(moment, _FUDGE_S) if first else moment + struct.pack(">H", _FUDGE_S)
        prior = struct.pack(">H", len(before)) + before if before else b""
        mac = self._mac(prior + message + variables)
        number, *head, additional = HEAD.unpack_from(message)
        data = _ALGORITHM + moment + struct.pack(">HH", _FUDGE_S, len(mac)) + mac + struct.pack(">HHH", number, 0, 0)
        record = self._name + struct.pack(">HHIH", TSIG, _ANY, 0, len(data)) + data
        return HEAD.pack(number, *head, additional + 1) + message[HEAD.size :] + record, mac

    def _variables(self, moment: bytes, fudge: int) -> bytes:
        return self._name + struct.pack(">HI", _ANY, 0) + _ALGORITHM + moment + struct.pack(">HHH", fudge, 0, 0)

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self._secret, data, "sha256")
