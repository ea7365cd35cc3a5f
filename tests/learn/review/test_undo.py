"""Steps taken back and done again, and what others said meanwhile."""

from dataclasses import replace
from typing import Any

import pytest

from gatewayfilter.errors import ReviewError
from gatewayfilter.model import EntryKind, ListAction, ReviewState, ReviewStep
from gatewayfilter.settings import GrowthMode, LearnSettings
from gatewayfilter.store import Store
from tests.learn.review_world import BODY, World

ENTRY = "http://play.example/go"
LANDING = "http://landing.example/casino"


@pytest.fixture
def world(store: Store) -> World:
    return World(store, LearnSettings())


def state_of(world: World) -> tuple[object, ...]:
    """Everything that a step changes, without the numbers that a database gives."""
    task = world.store.reviews.get(1)
    assert task is not None
    rules = sorted(replace(rule, rule_id=0).pattern + rule.comment for rule in world.store.lists.rules())
    known = [found and found.classification.category for found in map(world.recognition.recorded, (task.page, task.content))]  # type: ignore[arg-type]
    return task.state, task.category, task.blocked, task.decided_by, sorted(map(str, world.store.lists.learned())), rules, known


@pytest.mark.parametrize("steps", ["approve", "reject", "change", "reject change", "change reject", "approve change"])
def test_steps_are_undone_and_done_again_one_by_one(world: World, steps: str) -> None:
    world.visit()
    seen = [state_of(world)]
    for number, step in enumerate(steps.split()):
        decide(world, step, who=f"person {number}")
        seen.append(state_of(world))
    for before in reversed(seen[1:-1]):
        world.desk.undo(1, "bob")
        assert state_of(world) == before
    world.desk.undo(1, "bob")
    first = state_of(world)
    assert first[:6] == seen[0][:6]
    with pytest.raises(ReviewError, match="nothing was decided"):
        world.desk.undo(1, "bob")
    for number in range(len(steps.split())):
        world.desk.redo(1, f"person {number}")
        assert state_of(world)[:3] == seen[number + 1][:3]
        assert state_of(world)[4:] == seen[number + 1][4:]
    with pytest.raises(ReviewError, match="nothing of task 1 was undone last"):
        world.desk.redo(1, "bob")
    world.desk.undo(1, "bob")
    world.desk.redo(1, "bob")
    assert state_of(world)[:3] == seen[-1][:3]


def decide(world: World, step: str, who: str = "ada") -> None:
    if step == "change":
        world.desk.change(1, "fraud", who, "why", overturn=True)
    elif step == "reject":
        world.desk.reject(1, who, "why", overturn=True)
    else:
        world.desk.approve(1, who, "why")


def test_after_a_new_decision_nothing_is_done_again(world: World) -> None:
    world.visit()
    with pytest.raises(ReviewError, match="nothing of task 1 was undone"):
        world.desk.redo(1, "ada")
    world.desk.reject(1, "ada")
    world.desk.undo(1, "ada")
    world.desk.approve(1, "ada")
    with pytest.raises(ReviewError, match="nothing of task 1 was undone"):
        world.desk.redo(1, "ada")


def test_doing_it_again_says_who_and_keeps_the_reason(world: World) -> None:
    world.visit()
    world.desk.reject(1, "ada", "a museum")
    world.desk.undo(1, "bob")
    world.desk.redo(1, "eve")
    steps = world.store.reviews.steps(1)
    assert [(step.who, step.action, step.detail["note"]) for step in steps] == [
        ("eve", "reject", "a museum"),
        ("bob", "undo", ""),
        ("ada", "reject", "a museum"),
    ]
    assert world.allowed_by() == ["review 1: not gambling (a museum)"]


def test_an_undo_leaves_what_another_said_of_the_same_content(world: World) -> None:
    world.visit()
    world.visit("http://mirror.example/")
    world.desk.reject(1, "ada")
    world.now += 1
    world.desk.reject(2, "bob")
    world.now += 1
    world.desk.undo(1, "ada")
    said = world.visit("http://third.example/")
    assert said is not None
    assert not said.harmful
    world.desk.undo(2, "bob")
    assert word_of(world) is None, "nobody's word stands"


