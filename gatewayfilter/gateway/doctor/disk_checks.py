"""Checks of files on disk: folders, settings, certificate authority, database, lists."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from errno import EROFS
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.errors import SnapshotError, StoreError
from gatewayfilter.gateway.doctor.finding import Finding, Patient, error, fine, mode_of, note, warning
from gatewayfilter.store import schema_status

LOW_MB: Final = 500
"""Room for a snapshot of five million entries and the next one beside it."""
EMPTY_MB: Final = 50
_RENEW_DAYS: Final = 60
_STALE_INTERVALS: Final = 3
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def state_folder(patient: Patient) -> Finding:
    """The state folder is there, writable, and private."""
    folder = patient.settings.data_dir
    if not folder.is_dir():
        return note("state folder", f"There is no {folder} yet.", "gatewayfilter run makes it; or set data_dir (--data-dir)")
    try:
        mode = mode_of(folder)
        probe = folder / f".doctor-{int(patient.now)}"
        probe.touch()
        probe.unlink()
    except OSError as fault:
        mend = "mount it for writing" if fault.errno == EROFS else "run this as the user of the filter, or chown it"
        return error("state folder", f"{folder} cannot be used: {fault.strerror}.", mend)
    if mode & 0o077:
        return error("state folder", f"{folder} is open to others (mode {mode:o}).", f"chmod 700 {folder}")
    return fine("state folder", f"{folder} is writable and private.")


def config_file(patient: Patient) -> Finding:
    """The configuration is writable by its owner only, and readable by no other user if it contains a password."""
    path = patient.config_file
    if path is None:
        return note("configuration", "No configuration file is in use.")
    try:
        mode = mode_of(path)
    except OSError as fault:
        return error("configuration", f"{path} cannot be read: {fault.strerror}.", "run this as the user of the filter")
    if mode & 0o022:
        return error("configuration", f"{path} can be written by others (mode {mode:o}).", f"chmod go-w {path}")
    settings = patient.settings
    secret = "@" in settings.store.url
    if secret and mode & 0o004:
        return error("configuration", f"{path} holds a password and can be read by everybody.", f"chmod o-r {path}")
    return fine("configuration", f"{path} is changed by its owner alone.")


def certificate_authority(patient: Patient) -> Finding:
    """The certificate authority exists, matches its key, is private, and does not expire soon."""
    check, folder = "certificate authority", patient.settings.data_dir / "ca"
    path = folder / "mitmproxy-ca.pem"
    if not path.exists():
        return note(check, "There is none yet.", "gatewayfilter run makes it")
    try:
        raw = path.read_bytes()
        certificate = x509.load_pem_x509_certificates(raw)[0]
        key = load_pem_private_key(raw, None)
        loose = [item for item in (folder, *folder.glob("mitmproxy-ca.p*")) if mode_of(item) & 0o077]
    except (OSError, ValueError, TypeError, IndexError) as fault:
        return error(check, f"{path} cannot be used: {fault}.", "restore ca/ from a backup, or remove it and install the new one")
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if certificate.public_key().public_bytes(*form) != key.public_key().public_bytes(*form):
        return error(check, "Its key and its certificate do not belong together.", "restore ca/ from a backup")
    if loose:
        return error(check, f"{loose[0]} is open to others: who reads the key can pose as any site.", f"chmod -R go= {folder}")
    left = certificate.not_valid_after_utc - datetime.fromtimestamp(patient.now, UTC)
    until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    if left <= timedelta(0):
        return error(check, f"It expired on {until}.", "gatewayfilter ca renew, then install it on the devices")
    if left < timedelta(days=_RENEW_DAYS):
        return warning(
            check, f"It expires on {until}, in {left.days} days.", "gatewayfilter ca renew, then install it on the devices"
        )
    return fine(check, f"It is private and valid until {until}.")


def disk(patient: Patient, *, low_mb: float = LOW_MB, empty_mb: float = EMPTY_MB) -> Finding:
    """There is room for the next snapshot and the log."""
    folder = patient.settings.data_dir
    while not folder.exists():
        folder = folder.parent
    free_mb = shutil.disk_usage(folder).free / 1e6
    mend = "make room; lower log.retention_mb; gatewayfilter log purge --before 7d"
    if free_mb < empty_mb:
        return error("disk", f"{free_mb:,.0f} MB are free: nothing is learned, logged or published any more.", mend)
    if free_mb < low_mb:
        return warning("disk", f"{free_mb:,.0f} MB are free: the next snapshot may not fit.", mend)
    return fine("disk", f"{free_mb:,.0f} MB are free.")


def snapshot(patient: Patient) -> Finding:
    """A valid snapshot exists, not from the future, and not older than the lists' interval allows."""
    settings = patient.settings
    mend = "gatewayfilter publish"
    try:
        found, refused = SnapshotFolder(settings.data_dir / "snapshots").open_newest()
    except SnapshotError as fault:
        if not settings.data_dir.is_dir():
            return note("snapshot", "There is none yet.", "gatewayfilter run makes it")
        return error("snapshot", f"{str(fault)[:1].upper()}{str(fault)[1:]}.", mend)
    created = found.info.created_at
    found.close()
    if refused:
        return warning("snapshot", f"A damaged one was passed over: {refused[0]}.", mend)
    age_h = (patient.now - created) / 3600
    outside = any((settings.data_dir / "sources").glob("*/source.json"))
    if outside and age_h > _STALE_INTERVALS * max(settings.sources.interval_h, 24):
        return warning(
            "snapshot", f"It is {age_h / 24:.0f} days old.", "gatewayfilter source status shows which list does not come"
        )
    return fine("snapshot", f"It is good and {max(age_h, 0):.0f} h old.")


