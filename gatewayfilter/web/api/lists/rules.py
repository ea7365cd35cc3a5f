"""`/api/v1/rules`: own rules."""

from typing import Annotated, Final

from fastapi import Query, Response

from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import ListAction
from gatewayfilter.use_cases.lists.patterns import Pattern
from gatewayfilter.use_cases.lists.rule_editing import (
    RuleValues,
    add_rules,
    edit_rule,
    find_rule,
    read_wanted,
    remove_rule,
    rule_groups,
    rule_page,
    switch_rules,
    version_of,
)
from gatewayfilter.web.access.changes import IfMatch, changing, check_version, etag
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.lists.rule_models import (
    AddedRuleModel,
    AddedRules,
    Limit,
    NewRules,
    RuleChange,
    RuleGroupModel,
    RuleGroupsModel,
    RuleModel,
    RuleNumber,
    RulePageModel,
    RuleSwitch,
    RuleTestModel,
    SwitchedModel,
    TestBody,
)
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/rules", tags=["rules"])
_LONGEST: Final = 300


@router.get("", operation_id="list_rules")
def list_rules(
    services: Services,
    _: Viewer,
    q: Annotated[str, Query(description="Part of the pattern, the comment or the group.", max_length=_LONGEST)] = "",
    action: Annotated[ListAction | None, Query(description="Only these.")] = None,
    group: Annotated[str | None, Query(description='Only of this group; "" for those in none.', max_length=_LONGEST)] = None,
    scope: Annotated[
        str | None, Query(description='Only for client:NAME or group:NAME; "" for those for everybody.', max_length=_LONGEST)
    ] = None,
    enabled: Annotated[bool | None, Query(description="Only those that count, or do not.")] = None,
    after: Annotated[int, Query(description="`next` of the page before, 0 for the first.", ge=0, lt=2**62)] = 0,
    limit: Limit = 100,
) -> RulePageModel:
    """Returns rules, newest first."""
    query = RuleQuery(q, action, group, scope, enabled)
    page = rule_page(services.store, query, after, limit)
    return RulePageModel(
        items=[RuleModel.of(rule) for rule in page.rules], next=page.after or None, total=services.store.lists.count_rules(query)
    )


@router.post("", operation_id="add_rules", status_code=201)
def add(services: Services, identity: Admin, body: NewRules) -> AddedRules:
    """Adds rules, or changes action, comment and expiry of those that are there. They count within a second."""
    patterns = [read_wanted(text, body.action, exact=body.exact, force=body.force) for text in body.patterns]
    with changing(services, identity, "rule.added", ", ".join(body.patterns)[:_LONGEST]):
        return AddedRules(items=[AddedRuleModel.of(added) for added in add_rules(services.store, patterns, body.values())])


@router.get("/groups", operation_id="list_rule_groups")
def list_groups(services: Services, _: Viewer) -> RuleGroupsModel:
    """Returns the groups of rules, by name."""
    found = rule_groups(services.store)
    return RuleGroupsModel(items=[RuleGroupModel(group=one.group, rules=one.entries, enabled=one.enabled) for one in found])


@router.post("/switch", operation_id="switch_rules")
def switch(services: Services, identity: Admin, body: RuleSwitch) -> SwitchedModel:
    """Switches rules on or off: those of `ids`, or all of `group`."""
    subject = f"group {body.group}" if not body.ids else ", ".join(map(str, body.ids))[:_LONGEST]
    if not body.ids and not body.group:
        return SwitchedModel(rules=0, changed=0)
    with changing(services, identity, "rule.switched", subject, "on" if body.enabled else "off"):
        found = switch_rules(services.store, [str(number) for number in body.ids], body.group or None, enabled=body.enabled)
    return SwitchedModel(rules=found.entries, changed=found.changed)


@router.post("/test", operation_id="test_rules")
def test(services: Services, _: Viewer, body: TestBody) -> RuleTestModel:
    """Tests rules on addresses and on what was requested lately; nothing is stored."""
    from gatewayfilter.use_cases.lists.rule_tester import try_rules  # noqa: PLC0415  the engine, which is imported when needed

    return RuleTestModel.of(try_rules(body.rules, body.urls, body.action, services.store))


@router.get("/{rule_id}", operation_id="get_rule")
def get(services: Services, _: Viewer, rule_id: RuleNumber, response: Response) -> RuleModel:
    """Returns a rule."""
    rule = find_rule(services.store, rule_id)
    response.headers.update(etag(version_of(rule)))
    return RuleModel.of(rule)


@router.patch("/{rule_id}", operation_id="change_rule")
def change(
    services: Services, identity: Admin, rule_id: RuleNumber, body: RuleChange, response: Response, if_match: IfMatch = ""
) -> RuleModel:
    """Changes a rule, which keeps its number."""
    with changing(services, identity, "rule.changed", str(rule_id)) as recording:
        rule = find_rule(services.store, rule_id)
        recording.subject = Pattern(rule.kind, rule.pattern).written()
        check_version(if_match, lambda: version_of(rule))
        given = body.model_fields_set
        action = body.action or rule.action
        pattern = Pattern(rule.kind, rule.pattern)
        if body.pattern is not None and body.pattern != pattern.written():
            pattern = read_wanted(body.pattern, action, force=body.force)
        values = RuleValues(
            action,
            rule.comment if body.comment is None else body.comment,
            rule.group if body.group is None else body.group,
            body.expires_at if "expires_at" in given else rule.expires_at,
            rule.scope if body.scope is None else body.scope,
        )
        enabled = rule.enabled if body.enabled is None else body.enabled
        changed = edit_rule(services.store, rule_id, pattern, values, enabled=enabled)
    response.headers.update(etag(version_of(changed)))
    return RuleModel.of(changed)


@router.delete("/{rule_id}", operation_id="remove_rule", status_code=204, response_class=Response)
def remove(services: Services, identity: Admin, rule_id: RuleNumber, if_match: IfMatch = "") -> None:
    """Removes a rule."""
    with changing(services, identity, "rule.removed", str(rule_id)) as recording:
        rule = find_rule(services.store, rule_id)
        recording.subject = Pattern(rule.kind, rule.pattern).written()
        check_version(if_match, lambda: version_of(rule))
        remove_rule(services.store, rule_id)
