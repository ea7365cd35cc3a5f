"""The banner that `gatewayfilter run` prints when it is ready."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Final

from gatewayfilter import __version__
from gatewayfilter.addresses.rtnetlink import read_lan_address
from gatewayfilter.certificates.authority import RENEW_WITHIN_DAYS, load_ca
from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import SnapshotError
from gatewayfilter.program_name import as_callable
from gatewayfilter.store.secret_key import load_key
from gatewayfilter.use_cases.access.dashboard_access import WEB_KEY, needs_setup_code, setup_code
from gatewayfilter.wiring import open_store, snapshot_folder, subscriptions

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


def banner(settings: Settings, *, workers: int) -> Iterator[str]:
    """Yields the lines: where it listens, what to set in the browser, where the CA is, how much it filters, how to try it."""
    address = settings.proxy.listen
    host, _, port = address.rpartition(":")
    everywhere = host in {"0.0.0.0", "[::]"}  # noqa: S104  compared, not listened on
    learner = "learning on" if settings.learn.enabled else "learning off"
    yield f"GatewayFilter {__version__} is filtering on {address} ({workers} worker{'s' if workers != 1 else ''}, {learner})."
    yield ""
    yield from _devices(settings, host, port, everywhere=everywhere)
    left = load_ca(settings.data_dir / "ca").expires_at - datetime.now(UTC)
    if left < timedelta(days=RENEW_WITHIN_DAYS):
        yield as_callable(f"  Warning   the certificate authority ends in {left.days} days: gatewayfilter ca renew")
    yield from _lists(settings)
    if settings.web.listen:
        scheme = "https" if settings.web.uses_tls else "http"
        yield f"  Dashboard {scheme}://{settings.web.listen}/"
        yield from _first_account(settings, scheme)
    yield f"  State     {settings.data_dir}"
    if settings.proxy.mode != "transparent":
        local = f"127.0.0.1:{port}" if everywhere else address
        yield f"  Try       curl -x http://{local} http://blocked.gatewayfilter.test/"
    yield "  Stop      Ctrl-C"


def _first_account(settings: Settings, scheme: str) -> Iterator[str]:
    """Yields the address at which the first account is made, while there is none."""
    with closing(open_store(settings)) as store:
        if store.accounts.exist():
            return
    host, port = split_address(settings.web.listen)
    if not needs_setup_code(settings):
        yield "  Set up    open the dashboard in the browser of this machine, and choose a password"
        return
    everywhere = host in {"0.0.0.0", "::"}  # noqa: S104  compared, not listened on
    shown = _lan_address("THIS-MACHINE") if everywhere else host
    shown = f"[{shown}]" if ":" in shown else shown
    code = setup_code(load_key(settings.data_dir, WEB_KEY))
    yield f"  Set up    {scheme}://{shown}:{port}/setup?code={code} (until there is an account)"


def _devices(settings: Settings, host: str, port: str, *, everywhere: bool) -> Iterator[str]:
    certificate = f"  HTTPS     install this certificate: {settings.data_dir / 'ca' / 'mitmproxy-ca-cert.pem'}"
    if settings.proxy.mode == "transparent":
        yield f"  Gateway   {as_callable('sudo gatewayfilter gateway up')} --lan INTERFACE --data-dir {settings.data_dir}"
        yield certificate
        yield from (f"  Devices   open http://{host}/" for host in settings.gateway.hosts if host[0].isdigit())
        return
    yield f"  Browser   set HTTP and HTTPS proxy to {_lan_address('this machine') if everywhere else host}, port {port}"
    yield certificate
    if everywhere:
        yield f"  Devices   open http://{_lan_address('THIS-MACHINE')}:{port}/"
    elif host in _LOOPBACK:
        yield f"  Devices   open http://{host}:{port}/ (this machine only; for others: --listen {_lan_address('ADDRESS')}:{port})"
    else:
        yield f"  Devices   open http://{host}:{port}/"


def _lan_address(otherwise: str) -> str:
    return read_lan_address() or otherwise


def _lists(settings: Settings) -> Iterator[str]:
    try:
        snapshot, _ = snapshot_folder(settings).open_newest(verify=False)
    except SnapshotError as error:
        yield f"  Lists     none: {error}"
        return
    info, sources = snapshot.info, len(snapshot.sources)
    snapshot.close()
    yield (
        f"  Lists     {sources} sources: {info.blacklist:,} blocked and {info.whitelist:,} known good entries, "
        f"{info.adblock_rules:,} Adblock rules, {info.manual_rules:,} of your own"
    )
    own = [item for item in subscriptions(settings).all() if not item.definition.bundled and item.definition.enabled]
    pending = sum(item.is_pending for item in own)
    if not own:
        yield as_callable("  Note      it filters little yet: only the starter lists are on. gatewayfilter setup chooses lists")
    elif pending:
        yield as_callable(f"  Note      {pending} of {len(own)} lists could not be fetched yet: gatewayfilter source status")
