"""Times of a policy: schedules with their windows, painted weeks, and quotas."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Final

from fastapi import Query, Request, Response

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import ALL_DAYS, DEFAULT, Quota, QuotaKind, Schedule, ScheduleEffect, Window, read_daily_minutes
from gatewayfilter.use_cases.network_facts import counted_categories, known_categories, zone_name
from gatewayfilter.use_cases.people.bedtime import free_name
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.people.schedule_windows import PRESET, bedtime_windows, read_window
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.use_cases.people.week_hours import hours_of, windows_of
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.access.changes import check_version
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.forms import Fields, Form
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.pages.people.answers import Said, answered, attempt
from gatewayfilter.web.pages.people.policies import View, show_policy, url_of
from gatewayfilter.web.rendering.pages import gettext
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

NEW: Final = ":new"
"""What stands for a new schedule in an address; no name has a colon."""
ROWS: Final = 8
"""Windows of a form."""
_EMPTY: Final = Window(1260, 390, ALL_DAYS)


@dataclass(frozen=True, slots=True)
class Times:
    """What the tab of times shows besides the policy.

    Attributes:
        edited: the schedule in the editor, `None` for none.
        version: of that schedule, `""` for a new one.
        what: its effect and target, as the form has them.
        rows: windows of the form; `None` for a row to fill in.
        hours: name of a schedule → the hours of its week.
        used: name of a quota → minutes used today, by client.
    """

    edited: Schedule | None
    version: str
    what: str
    rows: tuple[Window | None, ...]
    hours: dict[str, list[list[str]]]
    used: dict[str, list[tuple[str, int]]]
    zone: str
    categories: tuple[str, ...]
    counted: tuple[str, ...]
    policies: tuple[str, ...]


@router.get("/policies/{name}/times")
def times(
    request: Request, services: Services, _: Viewer, name: str, edit: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Shows the schedules and quotas of a policy."""
    return show_times(request, services, name, edit, Said())


def show_times(request: Request, services: WebServices, name: str, edit: str, said: Said) -> Response:
    """Returns the page of a policy with its times.

    Args:
        request: that it answers.
        services: the parts of the filter.
        name: of the policy.
        edit: the schedule in the editor, `NEW`, or `""`.
        said: of the form that was just sent.
    """
    policies = services.store.policies.read()
    own = {key: one for key, one in policies.schedules.items() if one.policy == name}
    zone = zone_name(services.settings)
    new = Schedule("", name, ScheduleEffect.BLOCK_ALL, (), zone)
    edited = own.get(edit) or (new if edit == NEW else None)
    windows: tuple[Window | None, ...] = edited.windows[:ROWS] if edited is not None else ()
    rows = (*windows, None) if windows else (_EMPTY, None)
    sums = services.store.usage.sums(services.clock()) if policies.quotas else []
    found = Times(
        edited,
        version_of(edited) if edited is not None and edited.name else "",
        _what(edited) if edited is not None else "",
        rows[:ROWS],
        {key: hours_of(one.windows) for key, one in own.items()},
        {key: [(one.client.partition(":")[2], one.used) for one in sums if one.quota == key] for key in policies.quotas},
        zone,
        tuple(sorted(known_categories(services.settings))),
        tuple(sorted(counted_categories(services.settings))),
        tuple(sorted({DEFAULT, *policies.policies} - {name}, key=name_order)),
    )
    return show_policy(request, services, name, View("times", edit=edit), said, times=found)


