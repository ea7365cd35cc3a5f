import pytest

from gatewayfilter.config import GrowthMode, LearnSettings
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ContentIds, LearningPipeline, ListGrowth, Recognition, ReviewService, TaskIntake
from gatewayfilter.learn.review.similarity import ALIKE_TITLES, are_alike, simhash, title_similarity
from gatewayfilter.model import Classification, ReviewState
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

BODY = " ".join(f"The house of cards number {number} opens its doors for everybody who likes to play." for number in range(60))
TITLE = "Golden Reef: play tonight"


class TitledClassify:
    """Takes the first line for the title, and finds what says `casino`."""

    def classify_page(self, page: Page) -> Classification:
        return self.classify_text(page.body.decode())

    def classify_text(self, text: str) -> Classification:
        title = text.partition("\n")[0]
        return Classification("gambling" if "casino" in text else "", 42.0 if "casino" in text else 3.0, 20.0, title=title)

    def text_of(self, page: Page) -> str:
        return page.body.decode()


class Parts:
    def __init__(self, store: Store, settings: LearnSettings) -> None:
        self.now = 1000.0
        self.store = store
        self.counters = Counters()
        intake = TaskIntake(store.reviews, self.counters, 100, lambda: self.now)
        self.near_duplicates = intake.near_duplicates
        self.recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), str)
        self.sink = LearningPipeline(
            TitledClassify(),
            ListGrowth(store.lists, store.verdicts, settings),
            self.counters,
            settings,
            recognition=self.recognition,
            intake=intake,
            read_text=TitledClassify(),
        )
        self.desk = ReviewService(store.reviews, store.lists, store.verdicts, self.recognition, settings)

    def look(self, url: str, text: str) -> Classification | None:
        self.now += 100
        return self.sink.page(Page(url, url, 200, {"content-type": "text/html"}, text.encode()))


@pytest.fixture
def parts(store: Store) -> Parts:
    return Parts(store, LearnSettings())


def test_a_toned_down_mirror_stays_allowed_and_is_shown_to_a_person(parts: Parts) -> None:
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    judged = parts.look("http://two.example/", f"{TITLE}\n{BODY} parlour")
    assert judged is not None
    assert not judged.harmful
    first, second = parts.store.reviews.tasks()
    assert (second.url, second.category, second.blocked) == ("http://two.example/", "gambling", False)
    assert second.group_id == first.task_id
    assert parts.counters.as_dict()["near_duplicates"] == 1
    assert parts.near_duplicates.take("http://two.example/")
    assert not parts.near_duplicates.take("http://two.example/")
    assert not parts.near_duplicates.take("http://one.example/")
    assert [entry.url for entry in parts.store.lists.learned() if entry.category] == ["http://one.example/"]


@pytest.mark.parametrize(
    ("title", "body"),
    [
        (TITLE, "Cards of birds, flowers and trees, printed by hand. " * 40),
        ("A house of cards", BODY),
        ("", BODY),
        (TITLE, "short"),
    ],
    ids=["other text", "other title", "no title", "short"],
)
def test_what_is_not_nearly_the_same_is_left_alone(parts: Parts, title: str, body: str) -> None:
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    parts.look("http://two.example/", f"{title}\n{body}")
    assert len(parts.store.reviews.tasks()) == 1
    assert "near_duplicates" not in parts.counters.as_dict()


def test_a_kin_page_makes_no_further_kin(parts: Parts) -> None:
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    parts.look("http://two.example/", f"{TITLE}\n{BODY} parlour")
    parts.desk.reject(1, "ada")
    parts.look("http://three.example/", f"{TITLE}\n{BODY} parlours")
    assert [task.url for task in parts.store.reviews.tasks(ReviewState.OPEN)] == ["http://two.example/"]


def test_a_person_is_asked_once(parts: Parts) -> None:
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    for ending in ("parlour", "parlours", "parlour"):
        parts.look("http://two.example/", f"{TITLE}\n{BODY} {ending}")
    assert len(parts.store.reviews.tasks()) == 2
    parts.desk.reject(2, "ada")
    parts.look("http://two.example/", f"{TITLE}\n{BODY} parlour!")
    assert len(parts.store.reviews.tasks()) == 2


def test_a_person_may_block_it(parts: Parts) -> None:
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    parts.look("http://two.example/", f"{TITLE}\n{BODY} parlour")
    parts.desk.approve(2, "ada")
    assert {entry.url for entry in parts.store.lists.learned() if entry.category == "gambling"} == {
        "http://one.example/",
        "http://two.example/",
    }


def test_nobody_is_asked_where_reviews_are_off(store: Store) -> None:
    parts = Parts(store, LearnSettings())
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    silent = Parts(store, LearnSettings(mode=GrowthMode.BLOCK))
    silent.look("http://two.example/", f"{TITLE}\n{BODY} parlour")
    assert len(store.reviews.tasks()) == 1
    assert silent.near_duplicates.take("http://two.example/")


def test_the_index_agrees_with_the_comparison_of_titles(parts: Parts) -> None:
    titles = [TITLE, "Golden Reef plays tonight", "Golden", "金沙娱乐 在线", "金沙娱乐 在线玩", "Reef", "x"]
    for number, title in enumerate(titles):
        parts.look(f"http://{number}.example/", f"{title}\n{BODY} casino")
    text = f"{TITLE}\n{BODY}"
    for title in [*titles, "Golden Reef", "在线", "Gold"]:
        parts.now += 100
        found = parts.near_duplicates.find(title, lambda: text)
        expected = [
            outline
            for outline in parts.store.reviews.harmful_outlines(100)
            if title_similarity(title, outline.title) >= ALIKE_TITLES
            and are_alike(title, simhash(text), outline.title, outline.simhash)
        ]
        assert found == (expected[0] if expected else None), title


def test_the_text_of_a_page_is_read_only_where_a_title_is_similar(parts: Parts) -> None:
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    parts.now += 100
    read: list[str] = []

    def text() -> str:
        read.append("text")
        return f"{TITLE}\n{BODY}"

    half = "Golden Reef: pl"  # 12 letters: 11 of the 20 pairs
    for title, times in (("Golden parachutes of a large company", 0), ("Reef", 0), ("Golden Re", 0), (half, 1), (TITLE, 2)):
        parts.near_duplicates.find(title, text)
        assert len(read) == times, title


def test_tasks_are_read_every_half_minute_and_notes_are_bounded(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    near = parts.near_duplicates
    assert near.find(TITLE, str) is None
    parts.look("http://one.example/", f"{TITLE}\n{BODY} casino")
    parts.now -= 100
    for later_s, found in ((29.9, False), (0.1, True)):
        parts.now += later_s
        assert (near.find(TITLE, lambda: f"{TITLE}\n{BODY}") is not None) is found
    for number in range(257):
        near.note(f"http://{number}.example/")
    assert [near.take(f"http://{number}.example/") for number in (0, 1, 256, 1)] == [False, True, True, False]
