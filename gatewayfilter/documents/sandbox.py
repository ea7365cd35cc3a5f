"""Work on a page that may hang or eat memory whatever we do: done by a child process with limits, one for each kind of work.

Libraries for PDF, XPath and CSS can be held for minutes by a page made for it, and a thread cannot be stopped. The child can:
it ends itself by an alarm, has a bounded address space, and is started again for the next page.
"""

import contextlib
import json
import os
import select
import struct
import subprocess
import sys
import threading
from typing import IO, Any

from gatewayfilter.errors import ClassifyError

MEMORY = 1 << 30
"""Bytes of address space that a child may have."""
MAX_ANSWER = 16_000_000
START_S = 20.0
"""How long a child may take to start, on a busy machine, beyond the time for its work."""
FRAME = struct.Struct(">II")


class SandboxError(ClassifyError):
    """The work was not done: it took too long, needed too much memory, or the page cannot be read."""


class Sandbox:
    """A child process that does one kind of work, one page at a time. Started when first needed; safe to share between threads.

    Args:
        job: `module:function`, a module-level function of (question, body) that returns what JSON can hold.
        timeout_s: longest time for a page.
    """

    def __init__(self, job: str, timeout_s: float) -> None:
        self._job = job
        self._timeout_s = timeout_s
        self._one = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def ask(self, question: object, body: bytes) -> Any:
        """Has a page worked on. Blocks for at most `timeout_s`, and `START_S` more where the child has to be started.

        Raises:
            SandboxError: it was not done.
        """
        with self._one:
            child = self._started()
            try:
                answer = self._exchange(child, json.dumps(question).encode(), body)
            except OSError as error:
                self._stop()
                raise SandboxError("the process that reads the page cannot be reached") from error
        if answer is None:
            raise SandboxError(f"the page took longer than {self._timeout_s:g} s or too much memory to read")
        if "error" in answer:
            raise SandboxError(str(answer["error"])[:500])
        return answer["done"]

    def close(self) -> None:
        """Ends the child."""
        with self._one:
            self._stop()

    def __del__(self) -> None:
        self._stop()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._stop()
            command = [
                sys.executable,
                "-m",
                "gatewayfilter.documents.sandbox_child",
                self._job,
                str(self._timeout_s),
                str(MEMORY),
            ]
            try:
                self._child = subprocess.Popen(  # noqa: S603  our own interpreter and module
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
                )
            except OSError as error:
                raise SandboxError(f"cannot start the process that reads pages: {error.strerror}") from error
        return self._child

    def _exchange(self, child: subprocess.Popen[bytes], question: bytes, body: bytes) -> dict[str, Any] | None:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            _write_all(child.stdin, FRAME.pack(len(question), len(body)) + question + body)
            if not select.select([child.stdout], [], [], self._timeout_s + START_S)[0]:
                self._stop()
                return None
            head = _read_all(child.stdout, FRAME.size)
            length = FRAME.unpack(head)[0] if len(head) == FRAME.size else 0
            data = _read_all(child.stdout, min(length, MAX_ANSWER))
            if length and len(data) == length:
                answer: dict[str, Any] = json.loads(data)
                return answer
        except (BrokenPipeError, ConnectionResetError):
            pass
        self._stop()
        return None

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(OSError):
            child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        child.wait()


def _write_all(stream: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream.fileno(), view) :]


def _read_all(stream: IO[bytes], length: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < length and (piece := os.read(stream.fileno(), min(length - len(pieces), 1 << 20))):
        pieces += piece
    return bytes(pieces)
