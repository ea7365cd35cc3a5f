"""h2spec, the conformance suite for HTTP/2, built from its Go module, and the forwarder that puts the filter in front of it."""

import asyncio
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MODULE: Final = Path(__file__).parent / "h2spec"
_BUILT: Final = Path(__file__).parents[2] / ".venv" / "h2spec"
"""Where the binary stays between runs."""
_BUILD_S: Final = 300


class CannotBuildError(Exception):
    """There is no Go here, or the module cannot be had."""


def built() -> Path:
    """Returns the program, built if need be.

    Raises:
        CannotBuildError: it cannot be built.
    """
    wanted = (_MODULE / "go.sum").read_text()
    program, stamp = _BUILT / "h2spec", _BUILT / "built-from"
    if program.exists() and stamp.exists() and stamp.read_text() == wanted:
        return program
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        raise CannotBuildError("the command go is not installed (Debian: golang-go)")
    _BUILT.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [go, "build", "-o", str(program), "github.com/summerwind/h2spec/cmd/h2spec"],
        cwd=_MODULE, env={**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"},
        capture_output=True, text=True, check=False, timeout=_BUILD_S,
    )  # fmt: skip
    if done.returncode:
        raise CannotBuildError(f"go build: {done.stderr[-1000:]}")
    stamp.write_text(wanted)
    return program


@dataclass(frozen=True, slots=True)
class SpecReport:
    """What h2spec found.

    Attributes:
        passed: how many cases passed.
        failed: name of a case → what was expected and what came.
        skipped: names of cases.
    """

    passed: int
    failed: dict[str, str]
    skipped: tuple[str, ...]


def read_report(path: Path) -> SpecReport:
    """Reads h2spec's report in JUnit's form."""
    passed, failed, skipped = 0, {}, []
    for case in ET.parse(path).getroot().iter("testcase"):
        name = f"{case.get('package')}: {case.get('classname')}"
        # Of its own accord h2spec writes failures as <failure> and errors as <error>; a skipped case has <skipped>.
        wrong = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        if wrong is not None:
            failed[name] = " ".join((wrong.text or "").split())
        elif case.find("skipped") is not None:
            skipped.append(name)
        else:
            passed += 1
    return SpecReport(passed, failed, tuple(skipped))


@asynccontextmanager
async def forwarder(proxy: tuple[str, int], target: str) -> AsyncIterator[int]:
    """Runs a port whose connections are tunnels through the proxy to a target, for a client without proxies. Yields the port."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            inner, outer = await asyncio.open_connection(*proxy)
            outer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            await inner.readuntil(b"\r\n\r\n")
            await asyncio.gather(relay(reader, outer), relay(inner, writer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
