"""Loaded by every process below `bench_mixed.py --heap FOLDER`: on SIGUSR2 it writes what its memory consists of.

Python runs a module of this name, found on PYTHONPATH, before anything else. Nothing of it is in the product.
"""

import collections
import ctypes
import gc
import json
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

_FOLDER = os.environ.get("HEAP_PROBE_FOLDER", "")
_collected = [[0, 0.0] for _ in range(3)]
_started = [0.0]


def _malloc() -> dict[str, int]:
    """Returns what glibc's malloc has of the system, and how much of it is free, in bytes."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile("r") as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        text = file.read()
    total = text[text.rfind("</heap>") :]
    free = sum(int(size) for size in re.findall(r'<total type="(?:fast|rest)" count="\d+" size="(\d+)"', total))
    found = re.search(r'<system type="current" size="(\d+)"', total)
    return {"system": int(found[1]) if found else 0, "free": free, "heaps": text.count("<heap nr")}


def _python() -> dict[str, int]:
    """Returns what Python's own allocator has, in bytes."""
    with tempfile.TemporaryFile("w+") as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            sys._debugmallocstats()  # noqa: SLF001  the one way to ask
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        text = file.read()

    def number(what: str) -> int:
        found = re.search(rf"{what}\s*=\s*([\d,]+)", text)
        return int(found[1].replace(",", "")) if found else 0

    return {"system": number("# arenas allocated current") << 20, "used": number("# bytes in allocated blocks")}


def _report(*_: object) -> None:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    document = {
        "at": time.time(),
        "pages_kb": {line.split(":")[0]: int(line.split()[1]) for line in lines},
        "malloc": _malloc(),
        "python": _python(),
        "collected": _collected,
        "cpu_s": time.process_time(),
        "objects": collections.Counter(type(found).__name__ for found in gc.get_objects()).most_common(200),
    }
    with (Path(_FOLDER) / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(document) + "\n")


def _count(phase: str, info: dict[str, int]) -> None:
    if phase == "start":
        _started[0] = time.perf_counter()
    else:
        entry = _collected[info["generation"]]
        entry[0] += 1
        entry[1] += time.perf_counter() - _started[0]


def _arm() -> None:
    gc.callbacks.append(_count)
    signal.signal(signal.SIGUSR2, _report)


if _FOLDER:
    os.register_at_fork(after_in_child=_arm)
