from collections.abc import Sequence

def splice(
    values: Sequence[bytes], braces: list[int], fragments: Sequence[bytes], prefixes: Sequence[bytes], offsets: list[int]
) -> list[dict[str, bytes]]: ...
