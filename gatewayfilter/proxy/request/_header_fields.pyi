from collections.abc import Callable, Container, Iterable

type _Fields = Iterable[tuple[bytes, bytes]]

def values_of(fields: _Fields, name: str | bytes) -> list[str]: ...
def value_of[T](fields: _Fields, name: str | bytes, default: T) -> str | T: ...
def has_name(fields: _Fields, name: str | bytes) -> bool: ...
def holds_breaks(fields: _Fields) -> bool: ...
def read_roles(
    fields: _Fields, roles: dict[bytes, bytes], role_of: Callable[[bytes], bytes]
) -> tuple[dict[bytes, str], list[str], bool]: ...
def read_lines(
    head: bytes,
    begin: int,
    end: int,
    repeated: dict[bytes, tuple[bytes, bytes]],
    most: int,
    kind_of: Callable[[bytes], bytes | None],
    repeating: Container[bytes],
    unbound: Container[bytes],
) -> tuple[tuple[tuple[bytes, bytes], ...], dict[bytes, bytes]] | None: ...
