"""Visit, judge, review: what people say stays said."""

from dataclasses import replace

import pytest

from gatewayfilter.errors import ReviewError
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import LearningPipeline, ListGrowth
from gatewayfilter.model import Classification, EntryKind, ListAction, ReviewKind, ReviewState
from gatewayfilter.settings import DomainGrowth, GrowthMode, LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.learn.review_world import BODY, NOW, STORY, TEXT, URL, CasinoClassify, World


@pytest.fixture
def world(store: Store) -> World:
    return World(store, LearnSettings())


def test_a_harmful_page_is_blocked_and_asked_about(world: World) -> None:
    world.visit()
    (task,) = world.store.reviews.tasks()
    assert (task.state, task.kind, task.blocked, task.key, task.text) == (
        ReviewState.OPEN,
        ReviewKind.PAGE,
        True,
        "play.example/",
        TEXT,
    )
    assert world.learned() is ListAction.BLOCK
    world.visit()
    assert len(world.store.reviews.tasks()) == 1
    assert world.counters.as_dict() == {"pages_harmful": 2, "fingerprint_hits": 1, "reviews_opened": 1}


@pytest.mark.parametrize(
    ("mode", "action", "tasks"),
    [
        (GrowthMode.BLOCK, ListAction.BLOCK, 0),
        (GrowthMode.BLOCK_AND_REVIEW, ListAction.BLOCK, 1),
        (GrowthMode.REVIEW, ListAction.ALLOW, 1),
    ],
)
@pytest.mark.parametrize("by_category", [True, False])
def test_modes(store: Store, mode: GrowthMode, action: ListAction, tasks: int, *, by_category: bool) -> None:
    settings = LearnSettings(modes={"gambling": mode}, mode=GrowthMode.BLOCK) if by_category else LearnSettings(mode=mode)
    world = World(store, settings)
    world.visit()
    assert world.learned() is action
    assert [task.blocked for task in store.reviews.tasks()] == [action is ListAction.BLOCK] * tasks


def test_rejected_is_allowed_and_the_same_content_is_never_blocked_again(world: World) -> None:
    world.visit()
    world.desk.reject(1, "ada", "a museum")
    assert world.allowed_by() == ["review 1: not gambling (a museum)"]
    assert world.learned() is None
    for url in (URL, "http://mirror.example/x"):
        said = world.visit(url)
        assert said is not None
        assert not said.harmful
    assert world.learned("mirror.example/x") is ListAction.ALLOW
    assert [task.state for task in world.store.reviews.tasks()] == [ReviewState.REJECTED]
    assert world.classify.judged == 1


def test_rejected_text_is_known_in_other_markup_too(world: World) -> None:
    world.visit()
    world.desk.reject(1, "ada")
    said = world.visit("http://mirror.example/", BODY.replace(b"<p>", b"<p><p>"))
    assert said is not None
    assert not said.harmful
    assert world.classify.judged == 2


def test_approved_stays_blocked_and_its_content_is_known(world: World) -> None:
    world.visit()
    task = world.desk.approve(1, "ada")
    assert (task.state, task.decided_by, task.decided_at) == (ReviewState.APPROVED, "ada", NOW)
    assert world.learned() is ListAction.BLOCK
    world.visit("http://mirror.example/")
    assert world.learned("mirror.example/") is ListAction.BLOCK
    assert len(world.store.reviews.tasks()) == 1


def test_approving_in_review_mode_blocks(store: Store) -> None:
    world = World(store, LearnSettings(mode=GrowthMode.REVIEW))
    world.visit()
    world.desk.approve(1, "ada")
    assert world.learned() is ListAction.BLOCK
    world.visit()
    assert world.learned() is ListAction.BLOCK


def test_another_category(world: World) -> None:
    world.visit()
    assert world.desk.change(1, "fraud", "ada").category == "fraud"
    assert [entry.category for entry in world.store.lists.learned()] == ["fraud"]
    said = world.visit()
    assert said is not None
    assert said.category == "fraud"
    assert len(world.store.reviews.tasks()) == 1


