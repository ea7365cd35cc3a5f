"""Renewal: who has the old certificate goes on to trust the filter."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from gatewayfilter.certificates.authority import CA_FILE, ensure_ca, load_ca
from gatewayfilter.certificates.renewal import NEXT_FILE, activate_next, make_next, next_authority, renew_same_key
from gatewayfilter.errors import StartupError


def leaf(folder: Path) -> x509.Certificate:
    """Returns a server's certificate as mitmproxy makes it with the authority in the folder."""
    from mitmproxy import certs  # noqa: PLC0415  mitmproxy is slow to import

    store = certs.CertStore.from_store(folder, "mitmproxy", 2048)
    return store.get_cert("site.example", [x509.DNSName("site.example")]).cert.to_cryptography()


def trusts(root: x509.Certificate, server: x509.Certificate) -> bool:
    verifier = PolicyBuilder().store(Store([root])).build_server_verifier(x509.DNSName("site.example"))
    try:
        verifier.verify(server, [])
    except VerificationError:
        return False
    return True


def test_a_client_with_either_certificate_trusts_the_renewed_authority(tmp_path: Path) -> None:
    old = ensure_ca(tmp_path / "ca")
    before = leaf(tmp_path / "ca")
    new = renew_same_key(tmp_path / "ca")
    assert new.fingerprint != old.fingerprint
    assert new.name == old.name
    for root in (old.certificate, new.certificate):
        for server in (before, leaf(tmp_path / "ca")):
            assert trusts(root, server)
    for file in ("mitmproxy-ca-cert.pem", "mitmproxy-ca-cert.cer"):
        assert x509.load_pem_x509_certificate((tmp_path / "ca" / file).read_bytes()) == new.certificate
    (kept,) = (tmp_path / "ca" / "previous").iterdir()
    assert x509.load_pem_x509_certificate(kept.read_bytes()) == old.certificate
    assert b"PRIVATE" not in kept.read_bytes()


def test_an_expired_authority_can_be_renewed(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    from gatewayfilter.certificates.authority import key_and_certificate, own_name, self_signed  # noqa: PLC0415

    good = self_signed(key, own_name())
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    builder = x509.CertificateBuilder().subject_name(good.subject).issuer_name(good.subject).public_key(key.public_key())
    end = datetime.now(UTC) - timedelta(days=1)
    builder = builder.serial_number(5).not_valid_before(end - timedelta(days=5)).not_valid_after(end)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    (folder / CA_FILE).write_bytes(key_and_certificate(key, builder.sign(key, SHA256())))
    with pytest.raises(StartupError, match="expired"):
        load_ca(folder)
    assert renew_same_key(folder).expires_at > datetime.now(UTC) + timedelta(days=3000)


def test_a_new_key_waits_until_it_is_put_into_force(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    old = ensure_ca(folder)
    assert next_authority(folder) is None
    made = make_next(folder)
    assert make_next(folder).fingerprint == made.fingerprint
    assert load_ca(folder).fingerprint == old.fingerprint
    assert made.name != old.name
    assert not trusts(made.certificate, leaf(folder))
    assert activate_next(folder).fingerprint == made.fingerprint
    assert trusts(made.certificate, leaf(folder))
    assert not trusts(old.certificate, leaf(folder))
    assert next_authority(folder) is None
    with pytest.raises(StartupError, match="no authority is waiting"):
        activate_next(folder)


def test_everything_stays_private(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    ensure_ca(folder)
    make_next(folder)
    renew_same_key(folder)
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("content", [b"", b"-----BEGIN X-----"])
def test_a_damaged_authority_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "ca"
    ensure_ca(folder)
    (folder / CA_FILE).write_bytes(content)
    with pytest.raises(StartupError, match="damaged"):
        renew_same_key(folder)
    (folder / NEXT_FILE).write_bytes(content)
    with pytest.raises(StartupError, match="damaged"):
        next_authority(folder)


def test_each_certificate_that_was_in_force_is_kept(tmp_path: Path) -> None:
    old = [ensure_ca(tmp_path).certificate, *(renew_same_key(tmp_path).certificate for _ in range(2))]
    make_next(tmp_path)
    activate_next(tmp_path)
    kept = {x509.load_pem_x509_certificate(path.read_bytes()) for path in (tmp_path / "previous").iterdir()}
    assert kept == set(old)
