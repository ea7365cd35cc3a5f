"""Checks of the machine: owner of the state folder, memory, trust in the authority, systemd units, route of the LAN."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.control import Gateway, GatewayState
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, note, warning
from gatewayfilter.gateway.nft import Kernel
from gatewayfilter.gateway.plan import make_plan
from gatewayfilter.gateway.runtime_state import RuntimeStateFile

_DER: Final = Encoding.DER
_BASE_MB: Final = 210
_WORKER_MB: Final = 70
"""docs/deployment.md: 280 MB at rest with two workers, and some 70 MB for each further one."""
_UNITS: Final = ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
_WANTED: Final = "etc/systemd/system/multi-user.target.wants"
_SEEN_FILES: Final = 2000
"""A folder of millions of spooled pages is not walked to its end."""


def owner(patient: Patient) -> Finding:
    """All files of the state folder belong to its owner: a command as root leaves ones that the filter cannot read."""
    check, folder = "owner", patient.settings.data_dir
    if not folder.is_dir():
        return note(check, f"There is no {folder} yet.")
    try:
        user = folder.stat().st_uid
        foreign = next((path for path in _below(folder) if path.lstat().st_uid != user), None)
    except OSError as fault:
        return error(check, f"{folder} cannot be read: {fault.strerror}.", "run this as root or as the user of the filter")
    if foreign is not None:
        mend = f"chown -R --reference={folder} {folder}; run commands as the user of the filter"
        return error(check, f"{foreign.name} in {folder} belongs to another user than the folder.", mend)
    pid = patient.status("supervisor").get("pid")
    if pid and (patient.proc / str(pid)).stat().st_uid not in {user, 0}:
        return error(check, f"The filter runs as another user than the owner of {folder}.", "see User= of the unit, or chown")
    return fine(check, f"All belongs to the user {user}.")


def _below(folder: Path) -> Iterator[Path]:
    seen = 0
    for path in folder.rglob("*"):
        if (seen := seen + 1) > _SEEN_FILES:
            return
        yield path


def memory(patient: Patient) -> Finding:
    """The machine has the memory that the processes take."""
    lines = (patient.proc / "meminfo").read_text(encoding="ascii").splitlines()
    sizes = {name: int(rest.split()[0]) // 1000 for name, _, rest in (line.partition(":") for line in lines)}
    workers = patient.settings.proxy.workers or sum(
        line.startswith("processor") for line in (patient.proc / "cpuinfo").read_text(encoding="utf-8").splitlines()
    )
    needed, total, free = _BASE_MB + _WORKER_MB * workers, sizes["MemTotal"], sizes.get("MemAvailable", sizes["MemTotal"])
    mend = "more memory; fewer workers (proxy.workers); smaller lists (gatewayfilter source status)"
    if total < needed:
        return error("memory", f"The machine has {total:,} MB, the filter with {workers} workers takes some {needed:,}.", mend)
    if free < (_WORKER_MB if patient.running else needed):
        return warning("memory", f"{free:,} of {total:,} MB are free.", mend)
    return fine("memory", f"{free:,} of {total:,} MB are free.")


def trust(patient: Patient) -> Finding:
    """The certificate authority is one that this machine trusts; whether devices do is seen on them alone."""
    check, path = "trust", patient.settings.data_dir / "ca" / "mitmproxy-ca-cert.pem"
    try:
        wanted = x509.load_pem_x509_certificate(path.read_bytes()).public_bytes(_DER)
    except (OSError, ValueError):
        return note(check, "There is no certificate authority yet.")
    store = patient.trusted if patient.trusted is not None else ssl.get_default_verify_paths().cafile
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cafile=store)
        trusted = context.get_ca_certs(binary_form=True)
    except (OSError, ssl.SSLError):
        trusted = []
    if wanted in trusted:
        return fine(check, "This machine trusts the certificate authority.")
    return note(
        check,
        "Programs of this machine do not trust the certificate authority; devices that use the filter must.",
        "open the filter's address in a browser of each device: docs/onboarding.md",
    )


def service(patient: Patient) -> Finding:
    """Where systemd has the units, they are enabled: else nothing filters after the next start of the machine."""
    check, root = "service", patient.root
    if not (root / "run/systemd/system").is_dir():
        return note(check, "This machine is not run by systemd.")
    wanted = ["gatewayfilter", *(["gatewayfilter-gateway"] if patient.transparent or patient.settings.gateway.lan else [])]
    known = [name for name in wanted if any((root / folder / f"{name}.service").exists() for folder in _UNITS)]
    if "gatewayfilter" not in known:
        return note(check, "No unit is installed: the filter runs only while you run it.", "docs/install.md")
    missing = [name for name in wanted if name not in known]
    disabled = [name for name in known if not (root / _WANTED / f"{name}.service").is_symlink()]
    if missing or disabled:
        names = " ".join(missing + disabled)
        return warning(check, f"Not started with the machine: {names}.", f"sudo systemctl enable --now {names}")
    return fine(check, "It starts with the machine.")


def route(patient: Patient) -> Finding:
    """The machine has a way to the internet; on a gateway, the LAN's traffic comes through it."""
    check = "route"
    routes = [line.split() for line in _lines(patient.proc / "net/route")[1:]]
    routes6 = [line.split() for line in _lines(patient.proc / "net/ipv6_route")]
    has_default = any(line[1] == "00000000" and line[7] == "00000000" for line in routes) or any(
        line[0] == "0" * 32 and line[1] == "00" and line[-1] != "lo" for line in routes6
    )
    if not has_default:
        return error(check, "This machine has no default route: the filter reaches nothing.", "ip route add default via ROUTER")
    if not patient.transparent:
        return fine(check, "There is a default route.")
    try:
        status = Gateway(make_plan(patient.settings), Kernel(), RuntimeStateFile()).status()
    except GatewayError as fault:
        return note(
            check, f"There is a default route; what devices use cannot be looked at: {fault}.", "sudo gatewayfilter doctor"
        )
    if status.state is GatewayState.UP and not status.redirected:
        return warning(
            check,
            "No connection of the LAN has come through this machine: devices go another way.",
            "let the DHCP server announce this machine as the router (option 3), or put it between router and LAN",
        )
    return fine(check, "There is a default route, and devices come through this machine.")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
