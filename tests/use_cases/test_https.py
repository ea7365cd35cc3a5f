"""The certificate authority, and the apps that accept no certificate of it."""

import time

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import MissingItemError, StartupError
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp, PinnedAppsFile
from gatewayfilter.use_cases.https import authorities, certificate, forget_pinned_app, pinned_apps, renew_authority

NOW = 1_800_000_000.0


def test_an_authority_is_made_once_and_renewed(settings: Settings) -> None:
    settings.data_dir.mkdir()
    first = authorities(settings)
    assert first.waiting is None
    assert authorities(settings) == first
    assert first.current.name
    assert first.current.days_left == int((first.current.expires_at - time.time()) // 86_400) > 3_000
    assert certificate(settings, "pem").startswith(b"-----BEGIN CERTIFICATE-----")
    assert b"PRIVATE" not in certificate(settings, "pem")
    with pytest.raises(MissingItemError, match="no authority is waiting"):
        certificate(settings, "pem", waiting=True)
    with pytest.raises(StartupError):
        renew_authority(settings, "activate")

    same_key = renew_authority(settings, "same-key")
    assert same_key.sha256 != first.current.sha256
    assert authorities(settings).current == same_key
    waiting = renew_authority(settings, "new-key")
    found = authorities(settings)
    assert (found.current, found.waiting) == (same_key, waiting)
    assert certificate(settings, "pem", waiting=True) != certificate(settings, "pem")
    assert renew_authority(settings, "activate").sha256 == waiting.sha256
    found = authorities(settings)
    assert (found.current.sha256, found.waiting) == (waiting.sha256, None)


def test_apps_that_pass_unread_are_listed_and_forgotten(settings: Settings) -> None:
    settings.data_dir.mkdir()
    file = PinnedAppsFile.in_folder(settings.data_dir)
    for client, host, learned_at, expires_at in (
        ("10.0.0.1", "app.example", NOW - 9, NOW + 9),
        ("10.0.0.2", "app.example", NOW - 5, NOW + 9),
        ("10.0.0.1", "bank.example", NOW - 7, NOW + 9),
        ("10.0.0.1", "old.example", NOW - 1, NOW),
    ):
        file.add(PinnedApp(client, host, learned_at, expires_at, 3))

    def shown() -> list[tuple[str, str]]:
        return [(app.client, app.host) for app in pinned_apps(settings, NOW)]

    assert shown() == [("10.0.0.2", "app.example"), ("10.0.0.1", "bank.example"), ("10.0.0.1", "app.example")]
    assert forget_pinned_app(settings, "APP.example.", "10.0.0.2") == 1
    assert forget_pinned_app(settings, "app.example", "10.0.0.2") == 0
    file.add(PinnedApp("10.0.0.2", "app.example", NOW, NOW + 9, 3))
    assert forget_pinned_app(settings, "app.example") == 2
    assert shown() == [("10.0.0.1", "bank.example")]
