"""`gatewayfilter setup`: the first set-up, asked for at a terminal or given by options."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.operate.first_account import FirstAccount, add_first_account, ask_first_account, first_account_step
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.command_context import open_store
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_table, say
from gatewayfilter.cli.ui.progress import showing
from gatewayfilter.model import PolicySet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gatewayfilter.cli.operate.first_account import Credentials
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.config import Settings
    from gatewayfilter.sources import Bundle
    from gatewayfilter.use_cases.setup import SetupChoices, SetupPlan, SetupResult

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter setup",
        "gatewayfilter setup --yes --for home",
        "gatewayfilter setup --yes --for school --listen 192.168.1.1:8080 --timezone Europe/Berlin",
        "gatewayfilter setup --dry-run --for office",
    ),
    short_help="Choose lists and settings for a home, a school or an office.",
    prints_data=True,
    recorded="setup.done",
)
@click.option("--for", "purpose", type=click.Choice(["home", "school", "office"]), help="What the filter is for.")
@click.option("--listen", default="", metavar="HOST:PORT", help="Address and port for clients (proxy.listen).")
@click.option("--timezone", default="", metavar="ZONE", help="Time zone of schedules, such as Europe/Berlin (filter.timezone).")
@click.option("--without", multiple=True, metavar="LIST", help="Leave out this list; may be given several times.")
@click.option("--no-safe-search", is_flag=True, help="Leave search engines and YouTube as they are.")
@click.option("--no-account", is_flag=True, help="Do not ask for the first account of the dashboard.")
@click.option("--yes", is_flag=True, help="Do not ask: what is not given stays as it is. Needs --for.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.pass_obj
def setup(  # noqa: PLR0913  one for each option
    invocation: Invocation,
    *,
    purpose: str | None,
    listen: str,
    timezone: str,
    without: tuple[str, ...],
    no_safe_search: bool,
    no_account: bool,
    yes: bool,
    dry_run: bool,
) -> int:
    """Choose lists and settings for a home, a school or an office, and put them in force.

    Subscribes to fitting lists of the catalogue, writes settings into the configuration file, and sets values of the policy
    default. At a terminal it asks for the first account of the dashboard while there is none. It can be repeated: what is there
    stays. Exit code 1 when a list could not be fetched yet; the running filter
    tries again.
    """
    from gatewayfilter.use_cases.setup import SetupChoices, apply_setup, config_file_of, plan_setup

    loaded = invocation.loaded()
    asks = not yes and not dry_run
    if not asks and purpose is None:
        raise click.UsageError("without questions it needs --for home, school or office")
    if asks and (invocation.json or not sys.stdin.isatty()):
        raise click.UsageError("there is no terminal to ask at: give --yes and --for home, school or office")
    choices = SetupChoices(purpose or "", listen, timezone, not no_safe_search, without)
    if asks:
        choices = _asked(loaded.settings, choices)
    config_file = config_file_of(loaded.settings, invocation.config)
    plan = plan_setup(loaded, _policies(loaded.settings), choices, config_file)
    if not invocation.json:
        _show_plan(plan)
    if dry_run:
        return _finish_dry_run(invocation, plan)
    if asks and not plan.is_empty and not click.confirm("Carry this out?", default=True):
        return 1
    account = _planned_account(loaded.settings, wanted=not no_account)
    credentials = ask_first_account() if asks and account is FirstAccount.BROWSER else None
    from contextlib import closing

    from gatewayfilter.wiring import prepare_data_dir

    prepare_data_dir(loaded.settings)
    with closing(open_store(loaded.settings)) as store:
        if credentials is not None:
            account = add_first_account(store, credentials)
        with showing(quiet=invocation.json) as progress:
            result = apply_setup(loaded, store, plan, progress)
    invocation.changed = not plan.is_empty
    if invocation.json:
        print_json({"plan": plan, "results": result.results, "published": result.published, "account": account})
    else:
        _show_result(result)
        if credentials is not None:
            _show_account(credentials, account)
        _show_next_steps(loaded.settings, plan, account)
    return 1 if result.pending else 0


def _has_database(settings: Settings) -> bool:
    return bool(settings.store.url) or (settings.data_dir / "gatewayfilter.sqlite3").exists()


def _policies(settings: Settings) -> PolicySet:
    """Returns the policies; none where there is no database yet, which is not made."""
    from contextlib import closing

    if not _has_database(settings):
        return PolicySet()
    with closing(open_store(settings)) as store:
        return store.policies.read()


def _planned_account(settings: Settings, *, wanted: bool) -> FirstAccount:
    """Returns what becomes of the first account without questions."""
    from contextlib import closing

    if not wanted or not settings.web.listen:
        return FirstAccount.SKIPPED
    if not _has_database(settings):
        return FirstAccount.BROWSER
    with closing(open_store(settings)) as store:
        return FirstAccount.THERE if store.accounts.exist() else FirstAccount.BROWSER


def _asked(settings: Settings, given: SetupChoices) -> SetupChoices:
    """Asks for what was not given."""
    from dataclasses import replace

    from gatewayfilter.use_cases.network_facts import local_zone
    from gatewayfilter.wiring import subscriptions

    bundles = subscriptions(settings).bundles
    purpose = given.purpose or _ask_purpose(list(bundles.values()))
    listen = given.listen or _ask_listen(settings)
    zone = given.timezone or click.prompt("Time zone of schedules", default=settings.filter.timezone or local_zone())
    return replace(given, purpose=purpose, listen=listen, timezone=zone)


def _ask_purpose(bundles: Sequence[Bundle]) -> str:
    say("What is the filter for?")
    for bundle in bundles:
        say(f"  {bundle.name:<8}{bundle.description}")
    names = [bundle.name for bundle in bundles]
    return str(click.prompt("For", type=click.Choice(names), default=names[0], show_choices=False))


def _ask_listen(settings: Settings) -> str:
    from gatewayfilter.addresses.rtnetlink import read_lan_address
    from gatewayfilter.settings import split_address

    host, port = split_address(settings.proxy.listen)
    near = read_lan_address()
    if host in _LOOPBACK and near and click.confirm(f"Shall other devices use it, at {near}?", default=False):
        return f"{near}:{port}"
    return str(click.prompt("Address and port for clients", default=settings.proxy.listen))


def _show_plan(plan: SetupPlan) -> None:
    if plan.is_empty:
        say("Nothing is left to do: lists and settings are as this needs them.")
    if plan.lists:
        print_table(
            ("list", "category", "entries", "MB", "licence", "publisher"),
            [
                (item.name, item.category, f"~{item.entries:,}", f"~{item.size_mb:g}", item.licence, item.homepage)
                for item in plan.lists
            ],
        )
        entries, size = sum(item.entries for item in plan.lists), sum(item.size_mb for item in plan.lists)
        say(f"{counted(len(plan.lists), 'list')} of others, about {entries:,} entries and {size:.0f} MB to download.")
    for value in plan.settings:
        say(f"{plan.config_file}: {value.key} = {value.new!r} (now {value.old!r})")
    for value in plan.policy:
        say(f"policy default: {value.key}={value.new}")
    for note in plan.notes:
        say(f"Note: {note}.")


def _finish_dry_run(invocation: Invocation, plan: SetupPlan) -> int:
    if invocation.json:
        print_json({"plan": plan, "results": [], "published": None, "account": None})
    else:
        say("Nothing was changed.")
    return 0


def _show_result(result: SetupResult) -> None:
    fetched = [item for item in result.results if not item.error]
    if fetched:
        entries = sum(item.report.accepted for item in fetched if item.report is not None)
        say(f"{counted(len(fetched), 'list')} with {counted(entries, 'entry', 'entries')} in force.")
    for item in result.pending:
        say(f"{item.name}: pending, the running filter fetches it later: {item.error}", err=True)


def _show_account(credentials: Credentials, account: FirstAccount) -> None:
    if account is FirstAccount.ADDED:
        say(f"Added {credentials.name}, admin of the dashboard.")
    else:
        say(f"There is an account by now: {credentials.name} was not added.", err=True)


def _show_next_steps(settings: Settings, plan: SetupPlan, account: FirstAccount) -> None:
    from gatewayfilter.settings import split_address
    from gatewayfilter.use_cases.filter_status import running_listen

    listen = next((value.new for value in plan.settings if value.key == "proxy.listen"), settings.proxy.listen)
    host, port = split_address(listen)
    running = running_listen(settings)
    certificate: Path = settings.data_dir / "ca" / "mitmproxy-ca-cert.pem"
    say()
    say("Next:")
    if not running:
        hint("  1. start the filter: gatewayfilter run")
    elif running != listen:
        say(f"  1. restart the filter: it listens on {running} until then")
    else:
        say("  1. the filter is running: nothing to start")
    if host in _LOOPBACK:
        say(f"  2. in the browser of this machine, set the proxy to {listen} and install {certificate}")
    else:
        shown = "THIS-MACHINE" if host in {"0.0.0.0", "::"} else host  # noqa: S104  compared
        shown = f"[{shown}]" if ":" in shown else shown
        say(f"  2. on each device, set the proxy to {shown}:{port}, open http://{shown}:{port}/ and install the certificate")
    hint("  3. check: gatewayfilter status")
    if account is FirstAccount.BROWSER:
        hint(f"  4. {first_account_step(settings, listen)}")