def test_an_undo_brings_back_what_another_said_before(world: World) -> None:
    world.visit()
    world.visit("http://mirror.example/")
    world.desk.reject(1, "ada")
    world.now += 1
    world.desk.approve(2, "bob")
    assert word_of(world) == ("bob", "gambling")
    world.desk.undo(2, "bob")
    assert word_of(world) == ("ada", "")


def word_of(world: World) -> tuple[str, str] | None:
    """Who said what of the content of task 1."""
    task = world.store.reviews.get(1)
    assert task is not None
    assert task.page is not None
    found = world.recognition.recorded(task.page)
    return (found.judge, found.classification.category) if found else None


def test_a_rule_that_was_switched_off_comes_back_switched_off(world: World) -> None:
    world.visit()
    rule = world.store.lists.add_rule(ListAction.BLOCK, EntryKind.URL, "play.example/", comment="mine", enabled=False)
    world.desk.reject(1, "ada")
    world.desk.undo(1, "ada")
    assert [replace(found, rule_id=0) for found in world.store.lists.rules()] == [replace(rule, rule_id=0)]


def test_steps_of_before_tasks_knew_two_addresses_can_be_undone(world: World) -> None:
    world.visit()
    world.desk.reject(1, "ada")
    (step,) = world.store.reviews.steps(1)
    detail: dict[str, Any] = step.detail
    old = {name: detail[name] for name in ("state", "category", "blocked", "decided_at", "decided_by", "note")}
    old |= {"learned": detail["learned"][0], "former_rule": None}
    task = world.store.reviews.get(1)
    assert task is not None
    world.store.reviews.undo(task, step.step_id, ReviewStep(0, 1, world.now, "ada", "reject", detail=old))
    world.desk.undo(1, "ada")
    assert world.learned() is ListAction.BLOCK
    assert world.allowed_by() == []


@pytest.mark.parametrize("mode", [GrowthMode.BLOCK_AND_REVIEW, GrowthMode.REVIEW])
def test_a_word_about_a_redirect_is_about_both_addresses(store: Store, mode: GrowthMode) -> None:
    world = World(store, LearnSettings(mode=mode))
    world.visit(ENTRY, final_url=LANDING)

    def both() -> list[ListAction | None]:
        return [world.learned("play.example/go"), world.learned("landing.example/casino")]

    before = both()
    world.desk.approve(1, "ada")
    assert both() == [ListAction.BLOCK] * 2
    world.desk.change(1, "fraud", "ada")
    assert {entry.category for entry in store.lists.learned()} == {"fraud"}
    world.desk.reject(1, "ada")
    assert sorted(rule.pattern for rule in store.lists.rules()) == ["landing.example/casino", "play.example/go"]
    assert both() == [None, None]
    for _ in range(3):
        world.desk.undo(1, "ada")
    assert both() == before
    assert store.lists.rules() == []


def test_a_redirect_to_https_is_one_address(world: World) -> None:
    world.visit("http://play.example/", final_url="https://play.example/")
    task = world.store.reviews.get(1)
    assert task is not None
    assert (task.keys, task.final_url) == (("play.example/",), "")


def test_open_tasks_about_the_same_body_or_text_are_found(world: World) -> None:
    world.visit()
    world.visit("http://mirror.example/")
    world.visit("http://other-markup.example/", BODY.replace(b"<p>", b"<p><p>"))
    world.visit("http://near.example/", BODY + b"x")
    assert [task.task_id for task in world.desk.same_content(1)] == [2, 3]
    world.desk.approve(2, "ada")
    assert [task.task_id for task in world.desk.same_content(1)] == [3]
    assert [task.task_id for task in world.desk.same_content(4)] == []
    assert world.desk.same_content(9) == []


def test_a_confirmed_page_stays_blocked_whatever_it_says_later(world: World) -> None:
    world.visit()
    world.desk.approve(1, "ada")
    world.visit(body=b"<p>beans")
    assert world.learned() is ListAction.BLOCK
    world.now += 400 * 86_400.0
    world.visit(body=b"<p>beans and poles")
    assert world.learned() is ListAction.ALLOW, "a person's word counts for learn.block_days"


