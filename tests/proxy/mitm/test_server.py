"""The certificate store of a worker, and how it is put in place."""

from pathlib import Path

import pytest
from mitmproxy import certs
from mitmproxy.test import taddons

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.proxy.mitm import server
from gatewayfilter.proxy.mitm.server import GatewayCertStore, GatewayTlsConfig


@pytest.fixture
def store(tmp_path: Path) -> GatewayCertStore:
    ensure_ca(tmp_path)
    return GatewayCertStore.of(certs.CertStore.from_store(tmp_path, "mitmproxy", 2048))


def test_the_older_half_is_dropped(store: GatewayCertStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CERTIFICATES", 4)
    names = [f"host{number}.example" for number in range(5)]
    made = {name: store.get_cert(name, []) for name in names}
    assert len(store.expire_queue) == len(store.certs) == 3
    for name in names[2:]:
        assert store.get_cert(name, []) is made[name]
    assert store.get_cert(names[0], []) is not made[names[0]]


def test_other_options_leave_the_store_as_it_is(tmp_path: Path) -> None:
    ensure_ca(tmp_path)
    addon = GatewayTlsConfig()
    with taddons.context(addon) as context:
        context.configure(addon, confdir=str(tmp_path))
        store = addon.certstore
        assert type(store) is GatewayCertStore
        context.configure(addon, http2=False)
        assert addon.certstore is store
