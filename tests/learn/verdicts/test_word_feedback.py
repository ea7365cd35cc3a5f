"""Word feedback: decisions lower words within bounds, undo restores them, and nobody else has a say."""

from collections.abc import Callable
from dataclasses import replace
from math import log2

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewayfilter.errors import ReviewError
from gatewayfilter.interfaces import DecidedPage, PageDecision, UnblockRequest
from gatewayfilter.learn import WordFeedback
from gatewayfilter.learn.verdicts.word_feedback import LEAST_FACTOR, LOG_ODDS, lowered_words
from gatewayfilter.model import HOST_ZONE, Classification, Evidence
from gatewayfilter.settings import GrowthMode, LearnSettings
from gatewayfilter.store import Store
from tests.learn.review_world import NOW, World

CASINO = ("gambling", "casino")


def verdict(*words: str, weight: float = 10.0, category: str = "gambling") -> Classification:
    evidence = tuple(Evidence(word, category, weight, "main", 1) for word in words)
    return Classification(category, 30.0, 20.0, {}, evidence)


def decided(number: int, *words: str, rejected: bool = True, site: str = "", group: int = 0) -> DecidedPage:
    url = f"http://{site or f'site{number}.example'}/"
    return DecidedPage(number, url, group or number, rejected, "gambling", verdict(*words))


def factor(pages: list[DecidedPage], word: str = "casino") -> float:
    found = lowered_words(pages).get(("gambling", word))
    return 1.0 if found is None else found.factor


def test_rejections_of_several_sites_lower_a_word_and_approvals_raise_it() -> None:
    rejected = [decided(number, "casino", "bonus") for number in range(1, 5)]
    assert factor(rejected[:2]) == 1.0
    lowered = factor(rejected)
    assert LEAST_FACTOR < lowered < 1.0
    approved = [decided(number, "casino", rejected=False) for number in range(10, 15)]
    assert lowered < factor([*rejected, *approved]) < 1.0
    assert factor([*rejected, *approved], "bonus") == lowered


def test_no_number_of_rejections_removes_a_word() -> None:
    assert factor([decided(number, "casino") for number in range(1, 500)]) == LEAST_FACTOR


def test_one_site_or_one_text_has_one_say() -> None:
    assert factor([decided(number, "casino", site=f"blog{number}.one.example") for number in range(1, 100)]) == 1.0
    assert factor([decided(number, "casino", group=7) for number in range(1, 100)]) == 1.0


def test_a_page_that_names_all_words_hardly_lowers_any() -> None:
    words = [f"word {number}" for number in range(40)]
    pages = [decided(number, "casino", *words) for number in range(1, 4)]
    assert factor(pages) > 0.95


def test_a_page_of_another_category_speaks_for_no_word() -> None:
    changed = [replace(decided(number, "casino", rejected=False), category="fraud") for number in range(1, 9)]
    rejected = [decided(number, "casino") for number in range(11, 15)]
    assert factor([*changed, *rejected]) == factor(rejected)


class History:
    def __init__(self, pages: list[DecidedPage]) -> None:
        self.pages = pages
        self.step = 1
        self.read = 0

    def last_step(self) -> int:
        return self.step

    def decided_pages(self, limit: int) -> list[DecidedPage]:
        self.read += 1
        return self.pages[:limit]

    def decisions_since(self, since: float) -> list[PageDecision]:
        raise NotImplementedError


def test_what_a_page_loses_is_bounded_and_told() -> None:
    history = History([decided(number, "casino") for number in range(1, 99)])
    feedback = WordFeedback(history, lambda: 0.0)
    fact = feedback.fact_of(verdict("casino"), "gambling")
    assert fact is not None
    assert (fact.word, fact.weight, fact.zone) == ("words of rejected pages weigh less: casino 50%", -LOG_ODDS, HOST_ZONE)
    half = feedback.fact_of(verdict("casino", "poker"), "gambling")
    assert half is not None
    assert -LOG_ODDS < half.weight < 0
    assert feedback.fact_of(verdict("poker"), "gambling") is None
    assert feedback.fact_of(verdict("casino", category="adult"), "adult") is None
    assert history.read == 1


def test_a_reading_is_known_without_its_figures() -> None:
    def page(number: int) -> DecidedPage:
        reading = Evidence(f"reads like gambling (8{number}%): slots · bonus {number}", "gambling", 9.0, "main", -1)
        return replace(decided(number), classification=replace(verdict(), evidence=(reading,)))

    assert factor([page(number) for number in range(1, 6)], "reads like gambling") < 1.0


class Tasks:
    """A desk with open tasks about pages of different sites."""

    def __init__(self, store: Store, count: int) -> None:
        self.world = World(store, LearnSettings())
        self.feedback = WordFeedback(store.decisions, self._later)
        self._now = 0.0
        for number in range(count):
            text = f"<title>{number * 7919:x}</title><p>casino {'abcdefgh'[number % 8] * (40 + 9 * number)}</p>"
            self.world.visit(f"http://site{number}.example/", text.encode())

    def _later(self) -> float:
        self._now += 60.0
        return self._now

    def factor(self) -> float:
        found = self.feedback.words().get(CASINO)
        return 1.0 if found is None else found.factor


def test_decisions_of_the_store_count_until_they_are_undone(store: Store) -> None:
    tasks = Tasks(store, 6)
    for number in range(1, 4):
        assert tasks.factor() == 1.0
        tasks.world.desk.reject(number, "ada")
    lowered = tasks.factor()
    tasks.world.desk.approve(5, "ada")
    assert lowered < tasks.factor() < 1.0
    tasks.world.desk.undo(5, "ada")
    assert tasks.factor() == lowered
    for number in range(1, 4):
        tasks.world.desk.undo(number, "ada")
    assert tasks.factor() == 1.0


