"""Checks of what the filter shares with other machines."""

from importlib.util import find_spec

from gatewayfilter.config import LogPrivacy
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, note, warning


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
