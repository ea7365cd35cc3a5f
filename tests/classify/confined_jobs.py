"""Work for the confined process that misbehaves in the ways in which libraries do."""

import os
import re


def hangs_in_c(question: object, body: bytes) -> object:
    return re.match(r"(a+)+$", "a" * 64 + "b")


def eats_memory(question: object, body: bytes) -> object:
    return len(bytearray(1 << 33))


def dies(question: object, body: bytes) -> object:
    os.abort()


def raises(question: object, body: bytes) -> object:
    raise ValueError("as asked")


def prints(question: object, body: bytes) -> object:
    os.write(1, b"noise " * 100)
    return [question, len(body)]
