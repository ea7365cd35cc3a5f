"""Renewing the certificate authority without a day on which clients distrust the filter.

Two ways. With the **same key** the new certificate has the same name and key and a later end: what it signs is trusted by clients
that have the old certificate, until that one's own end, and by those that have the new one. With a **new key**, needed when the
old one may have leaked, the next authority is made and handed out first, and put into force when the devices have it.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from gatewayfilter.certificates.authority import (
    CA_FILE,
    CertificateAuthority,
    ensure_ca,
    key_and_certificate,
    own_name,
    self_signed,
)
from gatewayfilter.errors import StartupError

NEXT_FILE: Final = "next-ca.pem"
"""Key and certificate of the authority that is handed out but not in force."""
_PREVIOUS: Final = "previous"


def renew_same_key(folder: Path) -> CertificateAuthority:
    """Gives the authority a certificate for another ten years, keeping its key; also one that has expired.

    Raises:
        StartupError: there is none, or it cannot be read or written.
    """
    key, old = _read(folder / CA_FILE)
    _put_in_force(folder, key, self_signed(key, old.subject), old)
    return ensure_ca(folder)


def make_next(folder: Path) -> CertificateAuthority:
    """Makes the next authority with a key of its own, or returns the one that is waiting.

    Raises:
        StartupError: it cannot be read or written.
    """
    path = folder / NEXT_FILE
    if not path.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        # Another name: a device that has both shows which is which.
        certificate = self_signed(key, own_name(f" {datetime.now(UTC):%Y-%m-%d}"))
        _replace(path, key_and_certificate(key, certificate))
    return CertificateAuthority(path, _read(path)[1])


def next_authority(folder: Path) -> CertificateAuthority | None:
    """Returns the authority that waits to be put into force, if there is one."""
    path = folder / NEXT_FILE
    return CertificateAuthority(path, _read(path)[1]) if path.exists() else None


def activate_next(folder: Path) -> CertificateAuthority:
    """Puts the next authority into force. Running workers take it when they are started again.

    Raises:
        StartupError: none is waiting, or it cannot be read or written.
    """
    path = folder / NEXT_FILE
    if not path.exists():
        raise StartupError("no authority is waiting: gatewayfilter ca renew --new-key makes one")
    key, certificate = _read(path)
    _put_in_force(folder, key, certificate, _read(folder / CA_FILE)[1])
    path.unlink()
    return ensure_ca(folder)


def _put_in_force(
    folder: Path, key: CertificateIssuerPrivateKeyTypes, certificate: x509.Certificate, old: x509.Certificate
) -> None:
    previous = folder / _PREVIOUS
    try:
        previous.mkdir(mode=0o700, exist_ok=True)
        _replace(previous / f"{old.serial_number:x}.pem", old.public_bytes(Encoding.PEM))
        _replace(folder / CA_FILE, key_and_certificate(key, certificate))
        for stale in folder.glob("mitmproxy-ca-cert.*"):  # `ensure_ca` makes them anew
            stale.unlink()
    except OSError as error:
        raise StartupError(f"cannot renew the certificate authority in {folder}: {error.strerror}") from error


def _read(path: Path) -> tuple[CertificateIssuerPrivateKeyTypes, x509.Certificate]:
    try:
        raw = path.read_bytes()
        key = load_pem_private_key(raw, None)
        certificate = x509.load_pem_x509_certificates(raw)[0]
    except OSError as error:
        raise StartupError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, IndexError) as error:
        raise StartupError(f"{path} is damaged: it needs a private key and a certificate") from error
    return cast("CertificateIssuerPrivateKeyTypes", key), certificate  # a key that cannot sign fails when it has to


def _replace(path: Path, content: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from error
