"""By what origins know judged pages again."""

from gatewayfilter.interfaces import Validators
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.crawling.validators import KEEP_S

A, B = "http://a.example/", "http://b.example/"
TAGGED = Validators("http://a.example/home", '"v1"', "", bytes(range(256)))
DATED = Validators(B, "", "Sat, 01 Jan 2000 00:00:00 GMT")


def test_what_was_noted_is_found_by_the_url_that_was_asked_for(store: Store) -> None:
    store.validators.note(A, TAGGED, "words-1", 100.0)
    store.validators.note(B, DATED, "words-1", 100.0)
    assert store.validators.find([A, B, "http://c.example/"], "words-1", 50.0) == {A: TAGGED, B: DATED}
    assert store.validators.find([], "words-1", 50.0) == {}


def test_other_words_and_what_is_too_old_find_nothing(store: Store) -> None:
    store.validators.note(A, TAGGED, "words-1", 100.0)
    assert store.validators.find([A], "words-2", 50.0) == {}
    assert store.validators.find([A], "words-1", 100.5) == {}


def test_the_newest_counts_and_none_forgets(store: Store) -> None:
    store.validators.note(A, TAGGED, "words-1", 100.0)
    store.validators.note(A, DATED, "words-1", 200.0)
    assert store.validators.find([A], "words-1", 150.0) == {A: DATED}
    store.validators.note(A, None, "words-1", 300.0)
    assert store.validators.find([A], "words-1", 0.0) == {}


def test_many_at_once(store: Store) -> None:
    urls = [f"http://{number}.example/" for number in range(1200)]
    for url in urls[::100]:
        store.validators.note(url, DATED, "w", 1.0)
    assert set(store.validators.find(urls, "w", 0.0)) == set(urls[::100])


def test_what_is_old_is_swept(store: Store) -> None:
    store.validators.note(A, TAGGED, "w", 1.0)
    store.validators._sweep_in = 0
    store.validators.note(B, DATED, "w", 2.0 + KEEP_S)
    assert store.validators.find([A, B], "w", 0.0) == {B: DATED}
