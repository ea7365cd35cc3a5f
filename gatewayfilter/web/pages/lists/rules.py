"""`/rules`: own rules, with a form that explains them while they are typed."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Form, Path, Query, Request, Response
from fastapi.responses import RedirectResponse

from gatewayfilter.errors import BroadRuleError, ConflictError, GatewayFilterError, RuleError
from gatewayfilter.model import ListAction, ManualRule
from gatewayfilter.use_cases.lists.patterns import Pattern
from gatewayfilter.use_cases.lists.rule_editing import (
    add_rules,
    edit_rule,
    find_rule,
    read_wanted,
    remove_rule,
    rule_groups,
    rule_page,
    switch_rules,
)
from gatewayfilter.web.access.changes import changing, check_version, undo_url
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.pages.lists.rule_forms import EditForm, RuleFilter, RuleForm, day_of
from gatewayfilter.web.rendering.pages import is_partial, render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_A_PAGE: Final = 50
_MOST: Final = 50
"""Rules that the form adds at once; more are imported."""
_LONGEST: Final = 300
Number = Annotated[int, Path(ge=0, lt=2**53)]


@router.get("/rules")
def show(request: Request, services: Services, _: Viewer, shown: Annotated[RuleFilter, Query()]) -> Response:
    """Shows own rules, newest first."""
    if is_partial(request):
        return render(request, "lists/_rule_table.html", **_context(services, shown), form=RuleForm(), error="", broad=False)
    content = partial(_context, services, shown)
    return render_early(request, "lists/rules.html", content, active="rules", form=RuleForm(), error="", broad=False)


@router.post("/rules")
def add(request: Request, services: Services, identity: Admin, form: Annotated[RuleForm, Form()]) -> Response:
    """Adds rules; what cannot be added is shown in the form."""
    broad, error, added, entry_id = False, "", 0, 0
    try:
        wanted = _read(form)
        values = form.values(services.clock(), services.zone)
        with changing(services, identity, "rule.added", ", ".join(form.rules.split())[:_LONGEST]) as recording:
            for action, pattern in wanted:
                add_rules(services.store, [pattern], replace(values, action=action))
        added, entry_id = len(wanted), recording.entry_id
    except GatewayFilterError as caught:
        broad, error = isinstance(caught, BroadRuleError), str(caught)
    if error and not is_partial(request):
        return render(request, "lists/rules.html", 422, **_context(services, RuleFilter()), form=form, error=error, broad=broad)
    if not is_partial(request):
        return RedirectResponse("/rules", 303)
    kept = form if error else RuleForm(action=form.action, scope=form.scope, lasts=form.lasts, until=form.until, group=form.group)
    context = _context(services, RuleFilter())
    return render(
        request, "lists/_rules.html", **context, form=kept, error=error, broad=broad, added=added, undo=undo_url(entry_id)
    )


def _read(form: RuleForm) -> list[tuple[ListAction, Pattern]]:
    lines = [line.strip() for line in form.rules.splitlines() if line.strip()]
    if not lines:
        raise RuleError("write a rule: a host, a page, a wildcard or a /regular expression/")
    if len(lines) > _MOST:
        raise RuleError(f"the form adds at most {_MOST} rules at once; a file may hold more")
    return [_read_line(line, form) for line in lines]


def _read_line(line: str, form: RuleForm) -> tuple[ListAction, Pattern]:
    action = ListAction.ALLOW if line.startswith("@@") else form.action
    return action, read_wanted(line.removeprefix("@@"), action, force=form.force)


@router.post("/rules/explain")
def explain(request: Request, services: Services, _: Viewer, form: Annotated[RuleForm, Form()]) -> Response:
    """Explains what rules would do; a page of its own where the browser has no scripts."""
    from gatewayfilter.use_cases.lists.rule_tester import try_rules  # noqa: PLC0415  the engine, which is imported when needed

    test, error = None, ""
    try:
        test = try_rules(form.rules, form.addresses, form.action, services.store)
    except GatewayFilterError as caught:
        error = str(caught)
    if is_partial(request):
        return render(request, "lists/_rule_explained.html", test=test, detail=error)
    context = {**_context(services, RuleFilter()), "test": test}
    return render(request, "lists/rules.html", **context, form=form, error=error, broad=False)


@router.get("/rules/{number}")
def edit(request: Request, services: Services, _: Admin, number: Number) -> Response:
    """Shows the form of a rule."""
    return _form(request, services, find_rule(services.store, number))


@router.post("/rules/{number}")
def change(request: Request, services: Services, identity: Admin, number: Number, form: Annotated[EditForm, Form()]) -> Response:
    """Changes a rule; where somebody has changed it meanwhile, shows both."""
    error, status, broad = "", 200, False
    rule = find_rule(services.store, number)
    try:
        with changing(services, identity, "rule.changed", form.rules[:_LONGEST]):
            rule = find_rule(services.store, number)
            check_version(form.version, lambda: EditForm.of(rule).version)
            pattern = Pattern(rule.kind, rule.pattern)
            if form.rules.strip() != pattern.written():
                pattern = read_wanted(form.rules.strip(), form.action, force=form.force)
            values = form.values(services.clock(), services.zone, rule.expires_at)
            edit_rule(services.store, number, pattern, values, enabled=form.enabled)
    except ConflictError:
        status, error = 412, "conflict"
    except GatewayFilterError as caught:
        status, error, broad = 422, str(caught), isinstance(caught, BroadRuleError)
    if error:
        return _form(request, services, rule, form, error, status, broad=broad)
    if not is_partial(request):
        return RedirectResponse("/rules", 303)
    return Response(status_code=204, headers={"hx-redirect": "/rules"})


def _form(
    request: Request,
    services: WebServices,
    rule: ManualRule,
    form: EditForm | None = None,
    error: str = "",
    status: int = 200,
    *,
    broad: bool = False,
) -> Response:
    context: dict[str, Any] = {
        "active": "rules",
        "rule": rule,
        "form": form or EditForm.of(rule),
        "fresh": EditForm.of(rule),
        "day": day_of(rule.expires_at, services.zone),
        "error": error,
        "broad": broad,
    }
    if is_partial(request):
        return render(request, "lists/_rule_form.html", **context, choices=_choices(services))
    if error:
        return render(request, "lists/rule.html", status, **context, choices=_choices(services))
    return render_early(request, "lists/rule.html", lambda: {"choices": _choices(services)}, **context)


@router.post("/rules/{number}/switch")
def switch(request: Request, services: Services, identity: Admin, number: Number) -> Response:
    """Switches a rule on or off."""
    with changing(services, identity, "rule.switched", str(number)) as recording:
        rule = find_rule(services.store, number)
        recording.subject, recording.detail = Pattern(rule.kind, rule.pattern).written(), "off" if rule.enabled else "on"
        switch_rules(services.store, [str(number)], enabled=not rule.enabled)
    if not is_partial(request):
        return RedirectResponse("/rules", 303)
    return render(request, "lists/_rule_row.html", rule=find_rule(services.store, number))


@router.post("/rules/{number}/remove")
def remove(request: Request, services: Services, identity: Admin, number: Number) -> Response:
    """Removes a rule."""
    with changing(services, identity, "rule.removed", str(number)) as recording:
        rule = remove_rule(services.store, number)
        recording.subject = Pattern(rule.kind, rule.pattern).written()
    if not is_partial(request):
        return RedirectResponse("/rules", 303)
    return render(request, "lists/_rule_removed.html", rule=rule, undo=undo_url(recording.entry_id))


def _context(services: WebServices, shown: RuleFilter) -> dict[str, Any]:
    query = shown.query()
    page = rule_page(services.store, query, shown.after, _A_PAGE)
    return {
        "active": "rules",
        "rules": page.rules,
        "total": services.store.lists.count_rules(query),
        "older": address(shown, after=page.after) if page.after else "",
        "newer": address(shown, after=0) if shown.after else "",
        "shown": shown,
        "address": _Addresses(shown),
        "choices": _choices(services),
        "test": None,
    }


def _choices(services: WebServices) -> dict[str, Any]:
    policies = services.store.policies.read()
    groups = [(f"group:{name}", name) for name in sorted(policies.groups)]
    scopes = [*groups, *((f"client:{name}", name) for name in sorted(policies.clients))]
    return {"scopes": scopes, "groups": [group.group for group in rule_groups(services.store)]}


class _Addresses:
    """Addresses of the page with a part of its filter changed, for templates."""

    def __init__(self, shown: RuleFilter) -> None:
        self._shown = shown

    def __call__(self, **changes: object) -> str:
        return address(self._shown, **{"after": 0, **changes})


def address(shown: RuleFilter, **changes: object) -> str:
    """Returns the address of the page with parts of its filter changed."""
    values = {**shown.model_dump(), **changes}
    query = urlencode({key: value for key, value in values.items() if value})
    return f"/rules?{query}" if query else "/rules"
