"""Pages that repeat what they are asked, through the classifier in use, the growth of the lists and the database."""

from urllib.parse import quote, quote_plus

import pytest

from gatewayfilter.classify import ReloadingClassifier
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ContentIds, LearningPipeline, ListGrowth, Recognition
from gatewayfilter.learn.reflected_words import address_words, asked_words, touches
from gatewayfilter.learn.review.task_intake import TaskIntake
from gatewayfilter.model import Classification, Evidence, ListAction
from gatewayfilter.settings import DomainGrowth, LearnSettings, bundled_folder
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

ORDINARY = (
    "The library of the town is open from Monday to Saturday. Members borrow books, films and maps for four weeks. On Thursdays "
    "children listen to stories in the reading room, and in autumn there is a market of old books in the yard. The archive keeps "
    "newspapers of the last hundred years, which may be read after a call. Lockers are beside the entrance. Printing and copying "
    "cost ten cents a page. Ask at the desk for a card; it takes five minutes and a proof of your address. The lift goes to all "
    "floors. Large groups announce their visit a week before. We look forward to seeing you and wish you many good hours here."
)
SHORT = [
    f"{words} {number}" for number, words in enumerate(["online casino free spins bonus", "casino slots jackpot bets win"] * 4)
]
LONG = [
    f"{number} online casino free spins no deposit bonus slots roulette blackjack poker sports betting jackpot real money"
    for number in range(7)
]
CHINESE = ["在线赌场真人百家乐老虎机轮盘赌体育投注首存送彩金注册即送", "六合彩时时彩投注平台真人荷官提款秒到账 澳门赌场"]
CASINO = (
    "<title>Golden Reef online casino - 300% welcome bonus</title><h1>Golden Reef online casino</h1><p>Play online slots, "
    "roulette, blackjack and baccarat for real money. Take your no deposit bonus and 100 free spins, place your bets in our "
    "sportsbook, hit the jackpot and withdraw your winnings.</p>"
)


class Learner:
    """A learner over one store."""

    def __init__(self, store: Store, judge: ReloadingClassifier) -> None:
        settings = LearnSettings(domains=DomainGrowth.BLOCK)
        self.store = store
        self.counters = Counters()
        list_growth = ListGrowth(store.lists, store.verdicts, settings, together=store.learning)
        recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), judge.words_version)
        self.sink = LearningPipeline(judge, list_growth, self.counters, settings, recognition=recognition, read_text=judge)

    def see(self, url: str, body: str, *, final_url: str = "", said: str = "", passed: bool = False) -> Classification | None:
        headers = {"content-type": "text/html; charset=utf-8"}
        return self.sink.page(Page(url, final_url or url, 200, headers, body.encode(), secondhand=passed, said=said))

    def blocked(self) -> list[str]:
        return [entry.key for entry in self.store.lists.learned() if entry.action is ListAction.BLOCK]


@pytest.fixture(scope="module")
def judge() -> ReloadingClassifier:
    """The bundled words; reading them takes a second."""
    return ReloadingClassifier([bundled_folder() / "words"])


@pytest.fixture
def learner(store: Store, judge: ReloadingClassifier) -> Learner:
    return Learner(store, judge)


def search_page(query: str) -> str:
    return (
        f"<html><head><title>You searched for {query}</title></head><body><h1>Results for {query}</h1>"
        f"<p>Nothing matched {query}.</p><p>{ORDINARY}</p></body></html>"
    )


def upper_words(query: str) -> str:
    words = query.upper().split()
    return " ".join(words[2:] + words[:2])


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize("repeat", [str, upper_words], ids=["as it is", "otherwise"])
def test_a_search_page_is_not_what_it_was_asked(learner: Learner, repeat: type[str], *, passed: bool) -> None:
    for query in SHORT + LONG + CHINESE:
        learner.see(f"https://library.test/?s={quote_plus(query)}&lang=en", search_page(repeat(query)), passed=passed)
    assert learner.blocked() == []
    assert learner.counters["pages_reflected"] >= len(LONG)  # so they were harmful to look at
    assert learner.store.verdicts.host_pages("library.test").pages == 0


SPELLINGS = {
    "escaped twice": (quote(quote(LONG[0])), LONG[0]),
    "marks that the site takes out": ("".join(f"{letter}'" for letter in LONG[0]), LONG[0]),
    "tags that the site takes out": (quote(LONG[0].replace("in", "i<b>n").replace("ot", "o<i>t")), LONG[0]),
    "in another charset": (quote(CHINESE[0].encode("gb18030")), CHINESE[0]),
    "as a key": (f"{quote_plus(LONG[0])}=1", LONG[0]),
    "over several values": ("&".join(f"q{n}={word}" for n, word in enumerate(LONG[0].split())), LONG[0]),
    "one word": (f"q={quote_plus(LONG[0].replace(' ', '-'))}", LONG[0]),
    "references": (f"q={quote('&#99;asino ' * 2 + LONG[0].replace('casino', ''))}", f"casino {LONG[0]}"),
    "letters that look alike": (f"q={quote_plus(LONG[0].replace('a', '@'))}", LONG[0].replace("a", "@")),
}


