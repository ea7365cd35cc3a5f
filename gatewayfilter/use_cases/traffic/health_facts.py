"""What the health strip of the dashboard shows beside `FilterStatus`: certificate, ways past a gateway, the crawler's queue.

Reads the certificate with the standard library: a process that must stay small loads no library of certificates.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import SnapshotError
from gatewayfilter.store import Store

CA_SOON_DAYS: Final = 60
"""Days before its end from which the certificate is shown as needing attention."""
_CERTIFICATE: Final = "mitmproxy-ca-cert.pem"
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class GatewayLeaks:
    """Ways past a gateway, as `doctor` and the set-up page show them.

    Attributes:
        quic_refused: whether QUIC is refused.
        doh_blocked: how many of the well-known servers of DNS over HTTPS are blocked.
        doh_known: how many there are; 0 where it is not known.
    """

    quic_refused: bool
    doh_blocked: int
    doh_known: int


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """The facts; each is `None` where it does not apply or cannot be read.

    Attributes:
        ca_days: days until the certificate ends; negative after it.
        leaks: on a gateway.
        queued: pages that wait to be fetched, where pages are learned or some wait.
        queued_since: since when the first of those that are due could have been fetched (Unix seconds).
    """

    ca_days: int | None
    leaks: GatewayLeaks | None
    queued: int | None
    queued_since: float | None


def health_facts(settings: Settings, store: Store, resolvers: Callable[[], tuple[int, int]], now: float) -> HealthFacts:
    """Returns the facts.

    Args:
        settings: with state folder, proxy and learning.
        store: the database.
        resolvers: returns how many well-known servers of DNS over HTTPS are blocked, and how many there are; called on a
            gateway alone.
        now: Unix seconds.

    Raises:
        StoreError: the database cannot be read.
    """
    queued, since = store.frontier.waiting(now)
    counts = queued or settings.learn.enabled
    return HealthFacts(
        _ca_days(settings.data_dir / "ca" / _CERTIFICATE, now), _leaks(settings, resolvers), queued if counts else None, since
    )


def _ca_days(path: Path, now: float) -> int | None:
    """Returns the days until a certificate ends; `None` when it cannot be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=path.read_text(encoding="ascii"))
        ends = [ssl.cert_time_to_seconds(str(found["notAfter"])) for found in context.get_ca_certs()]
    except (OSError, ValueError, KeyError):
        return None
    return int((min(ends) - now) // _DAY_S) if ends else None


def _leaks(settings: Settings, resolvers: Callable[[], tuple[int, int]]) -> GatewayLeaks | None:
    if settings.proxy.mode != "transparent":
        return None
    from gatewayfilter.gateway.runtime_state import RuntimeStateFile  # noqa: PLC0415

    state = RuntimeStateFile().read()
    try:
        blocked, known = resolvers()
    except SnapshotError:
        blocked, known = 0, 0
    return GatewayLeaks(state is not None and state.quic_rejected, blocked, known)
