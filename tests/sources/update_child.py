"""What tests of `source update` run in processes of their own: killed at a chosen step, on a full disk, or measured."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gatewayfilter.config import SourceSettings
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.sources import Subscriptions
from tests.sources.list_server import BUNDLED

STEPS = frozenset({"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree", "os.truncate"})


def subscriptions_of(folder: Path, max_bytes: int = 10_000_000) -> Subscriptions:
    """The subscriptions of a folder, impatient."""
    return Subscriptions(folder, SourceSettings(max_bytes=max_bytes, timeout_s=60), BUNDLED, sleep=lambda _: None)


def update_until(folder: str, address: str, kill_at: int, steps: Any) -> None:
    """Updates source `a`, or adds `address` as source `b`; dies before its `kill_at`-th step in the folder, 0 for never.

    A step is whatever changes the folder, or a sync: counted into `steps`.
    """

    def step() -> None:
        steps.value += 1
        if steps.value == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in STEPS and str(arguments[0]).startswith(folder):
            step()

    synced: Callable[[int], None] = os.fsync

    def fsync(handle: int) -> None:
        step()
        synced(handle)

    subscriptions = subscriptions_of(Path(folder))
    os.fsync = fsync  # type: ignore[assignment]  # this process is nobody else's
    sys.addaudithook(hook)
    if address:
        subscriptions.add(address, name="b")
    else:
        subscriptions.update(["a"], force=True)


def add_and_measure(folder: str, address: str, answer: Any) -> None:
    """Adds a source of up to 400 MB; answers with the error or the counts, and by how many MB the process grew at its height."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        result = subscriptions_of(Path(folder), 400_000_000).add(address, name="big")
        said = f"{result.report and result.report.accepted} accepted, {result.report and result.report.rejected} rejected"
    except GatewayFilterError as error:
        said = str(error)
    answer.put((said, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))


def say(line: str) -> None:
    """Writes a line of the answer."""
    sys.stdout.write(f"{line}\n")


def main(folder: str, small: str, big: str) -> None:
    """In a mount namespace of its own: a disk of 400 KB, a list that fits, and the news that do not."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], check=True)
    subscriptions = subscriptions_of(Path(folder) / "sources")
    subscriptions.add(small, name="a")
    copy = subscriptions.get("a").list_path.read_bytes()
    filler = Path(folder) / "filler"
    for address in (big, small):  # the list that does not fit, then one that would if the disk were not full to the last byte
        definition = subscriptions.get("a")
        path = Path(folder) / "sources" / "a" / "source.json"
        path.write_text(path.read_text().replace(definition.definition.address, address))
        if address == small:
            with filler.open("wb", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
        (result,) = subscriptions.update(["a"], force=True)
        say(f"{result.status}: {result.error}")
        say("kept" if subscriptions.get("a").list_path.read_bytes() == copy else "lost")
    try:
        subscriptions.add(big, name="b")
    except GatewayFilterError as error:
        say(f"add: {error}")
    filler.unlink()
    (result,) = subscriptions.update(["a"], force=True)
    say(f"after: {result.status}")
    say(" ".join(sorted(entry.name for entry in (Path(folder) / "sources").iterdir())))
    say(" ".join(sorted(entry.name for entry in (Path(folder) / "sources" / "a").iterdir())))


if __name__ == "__main__":
    main(*sys.argv[1:])