@router.post("/policies/{name}/schedules")
def save_schedule(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Adds a schedule, or changes one."""
    said, before = Said(), form.text("schedule")
    wanted = form.text("name") or before
    action = "schedule.changed" if before else "schedule.added"
    with attempt(services, identity, action, wanted, said, gettext(request, "Saved. It is in force.")):
        editor = PolicyEditor(services.store.policies, services.clock)
        effect, target = _read_what(form.text("what"))
        zone = form.text("timezone") or zone_name(services.settings)
        schedule = Schedule(before or wanted, name, effect, tuple(_read_rows(form)), zone, target)
        if not schedule.windows:
            raise PolicyError(gettext(request, "Give at least one time from and to."))
        known = known_categories(services.settings), services.services
        if before:
            found = services.store.policies.read().schedules
            check_version(form.text("version"), lambda: version_of(found[before]) if before in found else "")
            editor.set_schedule(schedule, *known)
        else:
            editor.add_schedule(schedule, *known)
    edit = (before or NEW) if said.is_error else ""
    return _answer(request, services, name, edit, said)


@router.post("/policies/{name}/week")
def paint_week(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Replaces the windows of a schedule by painted hours."""
    said, key = Said(), form.text("schedule")
    with attempt(services, identity, "schedule.changed", key, said, gettext(request, "Saved. It is in force.")):
        schedule = services.store.policies.read().schedules.get(key)
        if schedule is None or schedule.policy != name:
            raise PolicyError(gettext(request, "There is no schedule of this name."))
        check_version(form.text("version"), lambda: version_of(schedule))
        windows = windows_of(_read_hours(form))
        if not windows:
            raise PolicyError(gettext(request, "Paint at least one hour, or remove the schedule."))
        editor = PolicyEditor(services.store.policies, services.clock)
        editor.set_schedule(replace(schedule, windows=windows), known_categories(services.settings), services.services)
    return _answer(request, services, name, key if said.is_error else "", said)


@router.post("/policies/{name}/bedtime")
def add_bedtime(request: Request, services: Services, identity: Admin, name: str) -> Response:
    """Adds the usual bedtime as a schedule."""
    said = Said()
    with attempt(services, identity, "schedule.added", name, said, gettext(request, "Saved. It is in force.")):
        key = free_name(f"bedtime {name}"[:90].rstrip(), services.store.policies.read().schedules)
        zone = zone_name(services.settings)
        schedule = Schedule(key, name, ScheduleEffect.BLOCK_ALL, bedtime_windows(PRESET, None, ALL_DAYS), zone)
        PolicyEditor(services.store.policies, services.clock).add_schedule(schedule, ())
    return _answer(request, services, name, "", said)


@router.post("/policies/{name}/schedules/remove")
def remove_schedule(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Removes a schedule."""
    said, key = Said(), form.text("schedule")
    with attempt(services, identity, "schedule.removed", key, said, gettext(request, "Removed %(name)s.", name=key)):
        PolicyEditor(services.store.policies, services.clock).remove_schedule(key)
    return _answer(request, services, name, "", said)


@router.post("/policies/{name}/quotas")
def save_quota(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Adds a quota, or changes its minutes."""
    said, before = Said(), form.text("quota")
    wanted = form.text("name") or before
    action = "quota.changed" if before else "quota.added"
    with attempt(services, identity, action, wanted, said, gettext(request, "Saved. It is in force.")):
        editor = PolicyEditor(services.store.policies, services.clock)
        weekend = form.text("weekend")
        daily = read_daily_minutes(form.text("minutes"), _whole(weekend) if weekend else None)
        if before:
            editor.set_quota(before, daily)
        else:
            kind, _, target = form.text("target").partition(":")
            if kind not in set(QuotaKind):
                raise PolicyError(gettext(request, "Choose what the minutes are for."))
            zone = zone_name(services.settings)
            quota = Quota(wanted, name, QuotaKind(kind), target, daily.minutes, zone, daily.other_days)
            editor.add_quota(quota, counted_categories(services.settings), services.services)
    return _answer(request, services, name, "", said)


@router.post("/policies/{name}/quotas/remove")
def remove_quota(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Removes a quota."""
    said, key = Said(), form.text("quota")
    with attempt(services, identity, "quota.removed", key, said, gettext(request, "Removed %(name)s.", name=key)):
        PolicyEditor(services.store.policies, services.clock).remove_quota(key)
    return _answer(request, services, name, "", said)


def _answer(request: Request, services: WebServices, name: str, edit: str, said: Said) -> Response:
    return answered(request, f"{url_of(name)}/times", said, lambda said: show_times(request, services, name, edit, said))


def _what(schedule: Schedule) -> str:
    return f"{schedule.effect.value}:{schedule.target}" if schedule.target else schedule.effect.value


def _read_what(text: str) -> tuple[ScheduleEffect, str]:
    effect, _, target = text.partition(":")
    if effect not in set(ScheduleEffect) or (effect == ScheduleEffect.BLOCK_ALL) != (not target):
        raise PolicyError(f"{text[:100]!r} is nothing that a schedule does")
    return ScheduleEffect(effect), target


def _read_rows(form: Fields) -> Iterator[Window]:
    for row in range(ROWS):
        begin, end = form.text(f"begin-{row}"), form.text(f"end-{row}")
        days = frozenset(int(day) for day in form.all(f"days-{row}") if day in "0123456" and len(day) == 1)
        if begin and end and days:
            yield read_window(f"{begin}-{'24:00' if begin == end == '00:00' else end}", days)


def _read_hours(form: Fields) -> Iterator[tuple[int, int]]:
    for text in form.all("hour"):
        day, _, hour = text.partition("-")
        if day.isdecimal() and hour.isdecimal() and len(text) <= 4:
            yield int(day), int(hour)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5:
        raise PolicyError(f"{text[:20]!r} is no number of minutes")
    return int(text)