@pytest.mark.parametrize("action", ["approve", "reject", "change"])
def test_every_decision_can_be_undone(world: World, action: str) -> None:
    world.visit()
    before = (world.store.reviews.get(1), list(world.store.lists.learned()), world.store.lists.rules())
    decide(world, action)
    assert before != (world.store.reviews.get(1), list(world.store.lists.learned()), world.store.lists.rules())
    world.desk.undo(1, "bob")
    assert before == (world.store.reviews.get(1), list(world.store.lists.learned()), world.store.lists.rules())
    judged = world.classify.judged
    said = world.visit()
    assert said is not None
    assert said.category == "gambling"
    assert world.classify.judged == judged + 1
    assert [(step.who, step.action, step.undone) for step in world.store.reviews.steps(1)] == [
        ("bob", "undo", False),
        ("ada", action, True),
    ]
    with pytest.raises(ReviewError, match="nothing was decided"):
        world.desk.undo(1, "bob")


def decide(world: World, action: str) -> None:
    if action == "change":
        world.desk.change(1, "fraud", "ada")
    else:
        getattr(world.desk, action)(1, "ada")


def test_a_change_of_mind_and_back(world: World) -> None:
    world.visit()
    world.desk.reject(1, "ada")
    rejected = (world.store.reviews.get(1), world.store.lists.rules())
    with pytest.raises(ReviewError, match="was rejected by ada already: undo that first, or add --overturn"):
        world.desk.change(1, "fraud", "bob")
    world.desk.change(1, "fraud", "bob", overturn=True)
    assert world.store.lists.rules() == []
    assert world.learned() is ListAction.BLOCK
    world.desk.undo(1, "bob")
    task, rules = rejected
    assert world.store.reviews.get(1) == task
    assert [replace(rule, rule_id=0) for rule in world.store.lists.rules()] == [replace(rule, rule_id=0) for rule in rules]
    world.desk.undo(1, "bob")
    found = world.store.reviews.get(1)
    assert found is not None
    assert found.state is ReviewState.OPEN
    assert world.store.lists.rules() == []


def test_a_rule_that_a_person_made_is_left_alone(world: World) -> None:
    world.visit()
    world.desk.reject(1, "ada")
    world.store.lists.add_rule(ListAction.ALLOW, EntryKind.URL, "play.example/", comment="mine")
    world.desk.undo(1, "ada")
    assert world.allowed_by() == ["mine"]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["reject", "reject"], "was rejected by ada already"),
        (["reject", "approve"], "was rejected by ada already: change its category"),
        (["approve", "approve"], "was approved by ada already"),
        (["change", "change"], "is fraud already"),
    ],
)
def test_what_cannot_be_decided_so(world: World, steps: list[str], message: str) -> None:
    world.visit()
    decide(world, steps[0])
    with pytest.raises(ReviewError, match=message):
        decide(world, steps[1])
    with pytest.raises(ReviewError, match="there is no task 7"):
        world.desk.approve(7, "ada")


def test_pages_that_are_alike_stand_in_one_group(world: World) -> None:
    world.visit()
    world.visit("http://mirror.example/")
    world.visit("http://near.example/", BODY.replace(STORY[:8].encode(), b"changed"))
    world.visit(
        "http://far.example/", b"<title>Casino</title><p>casino: something else entirely, of other words and of another length"
    )
    assert [task.group_id for task in world.store.reviews.tasks()] == [1, 1, 1, 4]


def test_the_same_page_without_a_text_stands_in_one_group(world: World) -> None:
    for host, body in (("one", b"<!--casino-->"), ("two", b"<!--casino-->"), ("three", b"<!--casino !-->")):
        world.visit(f"http://{host}.example/", body)
    assert [task.group_id for task in world.store.reviews.tasks()] == [1, 1, 3]


def test_too_many_open_tasks_are_dropped_and_counted(store: Store) -> None:
    world = World(store, LearnSettings(max_open_reviews=1))
    world.visit()
    world.visit("http://mirror.example/")
    assert len(store.reviews.tasks()) == 1
    assert world.counters.as_dict()["reviews_dropped"] == 1
    assert world.learned("mirror.example/") is ListAction.BLOCK


