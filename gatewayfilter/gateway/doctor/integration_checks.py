"""Checks of the integration with other proxies and resolvers."""

import socket
import stat
from ipaddress import ip_network
from typing import Final

from gatewayfilter.config import split_address
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, note, warning

_SILENT_S: Final = 30.0
_PATIENCE_S: Final = 2.0
"""For a connection on this machine."""


def squid_helper(patient: Patient) -> Finding:
    """The socket of squid's helpers is served, and its group may use it."""
    check = "squid helper"
    path, group = patient.settings.helper.socket, patient.settings.helper.group
    if path is None:
        return fine(check, "No helper of squid is served (helper.socket).")
    if not patient.status("integration") and not patient.running:
        return note(check, "The filter does not run.", "gatewayfilter run, or gatewayfilter helper daemon")
    mend = "see the log for the reason: journalctl -u gatewayfilter"
    try:
        found = path.stat()
    except OSError as fault:
        return error(check, f"{path} cannot be reached: {fault.strerror}.", mend)
    if not stat.S_ISSOCK(found.st_mode) or not _answers(str(path)):
        return error(check, f"Nothing serves {path}: squid's helpers allow or block by themselves (proxy.on_error).", mend)
    if group and not found.st_mode & stat.S_IWGRP:
        return error(check, f"The group {group} may not use {path}.", f"chmod 660 {path}")
    if patient.now - float(patient.status("integration").get("at", 0)) > _SILENT_S:
        return error(check, "The process that decides for squid has written no status for a while.", mend)
    return fine(check, f"{path} is served{f' for the group {group}' if group else ''}.")


def icap(patient: Patient) -> Finding:
    """The ICAP server listens, and serves no public network."""
    check, listen = "icap", patient.settings.icap.listen
    if not listen:
        return fine(check, "No ICAP client is served (icap.listen).")
    if not patient.status("integration"):
        return note(check, "The process that decides for other proxies does not run.", "gatewayfilter run")
    host, port = split_address(listen)
    try:
        socket.create_connection((_reachable(host), port), _PATIENCE_S).close()
    except OSError as fault:
        return error(
            check, f"Nothing answers on {listen}: {fault.strerror or fault}.", "see the log: journalctl -u gatewayfilter"
        )
    public = [network for network in patient.settings.icap.allow_networks if not ip_network(network).is_private]
    if public:
        return warning(check, f"Public networks may use it: {', '.join(public)}.", "icap.allow_networks: your proxies alone")
    return fine(check, f"It listens on {listen}.")


def zone(patient: Patient) -> Finding:
    """The response policy zone is kept, and resolvers take notice of its changes."""
    check, rpz = "response policy zone", patient.settings.rpz
    if not rpz.listen and rpz.file is None:
        return fine(check, "No zone is kept for resolvers (rpz.listen, rpz.file).")
    counters = patient.status("integration").get("counters")
    if counters is None:
        return note(check, "The process that keeps the zone does not run.", "gatewayfilter run")
    if counters.get("rpz_file_failures"):
        return error(check, f"{rpz.file} was not written, or rpz.reload failed.", "see the log: journalctl -u gatewayfilter")
    if counters.get("rpz_notify_failed", 0) > counters.get("rpz_notified", 0):
        words = "Resolvers do not answer NOTIFY, and follow changes after a minute."
        return warning(check, words, "rpz.notify, and allow-notify in the resolver")
    if rpz.listen and not counters.get("rpz_transfers"):
        return note(check, "No resolver has transferred the zone yet.", "docs/integration.md has the resolver's configuration")
    return fine(check, f"Version {counters.get('rpz_changes', 0)} of this run is kept.")


def _reachable(host: str) -> str:
    """Returns the address by which a listener is reached from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PATIENCE_S)
        try:
            probe.connect(path)
        except PermissionError:
            return True  # another user's, which is how it should be
        except OSError:
            return False
    return True
