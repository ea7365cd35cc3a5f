"""`gatewayfilter schedule`: what policies do at certain times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Schedule, ScheduleEffect, Window, read_days, show_days, to_record
from gatewayfilter.use_cases.people.schedule_windows import PRESET, bedtime_windows, read_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.cli.ui.command_context import Invocation

_SERVICE = "service:"


@click.group(
    "schedule",
    cls=FilterGroup,
    short_help="What is blocked at which time.",
    examples=("gatewayfilter schedule add bedtime --policy kids --block all --daily 21:00-06:00",),
)
def schedule_group() -> None:
    """Schedules: daily windows in which a policy blocks everything or a category, allows a category, or is another policy.

    At the boundary of a window, connections that are now blocked end, too. A window over midnight belongs to the day on which it
    begins.
    """


@schedule_group.command(
    "add",
    examples=(
        "gatewayfilter schedule add bedtime --policy kids --block all --daily 21:00-06:00 --days sun,mon,tue,wed,thu",
        "gatewayfilter schedule add play --policy kids --allow social --daily 16:00-18:00 --timezone Europe/Berlin",
        "gatewayfilter schedule add night --policy kids --bedtime",
        "gatewayfilter schedule add homework --policy kids --block service:tiktok --daily 14:00-17:00 --days weekdays",
        "gatewayfilter schedule add school --policy kids --use homework --daily 08:00-12:00 --daily 13:00-15:30 --days weekdays",
    ),
    prints_data=True,
    audited="schedule.added",
)
@click.argument("name")
@click.option("--policy", required=True, metavar="NAME", help="The policy over which it lies.")
@click.option("--block", metavar="WHAT", help="all, the category of lists, or service:ID.")
@click.option("--allow", metavar="WHAT", help="Do not block by lists of a category, or service:ID.")
@click.option("--use", metavar="POLICY", help="Put the values of another policy in force.")
@click.option(
    "--bedtime",
    is_flag=False,
    flag_value=PRESET,
    metavar="[HH:MM-HH:MM]",
    help="Block everything at night: this window, or before school days 21:00-06:30 and before free ones 22:30-08:00.",
)
@click.option("--weekend", metavar="HH:MM-HH:MM", help="With --bedtime: the window of Friday and Saturday night.")
@click.option("--daily", multiple=True, metavar="HH:MM-HH:MM", help="A window; may be given several times.")
@click.option(
    "--days",
    default="daily",
    metavar="DAYS",
    show_default=True,
    help="mon,wed or mon-fri, weekdays, weekend: when windows begin.",
)
@click.option("--timezone", metavar="ZONE", help="Time zone of the windows, such as Europe/Berlin; default: filter.timezone.")
@click.pass_obj
def add_schedule(  # noqa: PLR0913  each is an option
    invocation: Invocation,
    *,
    name: str,
    policy: str,
    block: str | None,
    allow: str | None,
    use: str | None,
    bedtime: str | None,
    weekend: str | None,
    daily: tuple[str, ...],
    days: str,
    timezone: str | None,
) -> None:
    """Add a schedule."""
    from gatewayfilter.use_cases.network_facts import known_categories, known_services, zone_name
    from gatewayfilter.use_cases.policies import PolicyEditor

    if bedtime is not None:
        if daily or any(value is not None for value in (block, allow, use)):
            raise PolicyError("--bedtime has windows and an effect of its own; leave out --daily, --block, --allow and --use")
        effect, target = ScheduleEffect.BLOCK_ALL, ""
        windows = bedtime_windows(bedtime, weekend, read_days(days))
    else:
        if weekend is not None:
            raise PolicyError("--weekend belongs to --bedtime")
        if not daily:
            raise PolicyError("give --daily HH:MM-HH:MM, or --bedtime")
        effect, target = _read_effect(block, allow, use)
        weekdays = read_days(days)
        windows = tuple(read_window(text, weekdays) for text in daily)
    zone = timezone or zone_name(invocation.settings())
    schedule = Schedule(name, policy, effect, windows, zone, target)
    with invocation.store() as store:
        PolicyEditor(store.policies).add_schedule(
            schedule,
            known_categories(invocation.settings()),
            known_services(invocation.settings(), [schedule.effect.value.rpartition("-")[2]]),
        )
    if invocation.json:
        print_json(to_record(schedule))
    else:
        say(f"{name}: {_effect_text(schedule)}, {_windows_text(schedule.windows)}, {schedule.timezone}")


def _read_effect(block: str | None, allow: str | None, use: str | None) -> tuple[ScheduleEffect, str]:
    if [block, allow, use].count(None) != 2:
        raise PolicyError("give one of --block, --allow and --use")
    if block == "all":
        return ScheduleEffect.BLOCK_ALL, ""
    for given, effect in ((block, ScheduleEffect.BLOCK_SERVICE), (allow, ScheduleEffect.ALLOW_SERVICE)):
        if given is not None and given.startswith(_SERVICE):
            return effect, given.removeprefix(_SERVICE)
    if block is not None:
        return ScheduleEffect.BLOCK_CATEGORY, block
    return (ScheduleEffect.ALLOW_CATEGORY, allow) if allow is not None else (ScheduleEffect.USE_POLICY, use or "")


@schedule_group.command("remove", examples=("gatewayfilter schedule remove bedtime",), audited="schedule.removed")
@click.argument("name")
@click.pass_obj
def remove_schedule(invocation: Invocation, *, name: str) -> None:
    """Remove a schedule."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        PolicyEditor(store.policies).remove_schedule(name)
    say(f"Removed the schedule {name}.")


@schedule_group.command("list", examples=("gatewayfilter schedule list --json",), prints_data=True)
@click.pass_obj
def list_schedules(invocation: Invocation) -> None:
    """Show all schedules."""
    with invocation.store() as store:
        schedules = sorted(store.policies.read().schedules.values(), key=lambda schedule: schedule.name)
    if invocation.json:
        print_json([to_record(schedule) for schedule in schedules])
    elif not schedules:
        say("There are no schedules.")
    else:
        rows = [(one.name, one.policy, _effect_text(one), _windows_text(one.windows), one.timezone) for one in schedules]
        print_table(("name", "policy", "effect", "windows", "timezone"), rows)


def _effect_text(schedule: Schedule) -> str:
    match schedule.effect:
        case ScheduleEffect.BLOCK_ALL:
            return "blocks everything"
        case ScheduleEffect.BLOCK_CATEGORY:
            return f"blocks {schedule.target}"
        case ScheduleEffect.ALLOW_CATEGORY:
            return f"allows {schedule.target}"
        case ScheduleEffect.BLOCK_SERVICE:
            return f"blocks the service {schedule.target}"
        case ScheduleEffect.ALLOW_SERVICE:
            return f"allows the service {schedule.target}"
        case ScheduleEffect.USE_POLICY:
            return f"uses the policy {schedule.target}"


def _windows_text(windows: Sequence[Window]) -> str:
    return ", ".join(f"{_clock(window.begin)}-{_clock(window.end)} {show_days(window.days)}" for window in windows)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
