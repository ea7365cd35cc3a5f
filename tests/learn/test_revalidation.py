"""Pages that have not changed: what they are asked for by, and what "not modified" does to their entries."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Page, Validators
from gatewayfilter.learn import ContentIds, ListGrowth, Recognition, Revisits
from gatewayfilter.learn.revalidation import BELIEVED_HARMFUL_S, BELIEVED_S, MAX_LENGTH, validators_of
from gatewayfilter.learn.verdicts.content_id import image_digest, image_identity
from gatewayfilter.model import Classification, ListAction
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url

DAY_S = 86_400.0
URL = "http://a.example/page"
HARMFUL = Classification("gambling", 42.0, 20.0)
HARMLESS = Classification("", 0.0, 20.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path / 'test.sqlite3'}")) as opened:
        yield opened


class Reader:
    """Reads a page's text: all of its body but markup."""

    def text_of(self, page: Page) -> str:
        if page.body.startswith(b"!"):
            raise ClassifyError("no text in it")
        return page.body.removeprefix(b"<p>").decode()


class Desk:
    """Revisits over a real database, with a clock and words that can be turned."""

    def __init__(self, store: Store, **settings: object) -> None:
        self.now = 1_000_000.0
        self.words = "words-1"
        chosen = LearnSettings.model_validate(settings)
        self.list_growth = ListGrowth(store.lists, store.verdicts, chosen, clock=lambda: self.now)
        self.recognition = Recognition(store.fingerprints, ContentIds(bytes(32)), lambda: self.words, lambda: self.now)
        self.revisits = Revisits(
            store.validators,
            store.verdicts,
            self.list_growth,
            chosen,
            lambda: self.words,
            lambda: self.now,
            recognition=self.recognition,
            read_text=Reader(),
        )


def page(*headers: tuple[str, str], status: int = 200, final: str = URL) -> Page:
    return Page(URL, final, status, dict(headers), b"<p>words")


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ([("etag", '"v1"')], Validators(URL, '"v1"', "")),
        ([("etag", 'W/"v1"'), ("last-modified", "Sat, 01 Jan 2000")], Validators(URL, 'W/"v1"', "Sat, 01 Jan 2000")),
        ([("last-modified", "Sat, 01 Jan 2000")], Validators(URL, "", "Sat, 01 Jan 2000")),
        ([], None),
        ([("etag", "x" * MAX_LENGTH)], Validators(URL, "x" * MAX_LENGTH, "")),
        ([("etag", "x" * (MAX_LENGTH + 1))], None),
        ([("etag", '"a\r\nX: y"')], None),
        ([("etag", '"é"')], None),
        ([("etag", "")], None),
    ],
)
def test_which_validators_a_page_has(headers: list[tuple[str, str]], known: Validators | None) -> None:
    assert validators_of(page(*headers)) == known


def test_an_unchanged_page_counts_anew_without_a_judgement(store: Store) -> None:
    desk = Desk(store, block_days=30)
    desk.list_growth.learn(page(), HARMFUL)
    desk.revisits.note(page(("etag", '"v1"')))
    (before,) = store.lists.find_learned((parse_url(URL).key,))
    desk.now += 29 * DAY_S
    assert replace(desk.revisits.conditions([URL])[URL], contents=b"") == Validators(URL, '"v1"', "")
    assert desk.revisits.renew(page(status=304)) == HARMFUL
    (after,) = store.lists.find_learned((parse_url(URL).key,))
    assert after.expires_at == before.expires_at + 29 * DAY_S
    assert (after.action, after.category) == (ListAction.BLOCK, "gambling")


def test_an_entry_that_ran_out_and_was_taken_off_comes_back(store: Store) -> None:
    desk = Desk(store)
    desk.list_growth.learn(page(), HARMLESS)
    desk.revisits.note(page(("etag", '"v1"')))
    store.lists.remove_learned((parse_url(URL).key,))
    assert desk.revisits.renew(page(status=304)) == HARMLESS
    (entry,) = store.lists.find_learned((parse_url(URL).key,))
    assert entry.action is ListAction.ALLOW


def test_an_origin_is_believed_only_so_long_whatever_it_says(store: Store) -> None:
    desk = Desk(store)
    desk.list_growth.learn(page(), HARMLESS)
    desk.revisits.note(page(("etag", '"v1"')))
    for _ in range(4):
        desk.now += BELIEVED_S / 4 - 1
        assert desk.revisits.conditions([URL])
        desk.revisits.renew(page(status=304))
    desk.now += 5
    assert desk.revisits.conditions([URL]) == {}


def test_a_harmful_page_s_origin_is_believed_longer(store: Store) -> None:
    desk = Desk(store)
    desk.list_growth.learn(page(), HARMFUL)
    desk.revisits.note(page(("etag", '"v1"')))
    desk.now += BELIEVED_S + DAY_S
    assert desk.revisits.conditions([URL])
    desk.now += BELIEVED_HARMFUL_S - BELIEVED_S
    assert desk.revisits.conditions([URL]) == {}


