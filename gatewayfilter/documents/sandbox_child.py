"""The process behind `confined.Confined`: reads a question and a body, works, answers; ends at the end of its input.

An alarm whose default action ends the process stands over each piece of work: it works inside C code too, and needs no parent.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from gatewayfilter.documents.sandbox import FRAME

_MAX_QUESTION = 8_000_000
_MAX_BODY = 100_000_000


def main(job: str, timeout_s: float, memory: int) -> None:
    """Works until the input ends.

    Args:
        job: `module:function`.
        timeout_s: longest time for one piece of work; then the process ends.
        memory: bytes of address space.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's matter
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    module, _, name = job.partition(":")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a library that prints does not break the answers
    work: Callable[[Any, bytes], object] = getattr(import_module(module), name)
    while len(head := sys.stdin.buffer.read(FRAME.size)) == FRAME.size:
        question_length, body_length = FRAME.unpack(head)
        if question_length > _MAX_QUESTION or body_length > _MAX_BODY:
            return
        question = json.loads(sys.stdin.buffer.read(question_length))
        body = sys.stdin.buffer.read(body_length)
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        answer = json.dumps(_answer(work, question, body)).encode()
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(FRAME.pack(len(answer), 0) + answer)
        answers.flush()


def _answer(work: Callable[[Any, bytes], object], question: object, body: bytes) -> dict[str, object]:
    try:
        return {"done": work(question, body)}
    except Exception as error:  # noqa: BLE001  the outermost boundary of one page; nothing of it is shown as a traceback
        return {"error": f"{type(error).__name__}: {error}" if str(error) else type(error).__name__}


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
