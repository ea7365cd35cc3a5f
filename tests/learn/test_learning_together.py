"""Pages that are judged together come out as they would one by one."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewayfilter.interfaces import Page
from gatewayfilter.model import LearnedEntry
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from tests.learn.review_world import BODY, NOW, World

_BODIES = (b"<p>the best bread", b"<p>the best butter", b"<p>our casino", BODY, b"")
_PAGES = st.builds(
    lambda number, body, status: Page(
        f"http://{'ab'[number % 2]}.example/{number}",
        f"http://{'ab'[number % 2]}.example/{number}",
        status,
        {"content-type": "text/html"},
        _BODIES[body],
    ),
    st.integers(0, 5),
    st.integers(0, len(_BODIES) - 1),
    st.sampled_from([200, 200, 200, 404]),
)


def state(world: World) -> tuple[object, ...]:
    """Returns what became of pages; the order of numbers aside."""

    def known(entry: LearnedEntry) -> tuple[str, str, str]:
        return entry.key, entry.action.value, entry.detail

    return (
        sorted(map(known, world.store.lists.learned())),
        sorted((task.key, task.category, task.blocked) for task in world.store.reviews.tasks(limit=1000)),
        sorted(fingerprint.content.proof for fingerprint in world.store.fingerprints.newest(100, NOW)),
        world.counters.as_dict(),
    )


@pytest.mark.slow
@given(pages=st.lists(_PAGES, max_size=6, unique_by=lambda page: page.url))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_together_and_one_by_one_are_the_same(new_store: Callable[[], Store], pages: list[Page]) -> None:
    together, apart = World(new_store(), LearnSettings()), World(new_store(), LearnSettings())
    verdicts = together.sink.batch(pages)
    assert verdicts == [apart.sink.page(page) for page in pages]
    assert state(together) == state(apart)


def test_content_that_comes_twice_at_once_is_judged_once(store: Store) -> None:
    world = World(store, LearnSettings())
    pages = [Page(f"http://a.example/{n}", f"http://a.example/{n}", 200, {"content-type": "text/html"}, BODY) for n in range(3)]
    first, *others = world.sink.batch(pages)
    assert others == [first, first]
    assert world.classify.judged == 1
    assert world.counters.as_dict()["fingerprint_hits"] == 2


@pytest.mark.parametrize("pages", [0, 1])
def test_few_pages_are_a_batch_too(store: Store, pages: int) -> None:
    world = World(store, LearnSettings())
    assert len(world.sink.batch([Page("http://a.example/", "http://a.example/", 200, {}, b"<p>x")] * pages)) == pages


def test_words_that_change_meanwhile_judge_all_of_the_batch_anew(store: Store) -> None:
    world = World(store, LearnSettings())
    world.recognition._words = lambda: f"words of {min(world.classify.judged, 1)}"
    pages = [Page(f"http://a.example/{n}", f"http://a.example/{n}", 200, {}, b"<p>bread %d" % n) for n in range(2)]
    world.sink.batch(pages)
    assert [world.recognition.page(page)[1] for page in pages] == [None, None]
    world.sink.batch(pages)
    assert [world.recognition.page(page)[1] is not None for page in pages] == [True, True]
