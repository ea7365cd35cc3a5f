"""A learner and a desk over one store, for the tests of reviews."""

import random
from hashlib import md5

from gatewayfilter.interfaces import ClassifyImage, Page
from gatewayfilter.learn import ContentIds, LearningPipeline, ListGrowth, Recognition, ReviewService, SecondLook, TaskIntake
from gatewayfilter.model import Classification, Evidence, ListAction
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

NOW = 1_000_000.0
URL = "http://play.example/"
_CHOSEN = random.Random(5)
STORY = " ".join("".join(_CHOSEN.choices("abcdefghijklmnoprstuvw", k=_CHOSEN.randint(2, 9))) for _ in range(300))
BODY = f"<title>Best casino of the town</title><p>{STORY}</p>".encode()
TEXT = f"best casino of the town\n{STORY}\n"


class CasinoClassify:
    """Finds casinos; the text of a page is its body without tags."""

    def __init__(self) -> None:
        self.judged = 0

    def classify_page(self, page: Page) -> Classification:
        self.judged += 1
        return self.classify_text(page.body.decode())

    def classify_text(self, text: str) -> Classification:
        harmful = "casino" in text
        evidence = (Evidence("casino", "gambling", 42.0, "title", 5),) if harmful else ()
        digest = md5(text.encode(), usedforsecurity=False).digest()
        return Classification("gambling" if harmful else "", 42.0, 20.0, {}, evidence, "Best casino of the town", "", digest)

    def text_of(self, page: Page) -> str:
        return (
            page.body.decode().replace("<title>", "").replace("</title>", "\n").replace("<p>", "").replace("</p>", "\n").lower()
        )


class World:
    """A learner and a desk over one store."""

    def __init__(
        self,
        store: Store,
        settings: LearnSettings,
        now: float = NOW,
        images: ClassifyImage | None = None,
        classify: CasinoClassify | None = None,
        second_look: SecondLook | None = None,
    ) -> None:
        self.store = store
        self.now = now
        self.classify = classify or CasinoClassify()
        self.counters = Counters()
        self.recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), lambda: "words", self.clock)
        self.sink = LearningPipeline(
            self.classify,
            ListGrowth(store.lists, store.verdicts, settings, self.clock, together=store.learning, second_look=second_look),
            self.counters,
            settings,
            recognition=self.recognition,
            intake=TaskIntake(store.reviews, self.counters, settings.max_open_reviews, self.clock, store.deciding),
            read_text=self.classify,
            images=images,
        )
        self.desk = ReviewService(
            store.reviews, store.lists, store.verdicts, self.recognition, settings, self.clock, store.deciding
        )

    def clock(self) -> float:
        return self.now

    def visit(
        self, url: str = URL, body: bytes = BODY, final_url: str = "", content_type: str = "text/html"
    ) -> Classification | None:
        return self.sink.page(Page(url, final_url or url, 200, {"content-type": content_type}, body))

    def learned(self, key: str = "play.example/") -> ListAction | None:
        found = self.store.lists.find_learned([key])
        return found[0].action if found else None

    def allowed_by(self) -> list[str]:
        return [rule.comment for rule in self.store.lists.rules() if rule.action is ListAction.ALLOW]
