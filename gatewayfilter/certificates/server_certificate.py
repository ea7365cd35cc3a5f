"""Certificates for servers of the filter itself, as its dashboard, issued by its authority."""

import ipaddress
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gatewayfilter.certificates.authority import CA_FILE, load_ca
from gatewayfilter.errors import StartupError

_VALID_FOR: Final = timedelta(days=397)
"""The longest that browsers accept."""
_BACKDATED: Final = timedelta(days=2)


def issue_server_certificate(folder: Path, names: Collection[str]) -> bytes:
    """Returns a new key and its certificate, with that of the authority, as PEM.

    Args:
        folder: of the authority.
        names: host names and addresses that the certificate is for.

    Raises:
        StartupError: the authority cannot be used.
    """
    authority = load_ca(folder)
    try:
        signer = load_pem_private_key((folder / CA_FILE).read_bytes(), None)
    except (OSError, ValueError) as error:
        raise StartupError(f"cannot use the certificate authority in {folder}: {error}") from error
    if not isinstance(signer, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise StartupError(f"the key of the certificate authority in {folder} is neither EC nor RSA")
    return _issue(signer, authority.certificate, names)


def _issue(signer: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, issuer: x509.Certificate, names: Collection[str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "GatewayFilter")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(min(now + _VALID_FOR, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_key_of(issuer), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in sorted(names)]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + certificate.public_bytes(Encoding.PEM) + issuer.public_bytes(Encoding.PEM)


def _key_of(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Returns how the issuer's own certificate names its key: strict clients compare them."""
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(cast("ec.EllipticCurvePublicKey", issuer.public_key()))
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
