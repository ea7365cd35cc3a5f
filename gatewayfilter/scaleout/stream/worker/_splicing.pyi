from collections.abc import Sequence

def keys(prefixes: list[bytes], offsets: list[int]) -> bytes: ...
def splice(
    values: Sequence[bytes], braces: list[int], fragments: Sequence[bytes], prefixes: Sequence[bytes], offsets: list[int]
) -> list[dict[str, bytes]]: ...
def pack(
    values: list[bytes],
    braces: list[int],
    fragments: list[bytes],
    prefixes: list[bytes],
    offsets: list[int],
    most: int,
    most_bytes: int,
) -> list[dict[str, bytes]]: ...
