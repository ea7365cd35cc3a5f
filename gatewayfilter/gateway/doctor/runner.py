"""The runner of the checks, and their order."""

from collections.abc import Iterator
from typing import Final

from gatewayfilter.gateway.doctor import (
    disk_checks,
    host_checks,
    integration_checks,
    list_checks,
    network_checks,
    policy_checks,
    process_checks,
    sharing_checks,
)
from gatewayfilter.gateway.doctor.finding import Check, Finding, Patient, error

CHECKS: Final[tuple[Check, ...]] = (
    disk_checks.state_folder,
    host_checks.owner,
    disk_checks.config_file,
    disk_checks.disk,
    host_checks.memory,
    disk_checks.clock,
    disk_checks.certificate_authority,
    host_checks.trust,
    disk_checks.database,
    disk_checks.snapshot,
    list_checks.subscriptions,
    list_checks.protection,
    list_checks.fleet,
    sharing_checks.gateways,
    sharing_checks.kafka,
    policy_checks.services,
    policy_checks.messages,
    host_checks.service,
    process_checks.workers,
    process_checks.learner,
    process_checks.rendering,
    process_checks.file_limit,
    process_checks.compiled_code,
    integration_checks.squid_helper,
    integration_checks.icap,
    integration_checks.zone,
    network_checks.port,
    network_checks.reach,
    host_checks.route,
    network_checks.firewall,
    network_checks.forwarding,
    network_checks.ipv6,
    network_checks.quic,
    network_checks.dns,
)
"""Each check comes after those that it depends on."""


def examine(patient: Patient) -> Iterator[Finding]:
    """Yields the finding of each check. An exception in a check is a finding too."""
    for check in CHECKS:
        yield examine_by(check, patient)


def examine_by(check: Check, patient: Patient) -> Finding:
    """Returns the finding of one check; an exception in it is a finding too."""
    try:
        return check(patient)
    except Exception as fault:  # noqa: BLE001  the doctor's own outermost loop: the other checks go on
        return error(name_of(check), f"The check itself failed: {type(fault).__name__}: {fault}.", "please report this")


def name_of(check: Check) -> str:
    """Returns the name of a check."""
    return check.__name__.replace("_", " ")