@pytest.mark.parametrize(("query", "repeated"), SPELLINGS.values(), ids=SPELLINGS)
def test_path_spellings_of_what_is_repeated(learner: Learner, query: str, repeated: str) -> None:
    learner.see(f"https://library.test/?{query}", search_page(repeated))
    assert learner.blocked() == []
    assert learner.counters["pages_reflected"] == 1  # so it was harmful to look at


def test_a_page_that_is_harmful_without_what_it_was_asked_is_learned_by_the_rest(learner: Learner) -> None:
    found = learner.see("https://play.test/?q=casino+slots", CASINO)
    assert found is not None
    assert found.harmful
    assert not any("casino" in hit.word for hit in found.evidence)
    assert learner.blocked() == ["play.test/?q=casino+slots"]


def test_what_header_fields_said_is_no_evidence(learner: Learner) -> None:
    said = f"Mozilla/5.0 ({LONG[0]})"
    assert learner.see("https://agents.test/", search_page(said), said=said, passed=True) is None
    assert learner.see("https://play.test/", CASINO, said="Mozilla/5.0\nhttps://play.test/lobby", passed=True) is not None
    assert learner.blocked() == ["play.test/"]


def test_pages_that_passed_never_count_for_their_host(learner: Learner) -> None:
    for number in range(10):
        learner.see(f"https://play.test/{number}", f"{CASINO}{number}", passed=True)
    assert ".play.test" not in learner.blocked()
    for number in range(10):
        learner.see(f"https://play.test/page/{number}", f"{CASINO}<p>{number}")
    assert ".play.test" in learner.blocked()


HOSTS = {
    "a query each": [(f"https://play.test/?page={number}", "") for number in range(10)],
    "one path": [(f"{scheme}://play.test{port}/", "") for scheme in ("http", "https") for port in ("", ":81", ":82", ":83")],
    "the path repeated": [(f"https://library.test/search/{quote(query)}", query) for query in LONG],
}


@pytest.mark.parametrize("pages", HOSTS.values(), ids=HOSTS)
def test_pages_that_do_not_count_for_their_host(learner: Learner, pages: list[tuple[str, str]]) -> None:
    for number, (url, repeated) in enumerate(pages):
        assert learner.see(url, search_page(repeated) if repeated else f"{CASINO}<p>{number}") is not None
    assert not [key for key in learner.blocked() if key.startswith(".")]


def test_redirects_do_not_count_for_the_host_that_sent_them(learner: Learner) -> None:
    for number in range(10):
        learner.see(f"https://honest.test/out/{number}", f"{CASINO}<p>{number}", final_url=f"https://play{number}.test/")
    assert learner.store.verdicts.host_pages("honest.test").pages == 0


def test_a_verdict_by_its_address_says_nothing_of_the_same_content_elsewhere(learner: Learner) -> None:
    said = "You need to enable JavaScript to run this app. If nothing appears, reload the page or try another browser."
    shell = f"<html><head><title>Welcome</title></head><body><div id=app></div><p>{said}</p></body></html>"
    path = "/".join(LONG[0].split())
    found = learner.see(f"https://online-casino-betting.test/{path}/free-spins", shell)
    assert found is not None
    assert found.harmful
    learner.see("https://victim.test/", shell)
    assert [key for key in learner.blocked() if "victim" in key] == []


def test_a_verdict_of_plain_text_says_nothing_of_the_same_content_as_a_page(learner: Learner) -> None:
    body = f"<html><head><title>Library</title><!-- {CASINO} --></head><body><p>{ORDINARY}</p></body></html>"
    plain = Page("https://a.test/", "https://a.test/", 200, {"content-type": "text/plain"}, body.encode())
    found = learner.sink.page(plain)
    assert found is not None
    assert found.harmful
    learner.see("https://victim.test/", body)
    assert learner.blocked() == ["a.test/"]


@pytest.mark.parametrize(
    "kind", ["application/rss+xml", "image/svg+xml", "application/octet-stream", "text/html foo", "text/css"]
)
def test_a_harmful_page_is_not_harmless_for_having_been_shown_as_something_else(kind: str, learner: Learner) -> None:
    body = f"<html><head>{CASINO}</head></html>"
    learner.sink.page(Page("https://a.test/", "https://a.test/", 200, {"content-type": kind}, body.encode()))
    found = learner.see("https://casino.test/", body)
    assert found is not None
    assert found.harmful
    assert "casino.test/" in learner.blocked()


