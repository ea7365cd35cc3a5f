"""Work for tests of the child process."""

import os
from typing import Any

from gatewayfilter.errors import MissingError


def double(value: Any) -> Any:
    return value + value


def missing() -> None:
    raise MissingError("it is not there")


def fault() -> float:
    return 1 / 0


def hang() -> None:
    while True:
        pass


def fill(size: int) -> int:
    return len(bytearray(size))


def number() -> int:
    return os.getpid()
