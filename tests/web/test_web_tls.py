"""TLS of the dashboard: a certificate of the filter's authority, the operator's own, and files that cannot be used."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trustme

from gatewayfilter.certificates.authority import CERTIFICATE_FILE, ensure_ca
from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, StartupError
from gatewayfilter.web.tls import server_context
from tests.web.web_fakes import loaded_for


@contextmanager
def accepting(context: ssl.SSLContext) -> Iterator[int]:
    """A server that completes one handshake; yields its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def handshake(port: int, name: str, authority: Path) -> str:
    """Connects as a client that trusts the authority; returns the TLS version."""
    trusting = ssl.create_default_context(cafile=str(authority))
    with socket.create_connection(("127.0.0.1", port), 10) as plain, trusting.wrap_socket(plain, server_hostname=name) as secure:
        return str(secure.version())


def settings_for(tmp_path: Path, **options: object) -> Settings:
    return loaded_for(tmp_path, web__listen="127.0.0.1:8081", web__tls="on", **options).settings


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "filter.example"])
def test_the_filters_authority_issues_a_certificate(name: str, tmp_path: Path) -> None:
    ensure_ca(tmp_path / "ca")
    context = server_context(settings_for(tmp_path, web__names=["filter.example"]))
    with accepting(context) as port:
        assert handshake(port, name, tmp_path / "ca" / CERTIFICATE_FILE) == "TLSv1.3"


def test_it_is_for_the_filters_names_alone(tmp_path: Path) -> None:
    ensure_ca(tmp_path / "ca")
    with accepting(server_context(settings_for(tmp_path))) as port, pytest.raises(ssl.SSLCertVerificationError):
        handshake(port, "bank.example", tmp_path / "ca" / CERTIFICATE_FILE)


def test_a_certificate_of_the_operator(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("filter.example")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "chain.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    settings = settings_for(tmp_path, web__certificate=tmp_path / "chain.pem", web__key=tmp_path / "key.pem")
    with accepting(server_context(settings)) as port:
        assert handshake(port, "filter.example", tmp_path / "authority.pem")


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_files_that_cannot_be_used_are_one_sentence(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "chain.pem").write_bytes(content)
    settings = settings_for(tmp_path, web__certificate=tmp_path / "chain.pem", web__key=tmp_path / "chain.pem")
    with pytest.raises(StartupError, match=r"web\.certificate"):
        server_context(settings)


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="belong together"):
        settings_for(tmp_path, web__certificate=tmp_path / "chain.pem")


@pytest.mark.parametrize(
    ("listen", "rule", "expected"),
    [
        ("127.0.0.1:8081", "auto", False),
        ("[::1]:8081", "auto", False),
        ("localhost:8081", "auto", False),
        ("0.0.0.0:8081", "auto", True),
        ("192.168.1.1:8081", "auto", True),
        ("192.168.1.1:8081", "off", False),
        ("127.0.0.1:8081", "on", True),
    ],
)
def test_tls_is_used_beyond_loopback(listen: str, rule: str, *, expected: bool, tmp_path: Path) -> None:
    assert loaded_for(tmp_path, web__listen=listen, web__tls=rule).settings.web.uses_tls is expected