def clock(patient: Patient) -> Finding:
    """The clock is not earlier than files made in the past: certificates and expiry depend on it."""
    settings = patient.settings
    mend = "set the clock: timedatectl set-ntp true"
    made = (
        [path.stat().st_mtime for path in (settings.data_dir / "snapshots").glob("*.gfs")] if settings.data_dir.is_dir() else []
    )
    newest = max(made, default=0.0)
    if newest > patient.now + 120:
        return error("clock", f"It is {(newest - patient.now) / 3600:.1f} h behind the last snapshot.", mend)
    try:
        raw = (settings.data_dir / "ca" / "mitmproxy-ca-cert.pem").read_bytes()
        begins = x509.load_pem_x509_certificate(raw).not_valid_before_utc
    except (OSError, ValueError):
        begins = None
    if begins is not None and datetime.fromtimestamp(patient.now, UTC) < begins:
        return error("clock", f"It stands before the certificate authority's beginning ({begins:%Y-%m-%d}).", mend)
    return fine("clock", f"It says {datetime.fromtimestamp(patient.now, UTC):%Y-%m-%d %H:%M} UTC.")


def database(patient: Patient) -> Finding:
    """The database can be read, is intact, and of this program's version."""
    settings = patient.settings
    url = settings.store_url
    if url.startswith("sqlite"):
        path = settings.data_dir / "gatewayfilter.sqlite3" if not settings.store.url else None
        file = path or url.partition("///")[2]
        if path is not None and not path.exists():
            return note("database", "There is none yet.", "gatewayfilter run makes it")
        try:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)) as connection:
                answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.Error as fault:
            if getattr(fault, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:  # the low octet; the others are details
                mend = "look at owner and mode of the file and of its folder, and at the disk: is it mounted for writing?"
                return error("database", f"It cannot be read: {fault}.", mend)
            answer = str(fault)
        if answer != "ok":
            return error(
                "database", f"It is damaged: {answer.splitlines()[0]}.", "stop the filter, then: gatewayfilter db repair"
            )
    try:
        found = schema_status(url)
    except StoreError as fault:
        return error("database", f"{fault}.", "see store.url; filtering goes on without learning or logging")
    if found.is_newer:
        mend = "update GatewayFilter, or go back to the copy that was made before the upgrade: gatewayfilter db rollback"
        return error("database", f"It is at version {found.current}, newer than this program's {found.head}.", mend)
    if found.current != found.head:
        return warning("database", f"It is at version {found.current or 'none'}, not {found.head}.", "gatewayfilter db upgrade")
    return fine("database", f"It is whole and at version {found.head}.")