def test_a_rejected_host_is_not_listed_again(store: Store) -> None:
    world = World(store, LearnSettings(domain_pages=3, domains=DomainGrowth.BLOCK))
    for number in range(3):
        world.visit(f"http://play.example/{number}", BODY + b"%d" % number)
    (task,) = [task for task in store.reviews.tasks() if task.kind is ReviewKind.DOMAIN]
    assert (task.key, task.blocked, task.text) == (
        ".play.example",
        True,
        "3 of 3 pages of play.example are harmful, most of them gambling",
    )
    assert world.learned(".play.example") is ListAction.BLOCK
    world.desk.reject(task.task_id, "ada")
    assert world.learned(".play.example") is None
    assert store.lists.rules() == []
    world.visit("http://play.example/9", BODY + b"9")
    assert world.learned("play.example/9") is ListAction.BLOCK
    assert world.learned(".play.example") is None
    world.desk.undo(task.task_id, "ada")
    assert world.learned(".play.example") is ListAction.BLOCK


class NakedClassify:
    """An image classifier as one could be plugged in."""

    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        if content_type != "image/gif":
            return None
        return Classification("adult" if b"naked" in body else "", 1.0, 0.5, text_digest=b"")


def test_images_are_judged_by_whoever_is_plugged_in(store: Store) -> None:
    counters = Counters()
    list_growth = ListGrowth(store.lists, store.verdicts, LearnSettings(), lambda: NOW)
    sink = LearningPipeline(CasinoClassify(), list_growth, counters, images=NakedClassify())
    for name, kind, body in (("a", "gif", b"GIF naked"), ("b", "gif", b"GIF tree"), ("c", "png", b"PNG naked")):
        sink.page(Page(f"http://{name}.example/", f"http://{name}.example/", 200, {"content-type": f"image/{kind}"}, body))
    assert {entry.key: entry.action for entry in store.lists.learned()} == {
        "a.example/": ListAction.BLOCK,
        "b.example/": ListAction.ALLOW,
    }
    assert counters.as_dict() == {"pages_harmful": 1, "pages_harmless": 1, "pages_skipped": 1}


def test_each_decision_is_the_verdict_of_the_pages_addresses(world: World) -> None:
    world.visit(URL, final_url="http://other.example/")

    def verdicts() -> list[tuple[str, float | None]]:
        found = [world.store.verdicts.find(url) for url in (URL, "http://other.example/")]
        return [(known[0].category, known[0].certainty) for known in found if known is not None]

    assert verdicts() == [("gambling", None)] * 2
    world.desk.reject(1, "ada")
    assert verdicts() == [("", 0.0)] * 2
    world.desk.undo(1, "ada")
    assert verdicts() == [("gambling", None)] * 2
    world.desk.change(1, "fraud", "ada")
    assert verdicts() == [("fraud", 1.0)] * 2


def test_a_change_to_the_category_that_it_has_approves_an_open_task(world: World) -> None:
    world.visit()
    with pytest.raises(ReviewError, match="is gambling already"):
        world.desk.change(1, "", "ada")
    assert world.desk.change(1, "gambling", "ada").state is ReviewState.APPROVED
    with pytest.raises(ReviewError, match="is gambling already"):
        world.desk.change(1, "gambling", "ada")


def test_a_decision_may_be_overturned_by_who_made_it(world: World) -> None:
    world.visit()
    world.desk.approve(1, "ada")
    with pytest.raises(ReviewError, match="was approved by ada already"):
        world.desk.reject(1, "bob")
    assert world.desk.reject(1, "ada").state is ReviewState.REJECTED
    assert world.desk.change(1, "fraud", "bob", overturn=True).decided_by == "bob"


def test_a_host_that_is_approved_is_blocked_for_the_reason_that_its_task_gives(store: Store) -> None:
    world = World(store, LearnSettings(domain_pages=3, domains=DomainGrowth.REVIEW))
    for number in range(3):
        world.visit(f"http://play.example/{number}", BODY + b"%d" % number)
    (task,) = [task for task in store.reviews.tasks() if task.kind is ReviewKind.DOMAIN]
    assert world.learned(".play.example") is None
    world.desk.approve(task.task_id, "ada")
    (entry,) = store.lists.find_learned([".play.example"])
    assert (entry.action, entry.detail) == (ListAction.BLOCK, f"{task.text}; confirmed by a person")
    assert (entry.created_at, entry.expires_at) == (NOW, NOW + 30 * 86_400.0)
    assert store.verdicts.find(task.url) is None
