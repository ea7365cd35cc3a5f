from collections.abc import Iterable
from typing import Any

def made[T](kind: type[T], names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> tuple[T, ...]: ...
