import errno
import os
import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12
from mitmproxy.certs import CertStore
from mitmproxy.options import CONF_BASENAME

from gatewayfilter.certificates import authority
from gatewayfilter.certificates.authority import CA_FILE, KeptCa, ensure_ca, load_ca, use_ca
from gatewayfilter.errors import StartupError


def test_first_start_makes_a_private_ec_authority(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    made = ensure_ca(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = {path.name for path in folder.iterdir()}
    assert names == {CA_FILE, "mitmproxy-ca-cert.pem", "mitmproxy-ca-cert.cer", "mitmproxy-ca-cert.p12"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert isinstance(load_pem_private_key((folder / CA_FILE).read_bytes(), None), ec.EllipticCurvePrivateKey)
    assert made.name.startswith("GatewayFilter CA ")
    assert made.expires_at > datetime.now(UTC) + timedelta(days=3600)
    assert len(made.fingerprint.split(":")) == 32


def test_the_next_start_uses_the_same_and_restores_exports(tmp_path: Path) -> None:
    first = ensure_ca(tmp_path)
    (tmp_path / "mitmproxy-ca-cert.cer").unlink()
    (tmp_path / CA_FILE).chmod(0o644)
    again = ensure_ca(tmp_path)
    assert again.fingerprint == first.fingerprint
    assert (tmp_path / "mitmproxy-ca-cert.cer").read_bytes() == first.export()
    assert stat.S_IMODE((tmp_path / CA_FILE).stat().st_mode) == 0o600


def test_mitmproxy_signs_with_it(tmp_path: Path) -> None:
    made = ensure_ca(tmp_path)
    store = CertStore.from_store(tmp_path, CONF_BASENAME, 2048)
    assert store.default_ca.to_cryptography() == made.certificate
    leaf = store.get_cert("site.example", [x509.DNSName("site.example")]).cert.to_cryptography()
    leaf.verify_directly_issued_by(made.certificate)


def test_exports_have_no_key(tmp_path: Path) -> None:
    made = ensure_ca(tmp_path)
    assert x509.load_pem_x509_certificate(made.export("pem")) == made.certificate
    assert x509.load_der_x509_certificate(made.export("der")) == made.certificate
    bundle = pkcs12.load_pkcs12(made.export("p12"), None)
    assert bundle.key is None
    assert [kept.certificate for kept in bundle.additional_certs] == [made.certificate]
    assert b"PRIVATE" not in made.export("pem")


def test_a_missing_authority_beside_its_exports_is_not_replaced(tmp_path: Path) -> None:
    ensure_ca(tmp_path)
    (tmp_path / CA_FILE).unlink()
    with pytest.raises(StartupError, match="is missing although"):
        ensure_ca(tmp_path)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_damaged_authority_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / CA_FILE).write_bytes(content)
    with pytest.raises(StartupError, match="is damaged"):
        ensure_ca(tmp_path)


def test_key_and_certificate_must_belong_together(tmp_path: Path) -> None:
    ensure_ca(tmp_path / "a")
    ensure_ca(tmp_path / "b")
    key = (tmp_path / "a" / CA_FILE).read_bytes().partition(b"-----BEGIN CERTIFICATE")[0]
    (tmp_path / "b" / CA_FILE).write_bytes(key + load_ca(tmp_path / "b").export())
    with pytest.raises(StartupError, match="do not belong together"):
        load_ca(tmp_path / "b")


def test_an_expired_authority_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority, "_VALID_FOR", timedelta(days=-1))
    with pytest.raises(StartupError, match="expired on"):
        ensure_ca(tmp_path)


def test_a_leaf_is_no_authority(tmp_path: Path) -> None:
    ensure_ca(tmp_path)
    store = CertStore.from_store(tmp_path, CONF_BASENAME, 2048)
    leaf = store.get_cert("site.example", [x509.DNSName("site.example")]).cert.to_pem()
    key = (tmp_path / CA_FILE).read_bytes().partition(b"-----BEGIN CERTIFICATE")[0]
    (tmp_path / CA_FILE).write_bytes(key + leaf)
    with pytest.raises(StartupError, match=r"damaged|not one of a certificate authority"):
        load_ca(tmp_path)


def test_no_authority_and_a_folder_that_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot read"):
        load_ca(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="cannot make"):
        ensure_ca(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "ro").mkdir(mode=0o500)
    with pytest.raises(StartupError, match="cannot make"):
        ensure_ca(tmp_path / "ro" / "ca")


def test_a_worker_makes_no_authority(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot read the certificate authority"):
        use_ca(tmp_path / "ca")
    assert not (tmp_path / "ca").exists()
    made = ensure_ca(tmp_path / "ca")
    assert use_ca(tmp_path / "ca").fingerprint == made.fingerprint


def test_an_authority_in_use_is_put_back_unless_it_was_renewed(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "ca"
    made = ensure_ca(folder)
    kept = KeptCa(folder)
    assert not kept.put_back()
    shutil.rmtree(folder.parent)
    assert kept.put_back()
    assert use_ca(folder).fingerprint == made.fingerprint
    assert (folder / CA_FILE).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(folder)
    renewed = ensure_ca(folder)
    assert not kept.put_back()
    (folder / CA_FILE).unlink()
    assert kept.put_back(), "the renewed one"
    assert load_ca(folder).fingerprint == renewed.fingerprint
    (folder / CA_FILE).unlink()
    folder.rename(tmp_path / "aside")
    folder.write_text("in the way")
    with pytest.raises(StartupError, match="cannot put"):
        kept.put_back()


def test_a_complete_folder_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ensure_ca(tmp_path / "ca")

    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "chmod", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert ensure_ca(tmp_path / "ca").fingerprint == made.fingerprint
