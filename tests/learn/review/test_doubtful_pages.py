"""Pages in doubt: allowed, with one review task for each content, whatever a person decides of it."""

from dataclasses import replace

import pytest

from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification, Evidence, ListAction, ReviewState
from gatewayfilter.settings import GrowthMode, LearnSettings
from gatewayfilter.store import Store
from tests.learn.review_world import BODY, STORY, URL, CasinoClassify, World

MIRROR = "http://mirror.example/x"
DOUBTED = f"<title>Perhaps</title><p>perhaps a bet {STORY}</p>".encode()
EVIDENCE = "not blocked, in doubt: gambling, score 12.0 (limit 20.0), doubtful (62 %): bet"


class DoubtfulClassify(CasinoClassify):
    """Blocks casinos, and is in doubt of what says "perhaps", unless those words do not count."""

    def classify_page(self, page: Page) -> Classification:
        self.judged += 1
        text = f"{page.body.decode()} {page.final_url}"
        return self.classify_text(text.replace("perhaps", "") if "perhaps" in page.ignored else text)

    def classify_text(self, text: str) -> Classification:
        found = super().classify_text(text)
        if found.harmful:
            return replace(found, certainty=0.995)
        if "perhaps" not in text:
            return replace(found, certainty=0.02)
        evidence = (Evidence("bet", "gambling", 4.0, "main", 5),)
        return replace(found, score=12.0, title="Perhaps", evidence=evidence, certainty=0.62, doubt="gambling")


def _world(store: Store, settings: LearnSettings | None = None) -> World:
    return World(store, settings or LearnSettings(), classify=DoubtfulClassify())


@pytest.fixture
def world(store: Store) -> World:
    return _world(store)


def test_a_page_in_doubt_is_allowed_and_asked_about(world: World) -> None:
    said = world.visit(body=DOUBTED)
    assert said is not None
    assert (said.harmful, said.doubt) == (False, "gambling")
    (entry,) = world.store.lists.find_learned(["play.example/"])
    assert (entry.action, entry.category, entry.certainty, entry.detail) == (ListAction.ALLOW, "", 0.62, EVIDENCE)
    (task,) = world.store.reviews.tasks()
    assert (task.state, task.doubtful, task.blocked, task.category) == (ReviewState.OPEN, True, False, "gambling")
    assert task.classification.certainty == 0.62
    assert world.counters.as_dict() == {"pages_harmless": 1, "pages_doubtful": 1, "reviews_opened": 1}


def test_verdicts_and_recognised_content_keep_certainty_and_doubt(world: World) -> None:
    world.visit(body=DOUBTED)
    kept = world.store.verdicts.find(URL)
    assert kept is not None
    assert (kept[0].certainty, kept[0].doubt) == (0.62, "gambling")
    known = world.visit(MIRROR, DOUBTED)
    assert known is not None
    assert (known.certainty, known.doubt) == (0.62, "gambling")
    assert world.counters.as_dict()["fingerprint_hits"] == 1


def test_one_content_has_one_task(world: World) -> None:
    for url, body in (
        (URL, DOUBTED),
        (URL, DOUBTED),
        (MIRROR, DOUBTED),
        ("http://third.example/", DOUBTED.replace(b"<p>", b"<p><p>")),
    ):
        world.visit(url, body)
    assert len(world.store.reviews.tasks()) == 1
    world.visit("http://fourth.example/", f"<p>perhaps another {STORY[::-1]}</p>".encode())
    assert len(world.store.reviews.tasks()) == 2


def test_pages_in_doubt_take_half_of_the_queue_at_most(store: Store) -> None:
    world = _world(store, LearnSettings(max_open_reviews=4))
    for number in range(4):
        world.visit(f"http://doubt{number}.example/", f"<p>perhaps {number} {STORY[number * 300 :]}</p>".encode())
    assert [task.doubtful for task in store.reviews.tasks()] == [True, True]
    assert world.counters.as_dict()["reviews_dropped"] == 2
    for number in range(3):
        world.visit(f"http://bad{number}.example/", f"<p>casino {number} {STORY[number * 300 :]}</p>".encode())
    assert [task.doubtful for task in store.reviews.tasks()] == [True, True, False, False]


@pytest.mark.parametrize("mode", GrowthMode)
def test_a_category_without_review_asks_of_no_doubt_either(store: Store, mode: GrowthMode) -> None:
    world = _world(store, LearnSettings(modes={"gambling": mode}))
    world.visit(body=DOUBTED)
    assert world.learned() is ListAction.ALLOW
    assert len(store.reviews.tasks()) == (0 if mode is GrowthMode.BLOCK else 1)


