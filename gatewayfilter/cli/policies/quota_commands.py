"""`gatewayfilter quota`: minutes a day for services and categories."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Quota, QuotaKind, read_daily_minutes, show_daily_minutes, to_record

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation

_MINUTES = "Minutes a day: a number, or each day's, as mon-fri=60,sat-sun=120."


@click.group(
    "quota",
    cls=FilterGroup,
    short_help="Minutes a day for services and categories.",
    examples=("gatewayfilter quota add videos --policy kids --minutes 60 --service youtube",),
)
def quota_group() -> None:
    """Quotas: minutes a day that each client of a policy may use a service, or a category.

    A minute of the clock counts when the client opens or plays something in it. When all are used, the service is blocked until
    the next day begins, and what is running ends.
    """


@quota_group.command(
    "add",
    examples=(
        "gatewayfilter quota add videos --policy kids --minutes 60 --service youtube",
        "gatewayfilter quota add films --policy kids --minutes 60 --weekend 120 --category video",
        "gatewayfilter quota add play --policy kids --minutes 90 --category games --timezone Europe/Berlin",
    ),
    prints_data=True,
    audited="quota.added",
)
@click.argument("name")
@click.option("--policy", required=True, metavar="NAME", help="The policy of the clients; each has minutes of its own.")
@click.option("--minutes", required=True, metavar="N", help=_MINUTES)
@click.option("--weekend", type=int, metavar="N", help="Minutes of Saturday and Sunday.")
@click.option("--service", metavar="ID", help="The service that they are for.")
@click.option("--category", metavar="NAME", help="The category: services of this group, and its lists, which it lifts till then.")
@click.option("--timezone", metavar="ZONE", help="Time zone in which a day begins; default: this machine's.")
@click.pass_obj
def add_quota(
    invocation: Invocation,
    *,
    name: str,
    policy: str,
    minutes: str,
    weekend: int | None,
    service: str | None,
    category: str | None,
    timezone: str | None,
) -> None:
    """Add a quota."""
    from gatewayfilter.use_cases.network_facts import counted_categories, zone_name
    from gatewayfilter.use_cases.policies import PolicyEditor
    from gatewayfilter.wiring import services

    if (service is None) == (category is None):
        raise PolicyError("give --service or --category")
    kind = QuotaKind.SERVICE if service is not None else QuotaKind.CATEGORY
    settings = invocation.settings()
    daily = read_daily_minutes(minutes, weekend)
    zone = timezone or zone_name(settings)
    quota = Quota(name, policy, kind, service or category or "", daily.minutes, zone, daily.other_days)
    with invocation.store() as store:
        PolicyEditor(store.policies).add_quota(quota, counted_categories(settings), services(settings))
    _show_one(invocation, quota)


@quota_group.command(
    "set",
    examples=(
        "gatewayfilter quota set videos --minutes 90",
        "gatewayfilter quota set videos --minutes mon-thu=45,fri=90,sat-sun=120",
    ),
    prints_data=True,
    audited="quota.changed",
)
@click.argument("name")
@click.option("--minutes", required=True, metavar="N", help=_MINUTES)
@click.option("--weekend", type=int, metavar="N", help="Minutes of Saturday and Sunday.")
@click.pass_obj
def set_quota(invocation: Invocation, *, name: str, minutes: str, weekend: int | None) -> None:
    """Change the minutes of a quota; what was used today counts."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        policies = PolicyEditor(store.policies).set_quota(name, read_daily_minutes(minutes, weekend))
    _show_one(invocation, policies.quotas[name])


@quota_group.command("remove", examples=("gatewayfilter quota remove videos",), audited="quota.removed")
@click.argument("name")
@click.pass_obj
def remove_quota(invocation: Invocation, *, name: str) -> None:
    """Remove a quota."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        PolicyEditor(store.policies).remove_quota(name)
    say(f"Removed the quota {name}.")


@quota_group.command("list", examples=("gatewayfilter quota list --json",), prints_data=True)
@click.pass_obj
def list_quotas(invocation: Invocation) -> None:
    """Show all quotas, and who used how much of them today."""
    with invocation.store() as store:
        quotas = sorted(store.policies.read().quotas.values(), key=lambda quota: quota.name)
        sums = store.usage.sums(time.time())
    used = {quota.name: {one.client: one.used for one in sums if one.quota == quota.name} for quota in quotas}
    if invocation.json:
        print_json([{**to_record(quota), "used": used[quota.name]} for quota in quotas])
    elif not quotas:
        say("There are no quotas.")
    else:
        rows = [
            (
                one.name,
                one.policy,
                f"{one.kind}:{one.target}",
                show_daily_minutes(one.minutes, one.other_days),
                ", ".join(f"{client.removeprefix('client:')} {minutes}" for client, minutes in used[one.name].items()),
                one.timezone,
            )
            for one in quotas
        ]
        print_table(("name", "policy", "counts", "minutes a day", "used today", "timezone"), rows)


def _show_one(invocation: Invocation, quota: Quota) -> None:
    if invocation.json:
        print_json(to_record(quota))
    else:
        daily = show_daily_minutes(quota.minutes, quota.other_days)
        say(f"{quota.name}: {daily} minutes a day of the {quota.kind} {quota.target}, policy {quota.policy}")
