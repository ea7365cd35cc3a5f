"""Checks of what the filter shares with other machines."""

from importlib.util import find_spec

from gatewayfilter.config import LogPrivacy
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, note, warning


def gateways(patient: Patient) -> Finding:
    """This gateway is in step with those that share rules with it, where that is wanted."""
    check = "gateways"
    if not patient.settings.sync.url.get_secret_value():
        return fine(check, "No rules are shared with other gateways.")
    if find_spec("redis") is None:
        return error(check, "sync.url needs the extra redis.", "pip install 'gatewayfilter[redis]'")
    if patient.settings.fleet.follow:
        return warning(
            check, "sync.url and fleet.follow are both set.", "rules come from the publisher or from equals: unset one"
        )
    if not patient.running:
        return note(check, "The filter does not run.")
    status = patient.status("sync")
    if not status:
        return error(check, "The process that keeps in step does not run.", "see the log: journalctl -u gatewayfilter")
    if fault := str(status.get("fault", "")):
        return warning(check, f"Not in step with other gateways: {fault}.", "filtering goes on; check sync.url and that Redis")
    count = len(status.get("gateways", ()))
    share = "gateway shares" if count == 1 else "gateways share"
    return fine(check, f"{count} {share} {int(status.get('shared', 0)):,} rules, policies and sources.")


def kafka(patient: Patient) -> Finding:
    """The filter's own decisions reach Kafka, where that is wanted."""
    check, settings = "kafka", patient.settings
    if not settings.kafka.decisions:
        return fine(check, "No decisions are sent to Kafka.")
    if find_spec("confluent_kafka") is None:
        return error(check, "kafka.decisions needs the extra stream.", "pip install 'gatewayfilter[stream]'")
    if settings.log.privacy is LogPrivacy.OFF:
        return warning(check, "Nothing is sent: there is no decision log.", "set log.privacy to full, no-query or host")
    if not patient.running:
        return note(check, "The filter does not run.")
    status = patient.status("decisions")
    if not status:
        return error(check, "The process that sends decisions does not run.", "see the log: journalctl -u gatewayfilter")
    if fault := str(status.get("fault", "")):
        return warning(
            check, f"Kafka does not take decisions: {fault}.", "they wait in the log: check kafka.brokers and the brokers"
        )
    return fine(check, f"Decisions are sent to {settings.kafka.decisions}.")
