"""A fleet's update: bytes and CPU of a follower that takes the changes of a list, and of one that fetches changed blocks.

    python scripts/bench/bench_fleet.py [--domains 1000000] [--changed 1000]

A publisher exports a list of made-up domains, two followers take it. Then half of the changed domains are gone and as many are
new; one follower takes the delta, the other gets none and fetches blocks. Files, manifests and signatures are the product's; the
transport reads the export's folder, so nothing of HTTP is in the figures.
"""

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.fleet.adoption import Adopter
from gatewayfilter.fleet.bundle import shared_bundle
from gatewayfilter.fleet.export import Exporter
from gatewayfilter.fleet.folder import FleetFolder
from gatewayfilter.fleet.follower import Follower
from gatewayfilter.fleet.keys import KeyFile
from gatewayfilter.fleet.public_keys import write_public_key
from gatewayfilter.fleet.transport import Answer, Transport
from gatewayfilter.model import Source
from gatewayfilter.settings import FleetSettings
from gatewayfilter.sources.publish import publish_base
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

SEED = 20160301
WORDS = ("play", "casino", "track", "ads", "shop", "news", "mail", "cdn", "img", "win", "bet", "free", "live", "data", "my", "go")


class FolderTransport(Transport):
    """Reads an export, with or without its deltas, and counts what it reads."""

    def __init__(self, folder: Path, *, deltas: bool) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self._folder = folder
        self._deltas = deltas
        self.read = 0

    def manifest(self, etag: str, most: int) -> Answer:  # noqa: ARG002  the interface
        """Returns the manifest."""
        return Answer(200, "", (self._folder / "manifest").read_bytes())

    def blob(self, name: str, most: int) -> bytes:  # noqa: ARG002  the interface
        """Returns a whole file: rules, or a delta."""
        data = (self._folder / "blobs" / name).read_bytes()
        if data.startswith(b"GWFLDLT1") and not self._deltas:
            return b""
        self.read += len(data)
        return data

    def span(self, name: str, begin: int, length: int) -> Iterator[bytes]:
        """Yields a part of the snapshot."""
        self.read += length
        with (self._folder / "blobs" / name).open("rb") as file:
            file.seek(begin)
            yield file.read(length)

    def report(self, body: bytes) -> int:  # noqa: ARG002  the interface
        """Takes the report of a follower."""
        return 204


class Gateway:
    """A follower with its folders; publishes as the program does."""

    def __init__(self, home: Path, export: Path, key: str, *, deltas: bool) -> None:
        home.mkdir()
        self._home = home
        self._store = Store.open(f"sqlite:///{home / 'store.sqlite3'}")
        self._snapshots = SnapshotFolder(home / "snapshots")
        self.transport = FolderTransport(export, deltas=deltas)
        settings = FleetSettings.model_validate({"follow": "http://127.0.0.1:9", "key": key})
        self._follower = Follower(FleetFolder(home / "fleet"), settings, self.transport, self, Counters(), "1.0", time.time)

    def publish(self) -> None:
        """Publishes what was fetched."""
        base = self._home / "fleet" / "base.gfs"
        publish_base(self._snapshots, base, self._store.lists, self._store.feed, self._store.policies)

    def adopter(self) -> Adopter:
        """Returns what takes rules and policies over."""
        return Adopter(self._store.lists, self._store.policies)

    def is_published(self, name: str) -> bool:  # noqa: ARG002  the interface
        """Returns False: what was fetched is published."""
        return False

    def serving(self) -> tuple[int, int]:
        """Returns no entries and no workers."""
        return 0, 0

    def poll(self) -> tuple[int, float]:
        """Takes what is new. Returns the bytes that were read, and seconds of CPU."""
        before, begun = self.transport.read, time.process_time()
        state = self._follower.poll()
        if state.sentence:
            raise SystemExit(f"the follower refuses: {state.sentence}")
        return self.transport.read - before, time.process_time() - begun


def put_into_use(folder: SnapshotFolder, hosts: list[str]) -> None:
    """Publishes a list of hosts."""
    builder = SnapshotBuilder(created_at=1_700_000_000.0)
    builder.add_keys(builder.add_source(Source("list")), [f".{host}" for host in hosts])
    image = builder.image(counting=True)
    with folder.publishing() as put:
        put(image)


def main() -> None:
    """Measures and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=1_000)
    options = parser.parse_args()
    chosen = random.Random(SEED)
    hosts = [f"{chosen.choice(WORDS)}{number:x}-{chosen.choice(WORDS)}.example" for number in range(options.domains)]
    half = options.changed // 2
    with TemporaryDirectory() as name:
        home = Path(name)
        keys, snapshots, store = KeyFile(home / "key"), SnapshotFolder(home / "published"), Store.open(f"sqlite:///{home / 'db'}")
        signing = keys.create()
        exporter = Exporter(home / "export", snapshots, FleetSettings(), time.time)
        bundle = shared_bundle(store.lists.rules(), store.policies.read(), FleetSettings())
        key = write_public_key(signing.public[0])
        gateways = {
            kind: Gateway(home / kind, home / "export", key, deltas=kind == "delta") for kind in ("delta", "changed blocks")
        }
        put_into_use(snapshots, hosts)
        exporter.export(bundle, signing)
        whole = max(gateway.poll()[0] for gateway in gateways.values())
        put_into_use(snapshots, [*hosts[half:], *(f"new{number:x}.example" for number in range(half))])
        begun = time.process_time()
        exporter.export(bundle, signing)
        made_s = time.process_time() - begun
        print(f"{options.domains:,} domains, {options.changed:,} changed; the whole file has {whole:,} bytes")
        print(f"The second export took {made_s:.1f} s of CPU.\n")
        print("| a follower takes | bytes | of the file | s of CPU, publication included |\n|---|---|---|---|")
        for kind, gateway in gateways.items():
            read, taken_s = gateway.poll()
            print(f"| {kind} | {read:,} | {100 * read / whole:.2f} % | {taken_s:.1f} |")


if __name__ == "__main__":
    main()