def test_unblock_requests_change_nothing(store: Store) -> None:
    tasks = Tasks(store, 6)
    for number in range(6):
        request = UnblockRequest(f"http://site{number}.example/", "client", "learned", "", "", "gambling", "please", NOW, 1000)
        store.unblock.ask([request])
    assert tasks.factor() == 1.0
    assert store.decisions.decided_pages(10) == []


STEPS = st.lists(st.tuples(st.sampled_from(["approve", "reject", "change"]), st.integers(1, 6)), max_size=8)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=STEPS, after=STEPS)
def test_undo_restores_every_weight(
    new_store: Callable[[], Store], before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    store = new_store()
    tasks = Tasks(store, 6)
    for step in before:
        act(tasks.world, *step)
    weights = dict(tasks.feedback.words())
    done = [number for step, number in after if act(tasks.world, step, number)]
    for number in reversed(done):
        tasks.world.desk.undo(number, "ada")
    assert tasks.feedback.words() == weights


def act(world: World, step: str, number: int) -> bool:
    world.now += 1.0
    try:
        if step == "approve":
            world.desk.approve(number, "ada")
        elif step == "reject":
            world.desk.reject(number, "ada", overturn=True)
        else:
            world.desk.change(number, "fraud", "ada", overturn=True)
    except ReviewError:
        return False
    return True


def test_decisions_are_told_with_what_they_found(store: Store) -> None:
    tasks = Tasks(store, 3)
    tasks.world.now = NOW + 10
    tasks.world.desk.reject(1, "ada")
    tasks.world.desk.approve(2, "ada")
    tasks.world.desk.reject(3, "ada")
    tasks.world.desk.undo(3, "ada")
    assert store.decisions.decisions_since(0.0) == [
        PageDecision("gambling", rejected=True, blocked=True, decided_at=NOW + 10),
        PageDecision("gambling", rejected=False, blocked=True, decided_at=NOW + 10),
    ]
    assert store.decisions.decisions_since(NOW + 11) == []
    assert store.decisions.last_step() == 4


def test_a_doubtful_page_that_is_rejected_was_not_blocked(store: Store) -> None:
    world = World(store, LearnSettings(mode=GrowthMode.REVIEW))
    world.visit()
    world.desk.reject(1, "ada")
    assert [decision.blocked for decision in store.decisions.decisions_since(0.0)] == [False]


def hit(word: str, weight: float = 10.0, *, position: int = 1, category: str = "gambling", zone: str = "main") -> Evidence:
    return Evidence(word, category, weight, zone, position)


def with_hits(page: DecidedPage, *hits: Evidence) -> DecidedPage:
    return replace(page, classification=replace(page.classification, evidence=hits))


def test_what_a_word_loses() -> None:
    three = [decided(number, "casino") for number in range(1, 4)]
    assert factor(three[:2]) == 1.0
    assert factor(three) == 1 - 3 / (3 + 4)
    found = lowered_words([*three, decided(9, "casino", rejected=False)])["gambling", "casino"]
    assert (found.factor, found.rejected, found.approved) == (1 - 3 / (3 + 1 + 4), 3, 1)
    shared = [with_hits(page, hit("casino", 6.0), hit("slots", 1.0), hit("casino", 1.0)) for page in three]
    assert factor(shared) == 1 - 3 * 0.875 / (3 * 0.875 + 4)
    assert factor(shared, "slots") == 1 - 3 * 0.125 / (3 * 0.125 + 4)


def test_which_hits_are_words_of_a_page() -> None:
    left_out = (hit("a", 0.0), hit("b", -1.0), hit("c", category="adult"), hit("d", zone=HOST_ZONE))
    pages = [with_hits(decided(number), hit("casino"), *left_out) for number in range(1, 4)]
    assert list(lowered_words(pages)) == [CASINO]
    first = [with_hits(decided(number), hit("casino (slang)", position=0)) for number in range(1, 4)]
    assert list(lowered_words(first)) == [("gambling", "casino (slang)")]  # a word in the first place of its page, and no reading


def test_a_page_in_doubt_is_one_of_the_category_it_was_in_doubt_of() -> None:
    doubtful = [
        replace(page, classification=replace(page.classification, category="", doubt="gambling"))
        for page in (decided(number, "casino") for number in range(1, 4))
    ]
    assert factor(doubtful) < 1.0
    assert lowered_words([replace(page, classification=replace(page.classification, doubt="")) for page in doubtful]) == {}


def test_the_history_is_read_after_a_decision_and_at_most_every_five_seconds() -> None:
    now = [0.0]
    history = History([decided(number, "casino") for number in range(1, 4)])
    feedback = WordFeedback(history, lambda: now[0])
    for at, step, read in ((0.0, 1, 1), (4.9, 2, 1), (5.0, 2, 2), (10.0, 2, 2), (14.9, 3, 2), (15.0, 3, 3)):
        now[0], history.step = at, step
        assert CASINO in feedback.words()
        assert history.read == read, at


def test_three_words_are_named_the_heaviest_first() -> None:
    words = ("casino", "slots", "bonus", "poker")
    history = History([decided(number, *words) for number in range(1, 99)])
    found = replace(verdict(), evidence=tuple(hit(word, 9.0 if word == "poker" else 1.0) for word in (*words, "film")))
    fact = WordFeedback(history, lambda: 0.0).fact_of(found, "gambling")
    assert fact is not None
    assert fact.word == "words of rejected pages weigh less: poker 50% · bonus 50% · casino 50%"
    assert fact.weight == round(LOG_ODDS * log2((12 * 0.5 + 1) / 13), 3)
    assert fact.position == -1
