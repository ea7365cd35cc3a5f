"""The state of a fleet as this machine sees it: what it publishes and to whom, or what it follows."""

import json
import time
from dataclasses import dataclass

from gatewayfilter.config import Settings
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.follower_state import Fault, FollowerState, StateFile
from gatewayfilter.fleet.health import Report, read_board
from gatewayfilter.fleet.members import Members
from gatewayfilter.wiring.storage import fleet_folder

SILENT_S = 600.0
"""A follower without a report for so long needs attention."""


@dataclass(frozen=True, slots=True)
class FollowerRow:
    """A follower on the publisher's side.

    Attributes:
        name: by which it was added.
        added_at: Unix seconds.
        reported_at: when its newest report came (Unix seconds), 0 for none.
        report: the newest one.
    """

    name: str
    added_at: float
    reported_at: float
    report: Report | None


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """The state of a fleet.

    Attributes:
        publishes: whether this machine has a signing key.
        sequence, exported_at: of the newest manifest, 0 for none.
        followers: that the publisher admits.
        follow: address of the publisher that is followed, `""` for none.
        state: of this follower.
    """

    publishes: bool
    sequence: int
    exported_at: float
    followers: tuple[FollowerRow, ...]
    follow: str
    state: FollowerState

    def silent(self, now: float) -> tuple[str, ...]:
        """Returns the followers that have reported once, but not lately."""
        return tuple(row.name for row in self.followers if row.report is not None and now - row.reported_at > SILENT_S)


def followers(settings: Settings) -> Members:
    """Returns the followers that this publisher admits."""
    return Members(fleet_folder(settings).followers)


def fleet_status(settings: Settings) -> FleetStatus:
    """Returns the state; what cannot be read is as if it were not there."""
    folder = fleet_folder(settings)
    publishes = folder.signing_key.exists()
    sequence, exported_at = _exported(settings) if publishes else (0, 0.0)
    reports = read_board(folder.health) if publishes else {}
    rows: list[FollowerRow] = []
    try:
        for member in followers(settings).all() if publishes else ():
            at, report = reports.get(member.name, (0.0, None))
            rows.append(FollowerRow(member.name, member.added_at, at, report))
    except FleetError:
        rows.clear()
    state = StateFile(fleet_folder(settings).state).read() if settings.fleet.follow else FollowerState()
    return FleetStatus(publishes, sequence, exported_at, tuple(rows), settings.fleet.follow, state)


def follower_trouble(settings: Settings, now: float | None = None) -> str:
    """Returns what is wrong with following the publisher, one sentence; `""` where all is well or none is followed."""
    if not settings.fleet.follow:
        return ""
    now = time.time() if now is None else now
    state = StateFile(fleet_folder(settings).state).read()
    if state.fault is Fault.OK:
        return "" if state.in_force else "the fleet's publisher was not reached yet: the bundled lists are in force"
    since = f"; the lists are those of {int((now - state.made_at) // 3600)} hours ago" if state.made_at else ""
    return f"the fleet's publisher cannot be followed: {state.sentence}{since}"


def _exported(settings: Settings) -> tuple[int, float]:
    try:
        document = json.loads((fleet_folder(settings).export / "state.json").read_bytes())
        return int(document["sequence"]), float(document["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0.0
