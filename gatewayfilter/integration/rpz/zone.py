"""The response policy zone: records of what DNS can say of the filter's rules, its versions, and what changes between them.

Whole hosts are blocked (`CNAME .`) or allowed by a manual rule (`CNAME rpz-passthru.`), with or without the names below them.
Rules for paths, parts of names, single clients or types of requests have no place in DNS.

Names are kept as their labels in reverse, `com.example.ads`, so that a domain and all names below it follow each other.

Source: draft-vixie-dnsop-dns-rpz-00 §3.1 (QNAME triggers, wildcards), §4.1 (NXDOMAIN), §4.4 (PASSTHRU).
"""

import mmap
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

MOST_CHANGES: Final = 50_000
"""Records of one change; a larger one is transferred as a whole zone."""
MOST_VERSIONS: Final = 200
MOST_KEPT: Final = 100_000
"""Records of all steps that are kept."""
_EMPTY: Final = b""


class Target(Enum):
    """What happens to a name."""

    BLOCK = "."
    ALLOW = "rpz-passthru."


class Record(NamedTuple):
    """A record of the zone.

    Attributes:
        name: labels in reverse, ASCII, without a dot at either end.
        below: it is for all names below, `*.name`, not for the name.
        target: of its CNAME.
    """

    name: str
    below: bool
    target: Target


def reversed_labels(name: str) -> str:
    """Returns a name with its labels in reverse."""
    return ".".join(reversed(name.split(".")))


