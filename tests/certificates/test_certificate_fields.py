"""What clients read in the filter's certificates and in the profile that carries one, field by field."""

import os
import plistlib
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gatewayfilter.certificates import authority as authorities
from gatewayfilter.certificates import renewal
from gatewayfilter.certificates.authority import CA_FILE, CERTIFICATE_FILE, KeptCa, ensure_ca, key_and_certificate, own_name
from gatewayfilter.certificates.server_certificate import issue_server_certificate
from gatewayfilter.errors import StartupError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of an authority; tests leave it as it is."""
    found = tmp_path_factory.mktemp("ca")
    ensure_ca(found)
    return found


def extension[T: x509.ExtensionType](certificate: x509.Certificate, kind: type[T]) -> tuple[T, bool]:
    """Returns an extension, and whether clients that do not know it have to refuse the certificate."""
    found = certificate.extensions.get_extension_for_class(kind)
    return found.value, found.critical


def test_an_authority_signs_certificates_of_servers_and_nothing_else(folder: Path) -> None:
    certificate = ensure_ca(folder).certificate
    assert extension(certificate, x509.BasicConstraints) == (x509.BasicConstraints(ca=True, path_length=0), True)
    assert extension(certificate, x509.ExtendedKeyUsage) == (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
    usage, critical = extension(certificate, x509.KeyUsage)
    assert critical
    allowed = {"key_cert_sign", "crl_sign"}
    names = {"digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", *allowed}
    assert {name for name in names if getattr(usage, name)} == allowed
    subject_key = x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())
    assert extension(certificate, x509.SubjectKeyIdentifier) == (subject_key, False)
    assert certificate.issuer == certificate.subject == own_name()
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=3652)
    assert abs(datetime.now(UTC) - certificate.not_valid_before_utc - timedelta(days=2)) < timedelta(minutes=10)


@pytest.mark.parametrize(("host", "shown"), [("filter.lan.example", "filter"), ("", "gateway"), ("h" * 60, "h" * 40)])
def test_its_name_is_that_of_the_machine(monkeypatch: pytest.MonkeyPatch, host: str, shown: str) -> None:
    monkeypatch.setattr("gatewayfilter.certificates.authority.socket.gethostname", lambda: host)
    (name,) = own_name(" 2").get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == f"GatewayFilter CA {shown} 2"


def test_the_certificate_of_one_in_force_lies_beside_it(folder: Path) -> None:
    found = ensure_ca(folder)
    assert found.certificate_path == folder / CERTIFICATE_FILE
    assert authorities.CertificateAuthority(folder / "next.pem", found.certificate).certificate_path is None
    assert found.expires_at == found.certificate.not_valid_after_utc
    assert len(found.fingerprint) == 95


def test_the_profile_carries_the_certificate_and_can_be_removed(folder: Path) -> None:
    found = ensure_ca(folder)
    raw = found.export("mobileconfig")
    assert raw == found.export("mobileconfig"), "a second one replaces the first"
    profile = plistlib.loads(raw)
    (payload,) = profile.pop("PayloadContent")
    short = found.fingerprint.replace(":", "").lower()[:16]
    assert profile.pop("PayloadUUID") != payload.pop("PayloadUUID")
    assert profile == {
        "PayloadType": "Configuration", "PayloadVersion": 1, "PayloadIdentifier": "org.gatewayfilter.profile",
        "PayloadDisplayName": found.name, "PayloadDescription": f"SHA-256 {found.fingerprint}",
        "PayloadOrganization": "GatewayFilter", "PayloadRemovalDisallowed": False,
    }  # fmt: skip
    assert payload.pop("PayloadDescription")
    assert payload == {
        "PayloadType": "com.apple.security.root", "PayloadVersion": 1, "PayloadIdentifier": f"org.gatewayfilter.ca.{short}",
        "PayloadDisplayName": found.name, "PayloadCertificateFileName": "gatewayfilter-ca.cer",
        "PayloadContent": found.certificate.public_bytes(Encoding.DER),
    }  # fmt: skip


def test_a_server_of_the_filter(folder: Path) -> None:
    issuer = ensure_ca(folder).certificate
    raw = issue_server_certificate(folder, {"filter.lan", "192.0.2.1", "2001:db8::1"})
    certificate, signer = x509.load_pem_x509_certificates(raw)
    assert signer == issuer
    certificate.verify_directly_issued_by(issuer)
    key = load_pem_private_key(raw, None)
    assert key.public_key() == certificate.public_key()
    assert extension(certificate, x509.BasicConstraints) == (x509.BasicConstraints(ca=False, path_length=None), True)
    assert extension(certificate, x509.ExtendedKeyUsage) == (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
    own_key = x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())
    assert extension(certificate, x509.SubjectKeyIdentifier) == (own_key, False)
    of_issuer, critical = extension(certificate, x509.AuthorityKeyIdentifier)
    assert (of_issuer.key_identifier, critical) == (extension(issuer, x509.SubjectKeyIdentifier)[0].digest, False)
    names, critical = extension(certificate, x509.SubjectAlternativeName)
    assert not critical
    assert names.get_values_for_type(x509.DNSName) == ["filter.lan"]
    assert set(names.get_values_for_type(x509.IPAddress)) == {ip_address("192.0.2.1"), ip_address("2001:db8::1")}
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=399), "browsers accept no more"
    other = x509.load_pem_x509_certificate(issue_server_certificate(folder, {"filter.lan"}))
    assert other.serial_number != certificate.serial_number


def other_authority(folder: Path, days: int, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """Puts an authority that somebody brought into a folder: it ends soon and does not name its key."""
    now = datetime.now(UTC).replace(microsecond=0)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "brought along")])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
        .not_valid_before(now).not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / CA_FILE).write_bytes(key_and_certificate(key, certificate))
    return certificate


def test_no_server_certificate_outlives_its_authority(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = other_authority(tmp_path / "short", 30, key)
    certificate = x509.load_pem_x509_certificate(issue_server_certificate(tmp_path / "short", {"a"}))
    assert certificate.not_valid_after_utc == issuer.not_valid_after_utc
    named = extension(certificate, x509.AuthorityKeyIdentifier)[0]
    assert named == x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ensure_ca(tmp_path)
    kept = KeptCa(tmp_path)
    assert kept.put_back() is False
    found.path.unlink()

    def full(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size > 500, "what is made durable was written before"
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("gatewayfilter.certificates.authority.os.fsync", full)
        with pytest.raises(StartupError, match="No space left"):
            kept.put_back()
        with pytest.raises(StartupError, match="No space left"):
            renewal._replace(tmp_path / CERTIFICATE_FILE, b"x" * 501)
    assert [path for path in tmp_path.iterdir() if path.name == CA_FILE or path.name.startswith(f".{CA_FILE}")] == []
    assert kept.put_back() is True
    assert found.path.stat().st_mode & 0o777 == 0o600

    def unreadable(_: Path) -> bytes:
        raise PermissionError

    monkeypatch.setattr(Path, "read_bytes", unreadable)
    assert kept.put_back() is False, "it is there"


def test_an_authority_ends_at_the_moment_that_it_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = ensure_ca(folder).expires_at
    moment = end - timedelta(seconds=1)
    monkeypatch.setattr(authorities, "datetime", SimpleNamespace(now=lambda _: moment))
    assert ensure_ca(folder).expires_at == end
    moment = end
    with pytest.raises(StartupError, match="expired on"):
        ensure_ca(folder)


def test_a_folder_that_others_may_read_is_made_private(tmp_path: Path) -> None:
    (tmp_path / "ca").mkdir(mode=0o755)
    ensure_ca(tmp_path / "ca")
    assert (tmp_path / "ca").stat().st_mode & 0o777 == 0o700


def test_the_folder_is_private_from_the_first_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    monkeypatch.setattr(authorities, "make_private", lambda path, _: modes.append(path.stat().st_mode & 0o777))
    ensure_ca(tmp_path / "new")
    assert modes == [0o700, 0o600]