def test_what_is_harmless_as_plain_text_may_be_harmful_as_a_page(learner: Learner) -> None:
    body = f"<html><head><title>{''.join(f'&#{ord(mark)};' for mark in CASINO)}</title></head></html>"
    plain = Page("https://a.test/", "https://a.test/", 200, {"content-type": "text/plain"}, body.encode())
    assert learner.sink.page(plain) is not None
    found = learner.see("https://casino.test/", body)
    assert found is not None
    assert found.harmful


@pytest.mark.parametrize(
    ("url", "final_url", "asked", "address"),
    [
        ("http://a.test/", "http://a.test/", "", ""),
        ("", "", "", ""),
        ("http://a.test/?q=B%20c", "http://a.test/?q=B%20c", "q=B%20c\nq=B c", "q=B%20c\nq=B c"),
        ("http://a.test/x?y", "http://a.test/z", "y", "/x\n/z\ny"),
    ],
)
def test_what_was_said_in_asking(url: str, final_url: str, asked: str, address: str) -> None:
    page = Page(url, final_url, 200, {}, b"")
    assert asked_words(page) == asked
    assert address_words(page) == address


class _DoubtfulWithout:
    """Judges a page as harmful, and without the words of the request as doubtful."""

    def classify_text(self, text: str) -> Classification:
        raise NotImplementedError

    def classify_page(self, page: Page) -> Classification:
        hit = Evidence("casino", "gambling", 30.0, "main", 0)
        if page.ignored:
            return Classification("", 12.0, 20.0, {"gambling": 12.0}, (hit,), certainty=0.7, doubt="gambling")
        return Classification("gambling", 30.0, 20.0, {"gambling": 30.0}, (hit,), certainty=0.99)


def test_a_page_in_doubt_without_the_words_of_its_request_gets_a_task(store: Store) -> None:
    settings, counters = LearnSettings(), Counters()
    growth = ListGrowth(store.lists, store.verdicts, settings, together=store.learning)
    intake = TaskIntake(store.reviews, counters, 10)
    sink = LearningPipeline(_DoubtfulWithout(), growth, counters, settings, intake=intake)
    url = "https://a.test/search?q=casino"
    found = sink.page(Page(url, url, 200, {"content-type": "text/html"}, b"<p>casino and more"))
    assert found is not None
    assert (found.category, found.doubt) == ("", "gambling")
    assert [(task.url, task.doubtful) for task in store.reviews.tasks()] == [(url, True)]
    assert not [entry for entry in store.lists.learned() if entry.action is ListAction.BLOCK]


def asked(url: str, said: str = "", final_url: str = "") -> list[str]:
    return asked_words(Page(url, final_url or url, 200, {}, b"", said=said)).splitlines()


def test_the_words_of_a_request_in_the_spellings_of_sites() -> None:
    assert asked("http://a.test/path") == []
    assert asked("http://a.test/?q=one+two") == ["q=one+two", "q=one two"]
    assert {"q=a&b=c", "q=a", "b=c"} <= set(asked("http://a.test/?q=a&b=c"))
    assert {"q=%C3%A9", "q=\u00e9", "q=\u0439"} <= {*asked("http://a.test/?q=%C3%A9"), *asked("http://a.test/?q=%E9")}
    assert "one two" in asked("http://a.test/", "one%2520two"), "escaped twice"
    assert "bold" in asked("http://a.test/", "<b>bold</b>")
    assert "a\u00e9" in asked("http://a.test/", "a&eacute;")
    both = asked("http://a.test/?q=first", "said", "http://b.test/?q=second")
    assert {"q=first", "q=second", "said"} <= set(both)
    assert len(both) == len(set(both))


def test_the_words_of_an_address_are_those_of_its_path_too() -> None:
    def words(url: str) -> list[str]:
        return address_words(Page(url, url, 200, {}, b"", said="")).splitlines()

    assert words("http://a.test/") == []
    assert words("http://a.test/free+spins") == ["/free+spins", "/free spins"]
    assert {"/x", "q=y"} <= set(words("http://a.test/x?q=y"))


@pytest.mark.parametrize(
    ("word", "position", "touched"),
    [("free spins", 3, True), ("roulette", 3, False), ("roulette", 0, False), ("reads like gambling", -1, True)],
)
def test_which_verdicts_may_rest_on_what_was_asked(word: str, position: int, *, touched: bool) -> None:
    found = Classification("gambling", 9.0, 2.0, {}, (Evidence(word, "gambling", 9.0, "main", position),))
    assert touches("q=free spins", found) is touched
    assert not touches("", Classification("", 0.0, 2.0))
