"""Checks of processes: whether they run, send heartbeats, and may open enough files."""

import resource
from typing import Final

from gatewayfilter import compiled
from gatewayfilter.config import RenderRule
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, note, warning

_SILENT_S: Final = 30.0
"""A worker writes its status every second, later under load."""
_LEARNER_SILENT_S: Final = 300.0
"""The learner writes no status while it publishes, which takes a minute for millions of entries."""
ENOUGH_FILES: Final = 4096
"""500 clients with some connections each, two files a connection."""


def workers(patient: Patient) -> Finding:
    """All proxy workers serve, with a recent heartbeat."""
    supervisor = patient.status("supervisor")
    if not supervisor:
        return note("workers", "The filter does not run.", "gatewayfilter run, or systemctl start gatewayfilter")
    names = [name for name in supervisor.get("children", {}) if name.startswith("proxy-")]
    silent = [name for name in names if not _heard(patient, name, _SILENT_S) or patient.status(name).get("state") != "serving"]
    mend = "see the log for the reason: journalctl -u gatewayfilter"
    if silent:
        return error("workers", f"{', '.join(silent)} of {len(names)} does not serve.", mend)
    restarts = sum(int(child.get("restarts", 0)) for child in supervisor["children"].values())
    stalls = sum(int(child.get("stalls", 0)) for child in supervisor["children"].values())
    if restarts:
        hung = f", {stalls} of them because a worker hung" if stalls else ""
        return warning("workers", f"All {len(names)} serve, after {restarts} restarts{hung}.", mend)
    return fine("workers", f"{len(names)} serve.")


def learner(patient: Patient) -> Finding:
    """The learner is alive: it fetches, classifies, updates lists and publishes."""
    if not patient.running:
        return note("learner", "The filter does not run.")
    if not _heard(patient, "learner", _LEARNER_SILENT_S):
        return error(
            "learner",
            "It does not run: filtering goes on, nothing is learned and lists grow old.",
            "see the log: journalctl -u gatewayfilter",
        )
    state = patient.status("learner").get("state", "")
    return fine("learner", f"It runs ({state}).")


def _heard(patient: Patient, name: str, within_s: float) -> bool:
    return patient.now - float(patient.status(name).get("at", 0)) <= within_s


def compiled_code(patient: Patient) -> Finding:
    """The page readers are compiled: in Python they take several times as long."""
    del patient
    missing = {name.rpartition("._")[2]: why for name, why in compiled.in_use().items() if why}
    if not missing:
        return fine("compiled code", f"All {len(compiled.MODULES)} compiled modules are in use.")
    if compiled.is_forbidden():
        return note(
            "compiled code", "Python reads the pages: GATEWAYFILTER_PURE is set.", "unset it for two to eight times the speed"
        )
    words = ", ".join(f"{name} ({why})" for name, why in missing.items())
    return note(
        "compiled code",
        f"Python does some of the work, more slowly: {words}.",
        "install a C compiler and Python's headers (apt-get install gcc libc6-dev python3-dev), then install again, or make env",
    )


def rendering(patient: Patient) -> Finding:
    """The user that would run scripts of pages is not root, for which Chromium refuses its sandbox."""
    check = "rendering"
    if patient.settings.crawl.render is RenderRule.OFF:
        return fine(check, "Pages are judged without their scripts (crawl.render).")
    learner = patient.status("learner")
    if not learner:
        return note(check, "The learner does not run.")
    if _owner(patient, int(learner["pid"])) == 0:
        words = "No page is rendered: the filter runs as root, to whom Chromium refuses its sandbox."
        return warning(check, words, "run the filter as a user of its own (docs/deployment.md), or set crawl.render to off")
    return fine(check, "Scripts of pages run in Chromium's sandbox.")


def _owner(patient: Patient, pid: int) -> int | None:
    try:
        return (patient.proc / str(pid)).stat().st_uid
    except OSError:
        return None


def file_limit(patient: Patient) -> Finding:
    """The filter may open enough files: a client's connection takes two."""
    mend = "LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 before gatewayfilter run"
    pid = patient.status("proxy-0").get("pid")
    allowed, whose = _limit_of(patient, int(pid)) if pid else _own_limit(), "a worker" if pid else "this user"
    if allowed is None:
        return note(
            "file limit", "The limit cannot be read: another user's process.", "run this as root or as the user of the filter"
        )
    if allowed < ENOUGH_FILES:
        return warning("file limit", f"{whose} may open {allowed:,} files, which {allowed // 2:,} connections use up.", mend)
    return fine("file limit", f"{whose} may open {allowed:,} files.")


def _own_limit() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # a worker raises its soft limit to this by itself
    return 1 << 20 if hard == resource.RLIM_INFINITY else hard


def _limit_of(patient: Patient, pid: int) -> int | None:
    try:
        for line in (patient.proc / str(pid) / "limits").read_text(encoding="ascii").splitlines():
            if line.startswith("Max open files"):
                soft = line.split()[3]
                return 1 << 20 if soft == "unlimited" else int(soft)
    except (OSError, ValueError, IndexError):
        pass
    return None