def test_where_pages_wait_for_a_person_a_confirmed_one_stays_blocked_when_it_changes(store: Store) -> None:
    world = World(store, LearnSettings(mode=GrowthMode.REVIEW))
    world.visit()
    world.desk.approve(1, "ada")
    world.visit(body=BODY + b" more")
    assert world.learned() is ListAction.BLOCK
    world.now += 400 * 86_400.0
    world.visit(body=BODY + b" and more")
    assert world.learned() is ListAction.BLOCK, "nobody is asked twice, so it is blocked without"
    assert [task.state for task in store.reviews.tasks()] == [ReviewState.APPROVED]


def test_of_two_tasks_about_one_address_the_newer_is_decided(world: World) -> None:
    world.visit()
    world.desk.change(1, "fraud", "ada")
    world.visit(body=BODY + b" more")
    assert len(world.store.reviews.tasks()) == 1, "what a person confirmed is not asked about again"
    world.now += 400 * 86_400.0
    world.visit(body=BODY + b" and more")
    assert [(task.category, task.state) for task in world.store.reviews.tasks()] == [
        ("fraud", ReviewState.APPROVED),
        ("gambling", ReviewState.OPEN),
    ]
    with pytest.raises(ReviewError, match="task 1 is history: task 2 is about the same address now"):
        world.desk.undo(1, "ada")


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
def test_an_undo_brings_back_the_newest_of_what_others_said(world: World, first: int, second: int) -> None:
    for host in ("play", "mirror", "third"):
        world.visit(f"http://{host}.example/")
    for task_id in (first, second, 3):
        world.now += 1
        if task_id == first:
            world.desk.reject(task_id, "ada")
        else:
            world.desk.approve(task_id, "bob" if task_id == second else "eve")
    assert word_of(world) == ("eve", "gambling")
    world.desk.undo(3, "eve")
    assert word_of(world) == ("bob", "gambling")
    world.desk.undo(second, "bob")
    assert word_of(world) == ("ada", "")


@pytest.mark.parametrize(("group", "scope"), [("homework", ""), ("", "client:tablet")])
def test_rules_for_some_clients_or_of_a_group_are_left_alone(world: World, group: str, scope: str) -> None:
    world.visit()
    add = world.store.lists.add_rule
    add(ListAction.BLOCK, EntryKind.URL, "play.example/", comment="for all")
    add(ListAction.ALLOW, EntryKind.URL, "play.example/", comment="review 1: of others", group=group, scope=scope)
    add(ListAction.ALLOW, EntryKind.DOMAIN, ".play.example", comment="review 1: a domain")
    before = {rule.comment for rule in world.store.lists.rules()}
    world.desk.reject(1, "ada")
    assert {rule.comment for rule in world.store.lists.rules()} == before - {"for all"} | {"review 1: not gambling"}
    world.desk.undo(1, "ada")
    assert {rule.comment for rule in world.store.lists.rules()} == before
    world.desk.approve(1, "ada")
    assert {rule.comment for rule in world.store.lists.rules()} == before


def test_an_old_step_gives_back_the_rule_that_it_replaced(world: World) -> None:
    world.visit()
    world.desk.reject(1, "ada")
    (step,) = world.store.reviews.steps(1)
    old = {name: step.detail[name] for name in ("state", "category", "blocked", "decided_at", "decided_by", "note")}
    rule = {"rule_id": 9, "action": "block", "kind": "url", "pattern": "play.example/", "comment": "mine"}
    task = world.store.reviews.get(1)
    assert task is not None
    detail = old | {"learned": None, "former_rule": rule}
    world.store.reviews.undo(task, step.step_id, ReviewStep(0, 1, world.now, "ada", "reject", detail=detail))
    world.desk.undo(1, "ada")
    assert world.learned() is None
    assert [(found.action, found.comment) for found in world.store.lists.rules()] == [(ListAction.BLOCK, "mine")]
