"""The form of what gateways share: a field names a rule, a policy item or a source, and a value is an authenticated JSON text."""

import hmac
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from gatewayfilter.engine.state.manual_rules import MAX_PATTERN_LENGTH, compile_pattern
from gatewayfilter.errors import GatewayFilterError, RuleError
from gatewayfilter.model import (
    FLEET_GROUPS,
    Client,
    EntryKind,
    Group,
    ListAction,
    ManualRule,
    Policy,
    PolicyItem,
    Quota,
    Schedule,
    from_record,
    kind_of_item,
    to_record,
)

MOST_BYTES: Final = 65_536
"""Of a value; a longer one is neither written nor read."""
ITEMS: Final = (Group, Policy, Client, Schedule, Quota)
"""Policy items that are shared, in an order in which each comes after those that it names. Pauses and used quotas stay local."""
_MAC_BYTES: Final = 16
_VERSION_BYTES: Final = 8
_HEAD_BYTES: Final = _MAC_BYTES + _VERSION_BYTES
_LATEST: Final = 253_402_300_799.0
GONE: Final = "null"
"""The value of what was removed."""


class SyncError(GatewayFilterError):
    """A shared value cannot be used."""


@dataclass(frozen=True, slots=True)
class SharedSource:
    """A subscription as it is shared; see `sources.subscription.Definition`."""

    name: str
    address: str
    category: str
    action: ListAction
    interval_h: float
    enabled: bool


type Shared = ManualRule | PolicyItem | SharedSource


@dataclass(frozen=True, slots=True)
class SyncCodec:
    """Writes and reads values.

    Attributes:
        key: 32 secret bytes, the same on all gateways.
    """

    key: bytes

    @property
    def space(self) -> str:
        """The name space of the shared state: gateways with another key do not meet these values."""
        return blake2b(key=self.key, digest_size=4, person=b"gf-sync-name-2").hexdigest()

    def seal(self, field: str, text: str, version: int) -> bytes:
        """Returns the value of a field: its versions rise, so that an older value that is written back is noticed."""
        signed = version.to_bytes(_VERSION_BYTES, "big") + text.encode()
        return self._mac(field, signed) + signed

    def open(self, field: str, value: bytes) -> tuple[str, int]:
        """Returns text and version of a value.

        Raises:
            SyncError: it was written without the key, or for another field.
        """
        mac, signed = value[:_MAC_BYTES], value[_MAC_BYTES:]
        if not _HEAD_BYTES <= len(value) <= MOST_BYTES or not hmac.compare_digest(mac, self._mac(field, signed)):
            raise SyncError("a shared value is forged, damaged, or of a gateway with another key (cache.key_file)")
        return signed[_VERSION_BYTES:].decode("utf-8", "replace"), int.from_bytes(signed[:_VERSION_BYTES], "big")

    def _mac(self, field: str, text: bytes) -> bytes:
        hashed = blake2b(key=self.key, digest_size=_MAC_BYTES, person=b"gf-sync-2")
        hashed.update(len(field.encode()).to_bytes(4, "big") + field.encode() + text)
        return hashed.digest()


def digest_of_text(text: str) -> str:
    """Returns a short digest, by which a gateway remembers what it has in common with the others."""
    return blake2b(text.encode(), digest_size=12).hexdigest()


def field_of(shared: Shared) -> str:
    """Returns the field of a rule, an item or a source."""
    if isinstance(shared, ManualRule):
        return "rule:" + _json([shared.kind, shared.pattern, shared.group, shared.scope])
    if isinstance(shared, SharedSource):
        return f"source:{shared.name}"
    return f"item:{kind_of_item(shared)}:{shared.name}"


def text_of(shared: Shared) -> str:
    """Returns the JSON text of a rule, an item or a source; equal ones have equal texts."""
    if isinstance(shared, ManualRule):
        return _json([shared.action, shared.comment, shared.expires_at, shared.enabled])
    if isinstance(shared, SharedSource):
        return _json([shared.address, shared.category, shared.action, shared.interval_h, shared.enabled])
    return _json(to_record(shared))


def shared_of(field: str, text: str) -> Shared | None:
    """Returns what a field has for value, `None` for what was removed.

    Raises:
        SyncError: it cannot be used; with the reason.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
        if value is None:
            return None
        kind, _, name = field.partition(":")
        found = _READERS[kind](name, value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise SyncError(f"a shared {field.partition(':')[0][:10]!r} cannot be read") from error
    if field_of(found) != field:
        raise SyncError("a shared value belongs to another name")
    return found


def _rule(name: str, value: list[Any]) -> ManualRule:
    kind, pattern, group, scope = map(_plain, json.loads(name))
    action, comment, expires_at, enabled = value
    found = ListAction(action)
    if group in FLEET_GROUPS:
        raise RuleError("rules of a publisher are not shared")
    if not 0 < len(pattern) <= MAX_PATTERN_LENGTH:
        raise RuleError("a pattern has no characters, or too many")
    compile_pattern(EntryKind(kind), pattern, allows=found is ListAction.ALLOW)
    until = None if expires_at is None else _number(expires_at)
    return ManualRule(0, found, EntryKind(kind), pattern, _plain(comment), group, until, enabled=_truth(enabled), scope=scope)


def _item(name: str, value: dict[str, Any]) -> PolicyItem:
    del name
    found = from_record(value)
    if not isinstance(found, ITEMS):
        raise SyncError("a pause or a used quota is not shared")
    return found


def _source(name: str, value: list[Any]) -> SharedSource:
    address, category, action, interval_h, enabled = value
    if not _plain(address).startswith(("http://", "https://")):
        raise SyncError("a shared source has no web address")
    return SharedSource(_plain(name), address, _plain(category), ListAction(action), _number(interval_h), _truth(enabled))


_READERS: Final[Mapping[str, Callable[[str, Any], Shared]]] = {"rule": _rule, "item": _item, "source": _source}


def _plain(text: Any) -> str:
    if not isinstance(text, str) or len(text) > MOST_BYTES or not all(mark.isprintable() or mark in "\n\t" for mark in text):
        raise ValueError("no printable text")
    return text


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= _LATEST:
        raise ValueError("no number, or out of range")
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def _refuse(name: str) -> None:
    raise ValueError(name)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