def test_other_words_have_the_page_judged_anew(store: Store) -> None:
    desk = Desk(store)
    desk.revisits.note(page(("etag", '"v1"')))
    desk.words = "words-2"
    assert desk.revisits.conditions([URL]) == {}


def test_a_page_that_lost_its_validators_is_fetched_whole(store: Store) -> None:
    desk = Desk(store)
    desk.revisits.note(page(("etag", '"v1"')))
    desk.revisits.note(page())
    assert desk.revisits.conditions([URL]) == {}


def test_what_was_never_judged_is_not_renewed(store: Store) -> None:
    desk = Desk(store)
    assert desk.revisits.renew(page(status=304)) is None
    assert list(store.lists.learned()) == []


@pytest.mark.parametrize(("judged", "renewed"), [(HARMFUL, False), (HARMLESS, True)])
def test_a_harmful_page_that_waits_for_a_person_is_judged_anew(store: Store, judged: Classification, *, renewed: bool) -> None:
    desk = Desk(store, mode="review")
    desk.list_growth.learn(page(), judged, block=False)
    assert (desk.revisits.renew(page(status=304)) is not None) is renewed


@pytest.mark.parametrize("judged", [HARMFUL, HARMLESS])
@pytest.mark.parametrize("of_text", [False, True])
def test_a_person_s_word_about_the_same_content_has_the_page_fetched_whole(
    store: Store, judged: Classification, *, of_text: bool
) -> None:
    desk = Desk(store)
    desk.list_growth.learn(page(), judged)
    desk.revisits.note(page(("etag", '"v1"')))
    ids = desk.recognition.ids
    said = HARMLESS if judged.harmful else HARMFUL
    desk.recognition.record(ids.of_page(b"<p>other"), said, "http://b.example/", judge="anna")
    assert desk.revisits.conditions([URL])
    content = ids.of_text("words") if of_text else ids.of_page(b"<p>words")
    desk.recognition.record(content, said, "http://b.example/", judge="anna")
    # A harmless page is not asked about by its text: the judge would not ask for that either.
    assert bool(desk.revisits.conditions([URL])) is (of_text and not judged.harmful)
    if not of_text:  # and it stays so until that word is taken back: the verdict rests on it
        desk.revisits.note(page(("etag", '"v2"')))
        desk.recognition.forget(content)
        assert desk.revisits.conditions([URL]) == {}
        desk.revisits.note(page(("etag", '"v2"')))
        assert desk.revisits.conditions([URL])


def test_the_classifier_s_own_fingerprint_is_nobody_s_word(store: Store) -> None:
    desk = Desk(store)
    desk.revisits.note(page(("etag", '"v1"')))
    desk.recognition.record(desk.recognition.ids.of_page(b"<p>words"), HARMLESS, URL)
    assert desk.revisits.conditions([URL])


def test_an_image_that_a_list_knows_by_now_is_fetched_whole(store: Store) -> None:
    desk = Desk(store)
    desk.revisits.note(page(("etag", '"v1"'), ("content-type", "image/png")))
    assert desk.revisits.conditions([URL])
    desk.recognition.record(image_identity(image_digest(b"<p>words")), HARMFUL, "", judge="list")
    assert desk.revisits.conditions([URL]) == {}


def test_a_page_that_is_renewed_counts_no_more_for_its_host(store: Store) -> None:
    desk = Desk(store)
    desk.list_growth.learn(page(), replace(HARMFUL, text_digest=b"d" * 16), counts=False)
    desk.revisits.renew(page(status=304))
    assert store.verdicts.host_pages("a.example").pages == 0


def test_a_page_whose_text_cannot_be_read_is_known_by_its_body(store: Store) -> None:
    desk = Desk(store)
    desk.list_growth.learn(page(), HARMFUL)
    whole = replace(page(("etag", '"v1"')), body=b"!words")
    desk.revisits.note(whole)
    assert desk.revisits.conditions([URL])
    desk.recognition.record(desk.recognition.ids.of_page(whole.body), HARMLESS, URL, judge="anna")
    assert desk.revisits.conditions([URL]) == {}


def test_where_no_content_is_recorded_pages_are_asked_for_by_their_validators(store: Store) -> None:
    desk = Desk(store)
    plain = Revisits(store.validators, store.verdicts, desk.list_growth, LearnSettings(), lambda: "words-1", lambda: desk.now)
    plain.note(page(("etag", '"v1"')))
    assert plain.conditions([URL]) == {URL: Validators(URL, '"v1"', "")}
    assert plain.conditions(["http://a.example/other"]) == {}
