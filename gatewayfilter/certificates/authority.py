"""The certificate authority that signs the certificates which clients see.

It lies in mitmproxy's own files, so that a stock mitmdump with the same `confdir` uses it too. Its key is EC P-256: a leaf
certificate is made in 0.2 ms instead of 1.1 ms with mitmproxy's default RSA (docs/benchmarks.md).
"""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gatewayfilter.certificates.mobileconfig import mobileconfig
from gatewayfilter.errors import StartupError
from gatewayfilter.private_files import make_private

type CaFormat = Literal["pem", "der", "p12", "mobileconfig"]

CA_FILE: Final = "mitmproxy-ca.pem"
"""Key and certificate; the other files of the folder are made from it."""
CERTIFICATE_FILE: Final = "mitmproxy-ca-cert.pem"
"""The certificate without its key."""
_EXPORTS: Final[dict[str, CaFormat]] = {
    CERTIFICATE_FILE: "pem",
    "mitmproxy-ca-cert.cer": "pem",
    "mitmproxy-ca-cert.p12": "p12",
}
_NAME: Final = b"mitmproxy"
_VALID_FOR: Final = timedelta(days=3650)
RENEW_WITHIN_DAYS: Final = 60
"""From when on its end is warned of: devices need time to get the next certificate."""
_BACKDATED: Final = timedelta(days=2)
"""Clients with slow clocks accept a new CA at once."""


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """A usable CA.

    Attributes:
        path: the PEM file with key and certificate.
        certificate: the certificate that clients must trust.
    """

    path: Path
    certificate: x509.Certificate

    @property
    def certificate_path(self) -> Path | None:
        """The PEM file with the certificate alone, to install on devices; `None` for an authority that is not in force yet."""
        return self.path.with_name(CERTIFICATE_FILE) if self.path.name == CA_FILE else None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as browsers show it: ``AB:CD:…``."""
        return self.certificate.fingerprint(hashes.SHA256()).hex(":").upper()

    @property
    def name(self) -> str:
        """The common name, as a certificate store lists it."""
        return str(self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    @property
    def expires_at(self) -> datetime:
        """The end of its validity (UTC)."""
        return self.certificate.not_valid_after_utc

    def export(self, form: CaFormat = "pem") -> bytes:
        """Returns the certificate, never the key, for installing on clients."""
        if form == "mobileconfig":
            return mobileconfig(self.certificate.public_bytes(Encoding.DER), self.name, self.fingerprint)
        if form == "p12":
            return pkcs12.serialize_key_and_certificates(_NAME, None, self.certificate, None, NoEncryption())
        return self.certificate.public_bytes(Encoding.PEM if form == "pem" else Encoding.DER)


def ensure_ca(folder: Path) -> CertificateAuthority:
    """Returns the CA in a folder; makes the folder (0700) and the CA (files 0600) when there is none yet.

    A folder that is complete and private is not written to: it may be read-only.

    Raises:
        StartupError: one sentence: it cannot be read or written, is no CA, has expired, or its key does not belong to it.
    """
    path = folder / CA_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(folder, 0o700)
        if not path.exists():
            if any(folder.glob("mitmproxy-ca*")):
                raise StartupError(
                    f"the certificate authority {path} is missing although other files of it are there; "
                    f"restore it, or remove {folder} to make a new one"
                )
            _create(path)
    except OSError as error:
        raise StartupError(f"cannot make the certificate authority {path}: {error.strerror}") from error
    return use_ca(folder)


def use_ca(folder: Path) -> CertificateAuthority:
    """Returns the CA in a folder, with the files beside it that clients need; never makes a CA.

    For workers: one that made a CA of its own would sign what no client trusts.

    Raises:
        StartupError: as `ensure_ca`, and when there is none.
    """
    authority = load_ca(folder)
    _complete(folder, authority)
    return authority


class KeptCa:
    """The CA of a running filter in memory, to put its file back when it was removed.

    Args:
        folder: of a CA that is in use.

    Raises:
        StartupError: it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / CA_FILE
        try:
            self._content = self._path.read_bytes()
        except OSError as error:
            raise StartupError(f"cannot read the certificate authority {self._path}: {error.strerror}") from error

    def put_back(self) -> bool:
        """Writes the file again if it is gone; takes note of it if it was renewed. Returns whether it was written.

        Raises:
            StartupError: it is gone and cannot be written.
        """
        try:
            self._content = self._path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return False
        else:
            return False
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(self._path, self._content)
        except OSError as error:
            raise StartupError(f"cannot put the certificate authority {self._path} back: {error.strerror}") from error
        return True


def load_ca(folder: Path) -> CertificateAuthority:
    """Returns the CA in a folder and checks that it can sign.

    Raises:
        StartupError: as `ensure_ca`, and when there is none.
    """
    path = folder / CA_FILE
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise StartupError(f"cannot read the certificate authority {path}: {error.strerror}") from error
    try:
        key = load_pem_private_key(raw, None)
        certificate = x509.load_pem_x509_certificates(raw)[0]
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (ValueError, TypeError, IndexError, x509.ExtensionNotFound) as error:
        raise StartupError(f"the certificate authority {path} is damaged: it needs a private key and a CA certificate") from error
    if not constraints.ca:
        raise StartupError(f"the certificate in {path} is not one of a certificate authority")
    if _public(key.public_key()) != _public(certificate.public_key()):
        raise StartupError(f"the key and the certificate in {path} do not belong together")
    if certificate.not_valid_after_utc <= datetime.now(UTC):
        raise StartupError(
            f"the certificate authority {path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; make a new one"
        )
    return CertificateAuthority(path, certificate)


def _public(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _create(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = self_signed(key, own_name())
    _write(path, key_and_certificate(key, certificate))


def own_name(suffix: str = "") -> x509.Name:
    """Returns the name of an authority of this machine."""
    host = socket.gethostname().partition(".")[0][:40] or "gateway"
    return x509.Name([
        x509.NameAttribute(NameOID.COMMON_NAME, f"GatewayFilter CA {host}{suffix}"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "GatewayFilter"),
    ])  # fmt: skip


def self_signed(key: CertificateIssuerPrivateKeyTypes, name: x509.Name) -> x509.Certificate:
    """Returns a certificate for an authority: it may sign servers' certificates and nothing else, for ten years from now."""
    now = datetime.now(UTC)
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=False,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )


def key_and_certificate(key: CertificateIssuerPrivateKeyTypes, certificate: x509.Certificate) -> bytes:
    """Returns the content of `CA_FILE`."""
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return secret + certificate.public_bytes(Encoding.PEM)


def _complete(folder: Path, authority: CertificateAuthority) -> None:
    """Makes the files beside the CA that mitmproxy would have made, and keeps all of them private."""
    try:
        make_private(authority.path, 0o600)
        for file_name, form in _EXPORTS.items():
            if not (folder / file_name).exists():
                _write(folder / file_name, authority.export(form))
    except OSError as error:
        raise StartupError(f"cannot write to the folder of the certificate authority {folder}: {error.strerror}") from error


def _write(path: Path, content: bytes) -> None:
    """Writes a private file whole or not at all; one that another process made meanwhile stays."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink()
