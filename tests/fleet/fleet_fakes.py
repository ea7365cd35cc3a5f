"""A publisher and a follower in one process: folders, stores and a transport without sockets."""

import hashlib
import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.fleet.adoption import Adopter
from gatewayfilter.fleet.bundle import Bundle, shared_bundle
from gatewayfilter.fleet.export import Exporter
from gatewayfilter.fleet.folder import FleetFolder
from gatewayfilter.fleet.follower import Follower
from gatewayfilter.fleet.keys import KeyFile, SigningKeys
from gatewayfilter.fleet.manifest import MAGIC
from gatewayfilter.fleet.public_keys import write_public_key
from gatewayfilter.fleet.transport import Answer, Transport, TransportError
from gatewayfilter.model import LearnedEntry, ListAction, Source
from gatewayfilter.settings import FleetSettings
from gatewayfilter.sources.publish import publish_base
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import digest_of


def learned(key: str) -> LearnedEntry:
    now = time.time()
    return LearnedEntry(key, ListAction.BLOCK, "gambling", f"http://{key}", "bet", now, now + 86_400)


def publish_hosts(folder: SnapshotFolder, hosts: list[str], entries: tuple[LearnedEntry, ...] = ()) -> None:
    builder = SnapshotBuilder(created_at=1_700_000_000.0)
    builder.add_keys(builder.add_source(Source("ads", ListAction.BLOCK, "ads")), [f".{host}" for host in hosts])
    builder.add_learned(entries)
    image = builder.image(counting=True)
    with folder.publishing() as put:
        put(image)


@dataclass
class Publisher:
    """A publisher whose export is a folder."""

    home: Path
    settings: FleetSettings = field(default_factory=FleetSettings)
    now: float = 1_800_000_000.0

    def __post_init__(self) -> None:
        self.snapshots = SnapshotFolder(self.home / "snapshots")
        self.keys = KeyFile(self.home / "signing.key")
        self.signing: SigningKeys = self.keys.create()
        self.store = Store.open(f"sqlite:///{self.home / 'store.sqlite3'}")
        self.folder = self.home / "export"

    @property
    def key(self) -> str:
        return write_public_key(self.signing.public[0])

    def export(self, bundle: Bundle | None = None) -> bool:
        self.now += 1
        exporter = Exporter(self.folder, self.snapshots, self.settings, lambda: self.now)
        shared = shared_bundle(self.store.lists.rules(), self.store.policies.read(), self.settings)
        return exporter.export(bundle or shared, self.keys.read())

    def forge(
        self,
        facts: Mapping[str, object] = MappingProxyType({}),
        parts: Mapping[str, object] = MappingProxyType({}),
        bundle: bytes | None = None,
    ) -> None:
        """Signs another manifest, or other rules, in the place of the newest: as one who has stolen the key."""
        manifest = json.loads((self.folder / "manifest").read_bytes().partition(b"\n\n")[2])
        manifest["sequence"] += 1
        if bundle is not None:
            name = hashlib.sha256(bundle).hexdigest()
            (self.folder / "blobs" / name).write_bytes(bundle)
            manifest["bundle"] = {"name": name, "size": len(bundle)}
        manifest["snapshot"].update(parts)
        manifest.update(facts)
        payload = json.dumps(manifest).encode()
        signed = self.signing.sign(b"gatewayfilter fleet manifest 1\0" + payload)
        lines = [b64encode(key) + b" " + b64encode(signature) for key, signature in signed]
        (self.folder / "manifest").write_bytes(b"\n".join((MAGIC, *lines, b"", payload)))


class FolderTransport(Transport):
    """Reads an export; `cut` ends each transfer after so many bytes, `flip` changes one byte of each.

    `blobs` are the names and lengths of the whole files that were read, `spoil` changes them.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self.folder = folder
        self.away = False
        self.cut: int | None = None
        self.flip = False
        self.fetched = 0
        self.spans: list[tuple[int, int]] = []
        self.blobs: dict[str, int] = {}
        self.spoil: Callable[[bytes], bytes] = bytes
        self.reports: list[bytes] = []

    def manifest(self, etag: str, most: int) -> Answer:
        if self.away:
            raise TransportError("cannot reach the publisher: refused")
        body = (self.folder / "manifest").read_bytes()
        tag = str(hash(body))
        return Answer(304, etag, b"") if etag == tag else Answer(200, tag, body)

    def blob(self, name: str, most: int) -> bytes:
        data = self.spoil((self.folder / "blobs" / name).read_bytes())
        self.blobs[name] = len(data)
        return data

    def span(self, name: str, begin: int, length: int) -> Iterator[bytes]:
        self.spans.append((begin, length))
        data = bytearray((self.folder / "blobs" / name).read_bytes()[begin : begin + length])
        if self.flip:
            data[len(data) // 2] ^= 1
        for at in range(0, len(data), 10_000):
            piece = bytes(data[at : at + 10_000])
            if self.cut is not None and self.fetched + len(piece) > self.cut:
                self.cut = None
                raise TransportError("the transfer was cut off")
            self.fetched += len(piece)
            yield piece

    def report(self, body: bytes) -> int:
        self.reports.append(body)
        return 204


class Gateway:
    """A follower with a filter whose snapshots are published as in the program."""

    def __init__(self, home: Path, publisher: Publisher, **settings: object) -> None:
        self.home = home
        self.store = Store.open(f"sqlite:///{home / 'store.sqlite3'}")
        self.snapshots = SnapshotFolder(home / "snapshots")
        values = {"follow": "http://127.0.0.1:9", "key": publisher.key, **settings}
        self.settings = FleetSettings.model_validate(values)
        self.transport = FolderTransport(publisher.folder)
        self.counters = Counters()
        self.now = 1_800_000_000.0
        self.follower = self.restarted()

    def restarted(self) -> Follower:
        clock = lambda: self.now  # noqa: E731
        self.follower = Follower(
            FleetFolder(self.home / "fleet"), self.settings, self.transport, self, self.counters, "1.0", clock
        )
        return self.follower

    def publish(self) -> None:
        publish_base(self.snapshots, self.home / "fleet" / "base.gfs", self.store.lists, self.store.feed, self.store.policies)

    def adopter(self) -> Adopter:
        return Adopter(self.store.lists, self.store.policies)

    def is_published(self, name: str) -> bool:
        path = self.snapshots.current()
        return path is not None and Snapshot.open(path).meta["notes"]["inputs"] == f"fleet:{name}"

    def serving(self) -> tuple[int, int]:
        return 1, 2

    def blocks(self, key: str) -> bool:
        snapshot, _ = self.snapshots.open_newest()
        return snapshot.blacklist.find(digest_of(key)) is not None