class BaseNames:
    """The hosts that subscribed lists block, from a sorted file: `com.example=` is a host, `com.example*` a domain.

    A look-up is a binary search, some 20 µs; the file is mapped, so that millions of names take no memory of the process.
    """

    def __init__(self, data: bytes | mmap.mmap = _EMPTY) -> None:
        self._data = data

    @classmethod
    def open(cls, path: Path) -> "BaseNames":
        """Returns the names in a file. Raises OSError."""
        if not path.stat().st_size:
            return cls()
        with path.open("rb") as file:
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def __len__(self) -> int:
        return sum(1 for _ in self.lines())

    def mark(self, name: str) -> str:
        """Returns `=` for a host that is blocked, `*` for a domain, `""` for neither."""
        wanted = name.encode("ascii")
        for found, mark in self._from(wanted):
            return mark if found == wanted else ""
        return ""

    def below(self, name: str, most: int) -> list[str]:
        """Returns the names below a name, at most `most` of them."""
        prefix = name.encode("ascii") + b"."
        found: list[str] = []
        for one, _ in self._from(prefix):
            if not one.startswith(prefix) or len(found) >= most:
                break
            found.append(one.decode("ascii"))
        return found

    def lines(self) -> Iterator[tuple[bytes, str]]:
        """Yields all names in order, each with its mark."""
        return self._from(_EMPTY)

    def _from(self, wanted: bytes) -> Iterator[tuple[bytes, str]]:
        data, at = self._data, self._place(wanted)
        while at < len(data):
            end = data.find(b"\n", at)
            yield data[at : end - 1], chr(data[end - 1])
            at = end + 1

    def _place(self, wanted: bytes) -> int:
        """Returns the offset of the first line whose name is not below `wanted` in order."""
        data = self._data
        low, high = 0, len(data)
        while low < high:
            middle = max(data.rfind(b"\n", low, (low + high) // 2) + 1, low)
            end = data.find(b"\n", middle)
            if data[middle : end - 1] < wanted:
                low = end + 1
            else:
                high = middle
        return low


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Manual rules and learned hosts, which outrank subscribed lists.

    Attributes:
        hosts: name → target, for the name alone.
        domains: name → target, for the name and all below it.
    """

    hosts: Mapping[str, Target] = field(default_factory=dict)
    domains: Mapping[str, Target] = field(default_factory=dict)

    def covers(self, name: str) -> bool:
        """Returns whether a domain above the name is allowed."""
        at = name.rfind(".")
        while at > 0:
            if self.domains.get(name[:at]) is Target.ALLOW:
                return True
            at = name.rfind(".", 0, at)
        return False

    def changed(self, other: "OwnNames") -> set[tuple[str, bool]]:
        """Returns the names that differ, each with whether names below it may differ too."""
        found: set[tuple[str, bool]] = set()
        for ours, theirs, below in ((self.hosts, other.hosts, False), (self.domains, other.domains, True)):
            found |= {(name, below) for name in ours.keys() | theirs.keys() if ours.get(name) is not theirs.get(name)}
        return found

    def records_of(self, name: str, mark: str) -> list[Record]:
        """Returns the records of a name for which `BaseNames` has this mark."""
        if self.covers(name):
            return []
        host, domain = self.hosts.get(name), self.domains.get(name)
        allowed = Target.ALLOW in {host, domain}
        found = []
        if allowed or host or domain or mark:
            found.append(Record(name, False, Target.ALLOW if allowed else Target.BLOCK))
        if domain is Target.ALLOW:
            found.append(Record(name, True, Target.ALLOW))
        elif domain or mark == "*":
            found.append(Record(name, True, Target.BLOCK))
        return found


@dataclass(frozen=True, slots=True)
class Zone:
    """One version of the zone.

    Attributes:
        serial: of its SOA.
        base: what subscribed lists block.
        own: what outranks them.
    """

    serial: int
    base: BaseNames
    own: OwnNames

    def records(self) -> Iterator[Record]:
        """Yields all records, some 2 µs each."""
        own = self.own
        names = own.hosts.keys() | own.domains.keys()
        for raw, mark in self.base.lines():
            name = raw.decode("ascii")
            if name in names:
                continue
            if own.domains and own.covers(name):
                continue
            yield Record(name, False, Target.BLOCK)
            if mark == "*":
                yield Record(name, True, Target.BLOCK)
        for name in sorted(names):
            yield from own.records_of(name, self.base.mark(name))


@dataclass(frozen=True, slots=True)
class Step:
    """What changed from one version to the next."""

    before: int
    after: int
    removed: tuple[Record, ...]
    added: tuple[Record, ...]


class ZoneHistory:
    """The zone in force, and the steps that led to it. One thread changes it; any may read, without a lock."""

    def __init__(self, zone: Zone) -> None:
        self._state: tuple[Zone, tuple[Step, ...]] = zone, ()

    @property
    def zone(self) -> Zone:
        """The version in force."""
        return self._state[0]

    def since(self, serial: int | None) -> tuple[Zone, tuple[Step, ...] | None]:
        """Returns the version in force with the steps from another one to it, `None` where that is not known any more."""
        zone, steps = self._state
        at = next((number for number, step in enumerate(steps) if step.before == serial), None)
        return zone, steps[at:] if at is not None else None

    def change(self, own: OwnNames, now: float) -> bool:
        """Takes in other own names. Returns whether the zone has changed."""
        zone, steps = self._state
        names = _affected(zone, own)
        if not names:
            return False
        following = Zone(_next(zone.serial, now), zone.base, own)
        if len(names) > MOST_CHANGES:
            self._state = following, ()
            return True
        marks = {name: zone.base.mark(name) for name in names}
        before = {record for name, mark in marks.items() for record in zone.own.records_of(name, mark)}
        after = {record for name, mark in marks.items() for record in own.records_of(name, mark)}
        if before == after:
            self._state = Zone(zone.serial, zone.base, own), steps
            return False
        step = Step(zone.serial, following.serial, _sorted(before - after), _sorted(after - before))
        self._state = following, _newest((*steps, step))
        return True

    def replace_base(self, base: BaseNames, own: OwnNames, now: float) -> None:
        """Takes in other lists: resolvers transfer the whole zone."""
        self._state = Zone(_next(self.zone.serial, now), base, own), ()


def _affected(zone: Zone, own: OwnNames) -> set[str]:
    """Returns the names whose records may differ with other own names."""
    named = sorted({*zone.own.hosts, *zone.own.domains, *own.hosts, *own.domains})
    names: set[str] = set()
    for name, below in zone.own.changed(own):
        names.add(name)
        if below:
            names.update(named[bisect_left(named, f"{name}.") : bisect_left(named, f"{name}/")])  # "/" follows "."
            names.update(zone.base.below(name, MOST_CHANGES))
        if len(names) > MOST_CHANGES:
            break
    return names


def _newest(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Returns the newest steps that are within the bounds, the last one in any case."""
    kept, begin = 0, len(steps)
    while begin and len(steps) - begin < MOST_VERSIONS:
        step = steps[begin - 1]
        kept += len(step.removed) + len(step.added)
        if kept > MOST_KEPT and begin < len(steps):
            break
        begin -= 1
    return steps[begin:]


def _sorted(records: set[Record]) -> tuple[Record, ...]:
    return tuple(sorted(records, key=_order))


def _order(record: Record) -> tuple[str, bool, str]:
    return record.name, record.below, record.target.value


def _next(serial: int, now: float) -> int:
    return max(int(now), serial + 1) & 0xFFFFFFFF
