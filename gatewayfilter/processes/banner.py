"""The banner that `gatewayfilter run` prints when it is ready."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from gatewayfilter import __version__
from gatewayfilter.certificates.authority import RENEW_WITHIN_DAYS, load_ca
from gatewayfilter.config import Settings
from gatewayfilter.errors import SnapshotError
from gatewayfilter.wiring import snapshot_folder


def banner(settings: Settings, *, workers: int) -> Iterator[str]:
    """Yields the lines: where it listens, what to set in the browser, where the CA is, how to try it."""
    address = settings.proxy.listen
    host, _, port = address.rpartition(":")
    reachable = "this machine's address" if host in {"0.0.0.0", "[::]"} else host  # noqa: S104  compared, not listened on
    learner = "learning on" if settings.learn.enabled else "learning off"
    yield f"GatewayFilter {__version__} is filtering on {address} ({workers} worker{'s' if workers != 1 else ''}, {learner})."
    yield ""
    if settings.proxy.mode == "transparent":
        yield "  Gateway   sudo gatewayfilter gateway up --lan INTERFACE (docs/gateway.md)"
    else:
        yield f"  Browser   set HTTP and HTTPS proxy to {reachable}, port {port}"
    yield f"  HTTPS     install the certificate authority: {settings.data_dir / 'ca' / 'mitmproxy-ca-cert.pem'}"
    if settings.proxy.mode == "transparent":
        yield from (f"  Devices   open http://{host}/" for host in settings.gateway.hosts if host[0].isdigit())
    else:
        yield f"  Devices   open http://{f'127.0.0.1:{port}' if reachable != host else address}/"
    left = load_ca(settings.data_dir / "ca").expires_at - datetime.now(UTC)
    if left < timedelta(days=RENEW_WITHIN_DAYS):
        yield f"  Warning   the certificate authority ends in {left.days} days: gatewayfilter ca renew"
    try:
        snapshot, _ = snapshot_folder(settings).open_newest(verify=False)
    except SnapshotError as error:
        yield f"  Lists     none: {error}"
    else:
        info = snapshot.info
        yield (
            f"  Lists     {len(snapshot.sources)} sources: {info.blacklist:,} blocked and {info.whitelist:,} known good entries, "
            f"{info.adblock_rules:,} Adblock rules, {info.manual_rules:,} of your own"
        )
        snapshot.close()
    yield f"  State     {settings.data_dir}"
    if settings.proxy.mode != "transparent":
        local = f"127.0.0.1:{port}" if reachable != host else address
        yield f"  Try       curl -x http://{local} http://blocked.gatewayfilter.test/"
    yield "  Stop      Ctrl-C"
