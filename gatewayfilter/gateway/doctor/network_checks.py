"""Checks of the network: port, firewall, forwarding, IPv6, QUIC, DNS."""

import http.client
import shutil
import socket
import threading
from typing import Final

from gatewayfilter.addresses.links import lan_address
from gatewayfilter.addresses.rtnetlink import read_links
from gatewayfilter.config import split_address
from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.control import Gateway, GatewayState
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, note, warning
from gatewayfilter.gateway.nft import Kernel
from gatewayfilter.gateway.plan import GatewayPlan, make_plan
from gatewayfilter.gateway.runtime_state import RuntimeStateFile

_PATIENCE_S: Final = 3.0
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_UP: Final = "sudo gatewayfilter gateway up"


def port(patient: Patient) -> Finding:
    """The filter answers on its port; while it does not run, the port is free."""
    listen = str(patient.status("supervisor").get("listen", patient.settings.proxy.listen))
    host, number = split_address(listen)
    if not patient.running:
        return _free(host, number)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared
    try:
        connection = http.client.HTTPConnection(host, number, timeout=_PATIENCE_S)
        connection.request("GET", "/through.svg")
        ours = connection.getresponse().getheader("x-gatewayfilter") is not None
        connection.close()
    except (OSError, http.client.HTTPException) as fault:
        return error("port", f"The filter runs, but {listen} does not answer: {fault}.", "see the log; is a firewall in between?")
    if not ours:
        return error("port", f"Something else than the filter answers on {listen}.", "set proxy.listen to a free port")
    return fine("port", f"The filter answers on {listen}.")


def reach(patient: Patient) -> Finding:
    """Other devices can reach the filter."""
    host, number = split_address(str(patient.status("supervisor").get("listen", patient.settings.proxy.listen)))
    if host not in _LOOPBACK:
        return fine("reach", f"Other devices reach the filter on {host}.")
    try:
        lan = lan_address(read_links())
    except OSError:
        lan = ""
    return note(
        "reach",
        f"Only this machine can use the filter: it listens on {host}.",
        f"for other devices: gatewayfilter run --listen {lan or 'ADDRESS'}:{number}, or set proxy.listen",
    )


def _free(host: str, number: int) -> Finding:
    if number == 0:
        return fine("port", "A free one is taken at the start.")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, number))
        except OSError as fault:
            mend = "set proxy.listen to an address of this machine and a free port; ss -ltnp shows who has it"
            return error("port", f"The filter does not run, and {host} port {number} cannot be taken: {fault.strerror}.", mend)
    return fine("port", f"Port {number} is free for the filter, which does not run.")


def _plan(patient: Patient) -> GatewayPlan | GatewayError | None:
    """Returns the plan, why there is none, or `None` where this machine is no gateway."""
    if not patient.transparent and not patient.settings.gateway.lan:
        return None
    try:
        return make_plan(patient.settings)
    except GatewayError as fault:
        return fault


def firewall(patient: Patient) -> Finding:
    """The kernel has the planned rules."""
    plan = _plan(patient)
    if plan is None:
        return note("firewall", "This machine is no gateway: devices are told of the proxy.")
    if isinstance(plan, GatewayError):
        return error("firewall", f"There is no ruleset: {plan}.", "gatewayfilter config show gateway")
    if shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return error("firewall", "The command nft is missing.", "install the package nftables")
    try:
        status = Gateway(plan, Kernel(), RuntimeStateFile()).status()
    except GatewayError as fault:
        return note("firewall", f"It cannot be looked at: {fault}.", "sudo gatewayfilter doctor")
    if status.state is GatewayState.DOWN:
        return error("firewall", "The rules are not loaded: devices go past the filter.", _UP)
    if status.state is not GatewayState.UP or status.problems:
        words = status.problems[0] if status.problems else f"the rules are {status.state}"
        return error("firewall", f"{words[0].upper()}{words[1:]}.", _UP)
    return fine("firewall", f"The rules are loaded; {status.redirected:,} connections were redirected.")


def forwarding(patient: Patient) -> Finding:
    """Forwarding is enabled on a gateway."""
    if _plan(patient) is None:
        return note("forwarding", "This machine is no gateway.")
    switches = {"IPv4": "net/ipv4/ip_forward", "IPv6": "net/ipv6/conf/all/forwarding"}
    kernel = Kernel()
    off = [family for family, name in switches.items() if kernel.switch(name) == "0"]
    if off:
        return error("forwarding", f"The kernel does not forward {' and '.join(off)}.", _UP)
    return fine("forwarding", "The kernel forwards.")


def ipv6(patient: Patient) -> Finding:
    """If devices have IPv6, the filter covers it."""
    host, _ = split_address(patient.settings.proxy.listen)
    if not _has_global_ipv6(patient):
        return fine("IPv6", "This machine has no global IPv6 address, so there is no IPv6 way past it.")
    if patient.transparent and ":" not in host:
        return warning(
            "IPv6",
            "IPv6 web traffic of the LAN is refused: the filter listens for IPv4 alone.",
            'set proxy.listen to "[::]:8080"',
        )
    if not patient.transparent and not patient.settings.gateway.lan:
        return note("IPv6", "Devices reach the internet by IPv6 too: what is not told of the proxy goes past it.")
    return fine("IPv6", "The filter serves IPv6.")


def _has_global_ipv6(patient: Patient) -> bool:
    try:
        lines = (patient.proc / "net" / "if_inet6").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any(line.split()[3] == "00" and line[:1] in "23" for line in lines)


def quic(patient: Patient) -> Finding:
    """QUIC, which the filter cannot read, is rejected."""
    memory = RuntimeStateFile().read()
    if memory is not None and memory.quic_rejected:
        return fine("QUIC", "The gateway refuses it.")
    if patient.transparent and not patient.settings.gateway.reject_quic:
        return warning(
            "QUIC", "It is let through: pages over HTTP/3 go past the filter.", f"gateway.reject_quic = true, then {_UP}"
        )
    if patient.transparent:
        return error("QUIC", "Nothing refuses it: pages over HTTP/3 go past the filter.", _UP)
    return note("QUIC", "Browsers that use a proxy do not use it; other apps may.", f"gateway.lan, then {_UP}, refuses it to all")


def dns(patient: Patient, *, name: str = "example.com") -> Finding:
    """Names can be resolved: the filter does it for all its clients."""
    del patient
    found: list[str] = []

    def ask() -> None:
        try:
            found.append(str(socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)[0][4][0]))
        except OSError as fault:
            found.append(f"!{fault.strerror}")

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE_S)
    mend = "see /etc/resolv.conf: the filter needs a DNS server that answers"
    if not found:
        return error("DNS", f"{name} was not looked up within {_PATIENCE_S:.0f} s.", mend)
    if found[0].startswith("!"):
        return error("DNS", f"{name} cannot be looked up: {found[0][1:].lower()}.", mend)
    return fine("DNS", f"{name} is looked up.")
