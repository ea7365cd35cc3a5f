"""HTTPS: the certificate authority, and the apps that accept no certificate of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from gatewayfilter.config import Settings
from gatewayfilter.errors import MissingItemError, StartupError
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp, PinnedAppsFile
from gatewayfilter.urls import canonical_host

if TYPE_CHECKING:  # cryptography takes 12 MB: functions import it, of which the dashboard calls some in a child process
    from gatewayfilter.certificates.authority import CaFormat, CertificateAuthority

type Renewal = Literal["same-key", "new-key", "activate"]
"""The same authority for another ten years; the next one with a new key; the next one put into force."""


@dataclass(frozen=True, slots=True)
class AuthorityFacts:
    """What identifies an authority.

    Attributes:
        sha256: fingerprint of its certificate.
        expires_at: Unix seconds.
        days_left: until then.
    """

    name: str
    sha256: str
    expires_at: float
    days_left: int


@dataclass(frozen=True, slots=True)
class Authorities:
    """The authority in force, and the one that waits to be put into force."""

    current: AuthorityFacts
    waiting: AuthorityFacts | None


def authorities(settings: Settings) -> Authorities:
    """Returns the authorities; the first is made if there is none.

    Raises:
        StartupError: one cannot be read.
    """
    from gatewayfilter.certificates.authority import ensure_ca  # noqa: PLC0415  see above
    from gatewayfilter.certificates.renewal import next_authority  # noqa: PLC0415

    folder = settings.data_dir / "ca"
    waiting = next_authority(folder)
    return Authorities(_facts(ensure_ca(folder)), _facts(waiting) if waiting is not None else None)


def _facts(authority: CertificateAuthority) -> AuthorityFacts:
    left = authority.expires_at - datetime.now(UTC)
    return AuthorityFacts(authority.name, authority.fingerprint, authority.expires_at.timestamp(), left.days)


def certificate(settings: Settings, form: CaFormat, *, waiting: bool = False) -> bytes:
    """Returns the certificate in a form, never the key.

    Raises:
        MissingItemError: none is waiting.
        StartupError: it cannot be read.
    """
    from gatewayfilter.certificates.authority import ensure_ca  # noqa: PLC0415  see above
    from gatewayfilter.certificates.renewal import next_authority  # noqa: PLC0415

    folder = settings.data_dir / "ca"
    found = next_authority(folder) if waiting else ensure_ca(folder)
    if found is None:
        raise MissingItemError("no authority is waiting")
    return found.export(form)


def renew_authority(settings: Settings, step: Renewal) -> AuthorityFacts:
    """Renews the authority. Running workers take it when they are started again.

    Raises:
        StartupError: there is none to activate, or it cannot be read or written.
    """
    from gatewayfilter.certificates.authority import ensure_ca  # noqa: PLC0415  see above
    from gatewayfilter.certificates.renewal import activate_next, make_next, renew_same_key  # noqa: PLC0415

    folder = settings.data_dir / "ca"
    ensure_ca(folder)
    steps = {"same-key": renew_same_key, "new-key": make_next, "activate": activate_next}
    return _facts(steps[step](folder))


def pinned_apps(settings: Settings, now: float) -> list[PinnedApp]:
    """Returns the names that pass unread for a device since an app accepts no certificate of the filter, the newest first."""
    entries = PinnedAppsFile.in_folder(settings.data_dir).read()
    return sorted((entry for entry in entries if entry.expires_at > now), key=lambda entry: -entry.learned_at)


def forget_pinned_app(settings: Settings, host: str, client: str = "") -> int:
    """Has connections to a name decrypted again, within a second. Returns the number of entries that were removed.

    Args:
        settings: with the state folder.
        host: the name.
        client: only for this device; `""` for all.

    Raises:
        StartupError: the file cannot be written.
    """
    try:
        return PinnedAppsFile.in_folder(settings.data_dir).remove(canonical_host(host), client)
    except OSError as error:
        raise StartupError(f"cannot change what passes through: {error.strerror}") from error
