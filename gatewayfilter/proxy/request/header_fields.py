"""Header fields as mitmproxy keeps them, pairs of bytes: what has a name, and whether a value has a line break in it.

A request and its response take some ten look-ups. mitmproxy decodes and compares all fields for each, through four calls a field.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from types import ModuleType
from typing import Any, Final, cast

from gatewayfilter.compiled import load

type Fields = tuple[tuple[bytes, bytes], ...]
type _Pairs = Iterable[tuple[bytes, bytes]]

PASSED: Final = b""
"""The role of a field that any browser may send to any site."""
OWN: Final = b"?"
"""The role of one that nothing reads, and that not every browser sends."""
COMPILED: Final[ModuleType | None] = load("gatewayfilter.proxy.request._header_fields")
"""The compiled twins, of the reading of lines as well (http1_heads.py); `None` where Python does their work."""


@lru_cache(maxsize=512)
def _name(name: str | bytes) -> tuple[bytes, int]:
    wanted = (name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name).lower()
    return wanted, len(wanted)


def plain_values_of(fields: _Pairs, name: str | bytes) -> list[str]:
    """Returns the values of the fields with a name."""
    wanted, size = _name(name)
    return [value.decode("utf-8", "surrogateescape") for key, value in fields if len(key) == size and key.lower() == wanted]


def plain_value_of(fields: _Pairs, name: str | bytes, default: Any) -> Any:
    """Returns the values of the fields with a name, joined by commas, or the default where there is none."""
    found = plain_values_of(fields, name)
    if not found:
        return default
    return found[0] if len(found) == 1 else ", ".join(found)


def plain_has_name(fields: _Pairs, name: str | bytes) -> bool:
    """Returns whether there is a field with a name."""
    wanted, size = _name(name)
    for key, _ in fields:  # noqa: SIM110  a generator costs more than the search
        if len(key) == size and key.lower() == wanted:
            return True
    return False


def plain_holds_breaks(fields: Fields) -> bool:
    """Returns whether a value has a CR, LF or NUL in it. One search through all fields: it runs for each message."""
    if not _has_breaks(b"".join(chain.from_iterable(fields))):
        return False
    return _has_breaks(b"".join([value for _, value in fields]))


def _has_breaks(text: bytes) -> bool:
    return b"\r" in text or b"\n" in text or b"\0" in text


def plain_read_roles(
    fields: _Pairs, roles: Mapping[bytes, bytes], role_of: Callable[[bytes], bytes]
) -> tuple[dict[bytes, str], list[str], bool]:
    """Returns the fields that are read, each Host, and whether the others have the role `PASSED` alone. One walk over all fields.

    Args:
        fields: of a request.
        roles: of names as they are usually spelt: the lower-case name of what is read, `PASSED`, or `OWN`.
        role_of: returns that of any other name.
    """
    headers: dict[bytes, str] = {}
    hosts: list[str] = []
    common = True
    for name, value in fields:
        role = roles.get(name)
        if role is None:
            role = role_of(name)
        if role == PASSED:
            continue
        if role == OWN:
            common = False
            continue
        text = value.decode("latin-1")
        if role not in headers:
            headers[role] = text
        elif role == b"connection":
            headers[role] = f"{headers[role]}, {text}"
        if role == b"host":
            hosts.append(text)
    return headers, hosts, common


type _ReadRoles = Callable[[_Pairs, Mapping[bytes, bytes], Callable[[bytes], bytes]], tuple[dict[bytes, str], list[str], bool]]

_twins: Final[Any] = COMPILED
values_of: Final = cast("Callable[[_Pairs, str | bytes], list[str]]", _twins.values_of if _twins else plain_values_of)
value_of: Final = cast("Callable[[_Pairs, str | bytes, Any], Any]", _twins.value_of if _twins else plain_value_of)
has_name: Final = cast("Callable[[_Pairs, str | bytes], bool]", _twins.has_name if _twins else plain_has_name)
holds_breaks: Final = cast("Callable[[Fields], bool]", _twins.holds_breaks if _twins else plain_holds_breaks)
read_roles: Final = cast("_ReadRoles", _twins.read_roles if _twins else plain_read_roles)
