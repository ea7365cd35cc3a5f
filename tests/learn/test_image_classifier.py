"""Somebody else's image classifier: it may fail in any way, and no picture is judged twice."""

import pytest

from gatewayfilter.errors import ConfigError
from gatewayfilter.learn import load_image_classifier
from gatewayfilter.learn.image_classifier import ForeignImages
from gatewayfilter.model import Classification, ListAction
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from tests.learn.review_world import World

HERE = "tests.learn.test_image_classifier"
BAD, GOOD = b"GIF naked", b"GIF tree"


class NakedClassify:
    """Finds what says so."""

    def __init__(self) -> None:
        self.judged = 0

    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        del content_type
        self.judged += 1
        if b"fault" in body:
            raise ValueError("no picture")
        if b"odd" in body:
            return "adult"  # type: ignore[return-value]
        return Classification("adult" if b"naked" in body else "", 1.0, 0.5)


READY = NakedClassify()


def failing() -> NakedClassify:
    raise RuntimeError("no model here")


class Nothing:
    """No classifier."""


@pytest.mark.parametrize("name", ["NakedClassify", "READY"])
def test_a_class_or_an_object_is_named(name: str) -> None:
    found = load_image_classifier(f"{HERE}:{name}")
    assert found is not None
    said = found.classify_image(BAD, "image/gif")
    assert said is not None
    assert said.category == "adult"
    assert load_image_classifier("") is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no_such_module_here:X", "No module named"),
        (f"{HERE}:Missing", "has no attribute"),
        (f"{HERE}:failing", "no model here"),
        (f"{HERE}:Nothing", "has no method classify_image"),
        (f"{HERE}:BAD", "cannot be used"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        load_image_classifier(name)
    assert name in str(raised.value)


def test_one_that_fails_has_not_judged(caplog: pytest.LogCaptureFixture) -> None:
    images = ForeignImages(NakedClassify(), "theirs")
    for _ in range(3):
        assert images.classify_image(b"fault", "image/gif") is None
    assert images.classify_image(b"odd", "image/gif") is None
    assert [record.getMessage() for record in caplog.records] == [
        "the image classifier theirs failed: ValueError: no picture",
        "the image classifier theirs failed: it answers with a str, not with a Classification or None",
    ]


def test_a_picture_is_judged_once_and_a_person_has_the_last_word(store: Store) -> None:
    images = NakedClassify()
    world = World(store, LearnSettings(), images=images)

    def look(name: str, body: bytes) -> ListAction | None:
        world.visit(f"http://{name}.example/", body, content_type="image/gif")
        return world.learned(f"{name}.example/")

    assert (look("a", BAD), look("b", GOOD)) == (ListAction.BLOCK, ListAction.ALLOW)
    assert (look("c", BAD), look("d", GOOD)) == (ListAction.BLOCK, ListAction.ALLOW)
    assert images.judged == 2
    first = store.reviews.tasks()[0]
    assert (first.url, first.score_breakdown) == ("http://a.example/", None)
    for task in (first, *world.desk.same_content(first.task_id)):
        world.desk.reject(task.task_id, "ada")
    assert look("e", BAD) is ListAction.ALLOW
    assert images.judged == 2


class Grumbling:
    """Fails each time for another reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.count = 0

    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        self.count += 1
        raise ValueError(f"{self.count}{self.reason}" if body else self.reason)


def test_what_is_logged_of_failures_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    other = ForeignImages(Grumbling("x" * 500), "other")
    for _ in range(2):
        assert other.classify_image(b"", "image/gif") is None
    assert [record.getMessage() for record in caplog.records] == [f"the image classifier other failed: ValueError: {'x' * 188}"]
    caplog.clear()
    many = ForeignImages(Grumbling(" is wrong"), "many")
    for _ in range(103):
        many.classify_image(b"x", "image/gif")
    assert len(caplog.records) == 100