def test_approved_it_is_blocked_as_any_other_and_undone_it_is_in_doubt_again(world: World) -> None:
    world.visit(body=DOUBTED)
    task = world.desk.approve(1, "ada")
    assert (task.blocked, task.state) == (True, ReviewState.APPROVED)
    (entry,) = world.store.lists.find_learned(["play.example/"])
    assert (entry.action, entry.category, entry.certainty) == (ListAction.BLOCK, "gambling", 1.0)
    assert entry.detail == "score 12.0 (limit 20.0), doubtful (62 %): bet; confirmed by a person"
    said = world.visit(MIRROR, DOUBTED)
    assert said is not None
    assert (said.category, said.certainty, said.doubt) == ("gambling", 1.0, "")
    (mirrored,) = world.store.lists.find_learned(["mirror.example/x"])
    assert (mirrored.action, mirrored.certainty) == (ListAction.BLOCK, 1.0)
    undone = world.desk.undo(1, "ada")
    assert (undone.state, undone.blocked, undone.doubtful) == (ReviewState.OPEN, False, True)
    (entry,) = world.store.lists.find_learned(["play.example/"])
    assert (entry.action, entry.certainty, entry.detail) == (ListAction.ALLOW, 0.62, EVIDENCE)
    world.visit(MIRROR, DOUBTED)
    assert world.learned("mirror.example/x") is ListAction.ALLOW
    assert len(world.store.reviews.tasks()) == 1
    assert world.desk.redo(1, "ada").blocked
    assert world.learned() is ListAction.BLOCK


def test_rejected_it_is_harmless_without_doubt_also_in_other_markup(world: World) -> None:
    world.visit(body=DOUBTED)
    world.desk.reject(1, "ada")
    for url, body in ((URL, DOUBTED), (MIRROR, DOUBTED), ("http://third.example/", DOUBTED.replace(b"<p>", b"<p><p>"))):
        said = world.visit(url, body)
        assert said is not None
        assert (said.harmful, said.doubt, said.certainty) == (False, "", 0.0)
    assert [task.state for task in world.store.reviews.tasks()] == [ReviewState.REJECTED]


def test_a_page_that_turns_harmful_takes_the_place_of_its_doubt(world: World) -> None:
    world.visit(body=DOUBTED)
    world.visit(body=BODY)
    (task,) = world.store.reviews.tasks()
    assert (task.task_id, task.group_id, task.doubtful, task.blocked) == (1, 1, False, True)
    assert task.classification.certainty == 0.995
    world.visit(body=DOUBTED)
    assert [task.doubtful for task in world.store.reviews.tasks()] == [False]


def test_doubt_that_only_the_request_raises_is_not_asked_about(world: World) -> None:
    echo = f"<title>Perhaps</title><p>you searched for perhaps: {STORY}</p>".encode()
    said = world.visit("http://search.example/?q=perhaps", echo)
    assert said is not None
    assert (said.harmful, said.doubt) == (False, "")
    assert world.store.reviews.tasks() == []


def test_doubt_of_an_address_is_not_recorded_for_its_content(world: World) -> None:
    story = f"<p>{STORY}</p>".encode()
    first = world.visit("http://play.example/perhaps", story)
    assert first is not None
    assert first.doubt
    other = world.visit("http://other.example/", story)
    assert other is not None
    assert not other.doubt


def test_no_page_counts_as_nearly_the_same_as_one_in_doubt(world: World) -> None:
    world.visit(body=DOUBTED)
    world.visit(MIRROR, DOUBTED.replace(b"perhaps", b"never"))
    assert "near_duplicates" not in world.counters.as_dict()


def test_doubt_that_stays_without_the_words_of_the_request_is_asked_about(world: World) -> None:
    found = world.visit("http://search.example/?q=beans", DOUBTED)
    assert found is not None
    assert found.doubt == "gambling"
    assert [task.doubtful for task in world.store.reviews.tasks()] == [True]


def test_of_two_that_may_be_open_one_may_be_in_doubt_and_of_one_too(store: Store) -> None:
    for most, opened in ((1, 1), (3, 1), (4, 2)):
        world = _world(store, LearnSettings(max_open_reviews=most))
        for number in range(3):
            text = STORY[(number + 3 * most) * 100 :]
            world.visit(f"http://doubt{number}-{most}.example/", f"<p>perhaps {number} {most} {text}</p>".encode())
        assert world.counters.as_dict()["reviews_opened"] == opened
        assert world.counters.as_dict()["reviews_dropped"] == 3 - opened
        for task in store.reviews.tasks(ReviewState.OPEN):
            world.desk.reject(task.task_id, "ada")
