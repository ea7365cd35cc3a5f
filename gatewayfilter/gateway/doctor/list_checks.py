"""Checks of lists: subscriptions that fail, and a filter that has next to nothing to filter by."""

import json
from typing import Final

from gatewayfilter.config import bundled_folder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.errors import SnapshotError
from gatewayfilter.gateway.doctor.finding import Finding, Patient, fine, note, warning
from gatewayfilter.sources import Subscriptions

_FAILURES: Final = 3
"""Updates in a row that have to fail before it is a finding: a publisher's server may be down for an hour."""
_OVERDUE_INTERVALS: Final = 3


def subscriptions(patient: Patient) -> Finding:
    """Every subscription is updated when it is due."""
    check = "lists"
    found = _of(patient).all()
    own = [item for item in found if not item.definition.bundled and item.definition.enabled]
    pending = [item for item in own if item.is_pending]
    if pending:
        why = f" ({pending[0].state.error})" if pending[0].state.error else ""
        others = f", and {len(pending) - 1} more" if len(pending) > 1 else ""
        return warning(
            check,
            f"{pending[0].definition.name} was never fetched{why}{others}.",
            "gatewayfilter run tries again while it runs; or gatewayfilter source update",
        )
    failing = [item for item in own if item.state.failures >= _FAILURES]
    if failing:
        item = max(failing, key=lambda item: item.state.failures)
        others = f", and {len(failing) - 1} more fail" if len(failing) > 1 else ""
        return warning(
            check,
            f"{item.definition.name} failed {item.state.failures} times ({item.state.error}){others}; "
            "the last good copy is in use.",
            "gatewayfilter source status; gatewayfilter source update NAME; gatewayfilter source remove NAME",
        )
    late = [item for item in own if item.next_due_at and patient.now - item.next_due_at > _OVERDUE_INTERVALS * 86_400]
    if late:
        return warning(
            check,
            f"{late[0].definition.name} was due {(patient.now - late[0].next_due_at) / 86_400:.0f} days ago.",
            "gatewayfilter run updates lists while it runs; or gatewayfilter source update",
        )
    return fine(check, f"{len(own)} subscriptions, none of which fails." if own else "There are no subscriptions.")


def protection(patient: Patient) -> Finding:
    """There is more to filter by than the starter lists."""
    check = "protection"
    subscribed = [item for item in _of(patient).all() if not item.definition.bundled and item.definition.enabled]
    if not all(item.is_pending for item in subscribed):
        return fine(check, "Lists are subscribed to.")
    try:
        snapshot, _ = SnapshotFolder(patient.settings.data_dir / "snapshots").open_newest(verify=False)
    except SnapshotError:
        return note(check, "There is no snapshot yet.")
    rules = snapshot.info.manual_rules
    snapshot.close()
    own = f" and {rules:,} of your own rules" if rules else ""
    return warning(
        check,
        f"Only the starter lists{own} are on: most harmful sites are blocked only after their pages were judged.",
        "gatewayfilter setup; or gatewayfilter source add --defaults",
    )


def fleet(patient: Patient) -> Finding:
    """The fleet's publisher, where one is followed, can be followed."""
    check = "fleet"
    if not patient.settings.fleet.follow:
        return fine(check, "No publisher is followed.")
    try:
        state = json.loads((patient.settings.data_dir / "fleet" / "follower.json").read_bytes())
        fault, sentence, in_force = str(state["fault"]), str(state["sentence"]), int(state["in_force"])
        hours = (patient.now - float(state["made_at"])) / 3600
    except (OSError, ValueError, KeyError, TypeError):
        fault, sentence, in_force, hours = "", "it was not polled yet", 0, 0.0
    if fault == "ok":
        return fine(check, f"The publisher's manifest {in_force} is in force, made {hours:.0f} hours ago.")
    lists = f"the lists of {hours:.0f} hours ago are in force" if in_force else "the bundled lists are in force"
    return warning(check, f"The publisher cannot be followed: {sentence}; {lists}.", "gatewayfilter fleet status; fleet pull")


def _of(patient: Patient) -> Subscriptions:
    return Subscriptions(patient.settings.data_dir / "sources", patient.settings.sources, bundled_folder())
