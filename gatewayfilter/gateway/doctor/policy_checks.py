"""Checks of messages to the operator, and of the catalogue of services."""

from contextlib import closing
from datetime import UTC, datetime

from gatewayfilter.config import bundled_folder
from gatewayfilter.errors import ListError
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, note, warning
from gatewayfilter.sources.services import OWN_NAME, load_services
from gatewayfilter.store import Store, schema_status


def messages(patient: Patient) -> Finding:
    """Every channel of messages to the operator accepts them."""
    check = "messages"
    names = patient.settings.notify.channel_names
    if not names:
        return fine(check, "No channel is set up; requests wait in gatewayfilter request list.")
    status = schema_status(patient.settings.store_url)
    if status.current != status.head:
        return note(check, "The database has another version; see there.")
    with closing(Store.open(patient.settings.store_url)) as store:
        states = store.notifications.channels(names)
    failing = {name: state for name, state in states.items() if state.failures}
    for name, state in failing.items():
        since = datetime.fromtimestamp(state.failing_since, UTC)
        why = f" ({state.error})" if state.error else ""
        others = f"; {len(failing) - 1} more fail" if len(failing) > 1 else ""
        return warning(
            check,
            f"{name} failed {state.failures} times since {since:%Y-%m-%d %H:%M} UTC{why}{others}.",
            "gatewayfilter notify test; then correct the section notify of the settings",
        )
    return fine(check, f"{', '.join(names)}: no message failed.")


def services(patient: Patient) -> Finding:
    """The catalogue of services, with the operator's own, can be read."""
    check = "services"
    own = patient.settings.data_dir / OWN_NAME
    try:
        found = load_services(bundled_folder() / OWN_NAME, own)
    except ListError as fault:
        return error(
            check,
            f"{fault}: a filter that starts now uses the bundled catalogue alone.",
            "gatewayfilter service list; edit the file",
        )
    number = sum(service.own for service in found.values())
    return fine(check, f"{len(found)} services, {number} of them your own.")
