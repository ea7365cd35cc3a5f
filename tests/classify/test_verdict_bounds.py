"""Bounds on the way to a verdict, at their edges: hints, passages, letters, greedy forms, and how a score is shown."""

from dataclasses import replace
from math import log1p
from typing import Any, cast

import pytest

from gatewayfilter.classify import score_adjustment
from gatewayfilter.classify.classifier import Explained
from gatewayfilter.classify.ignored_words import IgnoredWords
from gatewayfilter.classify.lexicon.lexicon import Category, Lexicon
from gatewayfilter.classify.lexicon.match_filter import Meaning, Role, is_alphabetic
from gatewayfilter.classify.login_clone import Destination, _destination_of, _greedy, _is_foreign, _is_local
from gatewayfilter.classify.models.calibration import BLOCKED_FROM
from gatewayfilter.classify.models.text_model import terms_of
from gatewayfilter.classify.passages import LEAST_SHARE, LETTERS, MARGIN, densest
from gatewayfilter.classify.score import Judgement, Sum, ZoneHits
from gatewayfilter.classify.score_adjustment import CLONE_CERTAINTY, OVER, as_login_clone, candidate_of, is_grey
from gatewayfilter.classify.score_breakdown import breakdown_of
from gatewayfilter.classify.signs.bet_taking import CATEGORY as BETTING
from gatewayfilter.classify.zones import PageText
from gatewayfilter.documents.html.forms import Credential, PageForms
from gatewayfilter.model import Classification, Evidence
from gatewayfilter.settings import Strictness
from tests.case_tables import all_cases

LEXICON: Any = type("Lexicon", (), {"category": lambda _, name: type("Category", (), {"limit": 20.0})()})()
SUM = Sum(12.0, 6.0, 4.0, 3.0, 2.0, 20.0, 5, 3)


def page(length: int) -> PageText:
    return PageText("", {"main": "x" * length})


@all_cases(
    ("length", "share", "is_hint"),
    [(0, 0.1, True), (2_000, 0.1, True), (2_000, 0.099, False), (4_000, 0.2, True), (4_000, 0.199, False), (90_000, 0.5, True)],
)
def test_a_longer_page_needs_more_of_a_hint(length: int, share: float, *, is_hint: bool) -> None:
    found = Judgement("", 20 * share, 20.0, {"gambling": 20 * share, "other": 90.0}, (), {"gambling": SUM, "other": SUM})
    assert (candidate_of(found, LEXICON, ["gambling"], page(length)) is not None) is is_hint


def test_what_words_make_of_a_page() -> None:
    sums = {"gambling": SUM, "drugs": replace(SUM, words=2)}
    found = Judgement("", 14.0, 20.0, {"gambling": 14.0, "drugs": 10.0}, (), sums)
    candidate = candidate_of(found, LEXICON, ["gambling", "drugs"], page(300))
    assert candidate is not None
    assert (candidate.category, *candidate[1:5]) == ("gambling", 0.7, 0.6, 0.2, 0.1)
    assert candidate.exonerating == pytest.approx(log1p(2.0) - log1p(18.0))
    assert (candidate.words, candidate.enough, candidate.verdict, candidate.second) == (5, True, False, 0.5)
    assert (candidate.length, candidate.ideographic) == (300, False)
    few = candidate_of(replace(found, category="drugs", scores={"drugs": 10.0}), LEXICON, ["gambling", "drugs"], page(300))
    assert few is not None
    assert (few.words, few.enough, few.verdict, few.second) == (2, False, True, 0.0)
    enough = replace(found, sums={**sums, "gambling": replace(SUM, words=3)})
    assert cast("Any", candidate_of(enough, LEXICON, ["gambling"], page(300))).enough


@all_cases(("betting", "name"), [(5.0, "gambling"), (4.9, "fraud"), (None, "fraud")])
def test_pages_of_payments_are_weighed_as_betting_from_half_of_it_on(betting: float | None, name: str) -> None:
    scores = {"fraud": 10.0} | ({} if betting is None else {BETTING: betting})
    found = Judgement("", 10.0, 20.0, scores, (), dict.fromkeys(scores, SUM))
    candidate = candidate_of(found, LEXICON, ["fraud", BETTING], page(10))
    assert candidate is not None
    assert candidate.category == (BETTING if name == "gambling" else name)


def test_a_clone_outweighs_words_and_is_in_doubt_where_that_is_wanted() -> None:
    found = Classification("", 3.0, 30.0, scores={"gambling": 3.0}, certainty=0.99)
    clone = Evidence("asks for a password", "fraud", 0.0, "rest", -1)
    judged = as_login_clone(found, clone, LEXICON, Strictness.STANDARD)
    assert (judged.category, judged.score, judged.limit, judged.doubt) == ("fraud", OVER * 20, 20.0, "")
    assert judged.scores == {"gambling": 3.0, "fraud": OVER * 20}
    assert (judged.evidence, judged.certainty) == ((replace(clone, weight=OVER * 20),), 0.99)
    odd = Lexicon({"fraud": Category("fraud", 7.7777)})
    assert as_login_clone(found, clone, odd, Strictness.STANDARD).score == 9.722
    doubtful = as_login_clone(replace(found, certainty=None), clone, LEXICON, Strictness.RELAXED)
    assert (doubtful.category, doubtful.score, doubtful.limit, doubtful.doubt) == ("", 3.0, 30.0, "fraud")
    assert (doubtful.scores, doubtful.evidence, doubtful.certainty) == ({"gambling": 3.0}, (clone,), CLONE_CERTAINTY)


def test_a_clone_is_as_certain_as_a_strictness_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Evidence("asks for a password", "fraud", 0.0, "rest", -1)
    for strictness, least in BLOCKED_FROM.items():
        for certainty, category in ((least, "fraud"), (least - 0.01, "")):
            monkeypatch.setattr(score_adjustment, "CLONE_CERTAINTY", certainty)
            assert as_login_clone(Classification("", 3.0, 30.0), clone, LEXICON, strictness).category == category


def test_scores_that_are_not_clear() -> None:
    for score, grey in ((9.9, False), (10.0, True), (30.0, True), (30.1, False)):
        assert is_grey(Judgement("", score, 20.0, {"gambling": score}, (), {"gambling": SUM}), LEXICON) is grey


def test_a_score_is_shown_with_what_it_was_made_of() -> None:
    sums = {"gambling": SUM, "drugs": replace(SUM, limit=10.0, words=1)}
    found = Classification("", 6.0, 20.0, scores={"gambling": 15.1239, "drugs": 8.0})
    explained = Explained(found, {}, sums)
    shown = breakdown_of(explained, "v1", "gambling")
    assert shown is not None
    assert (shown.words_version, shown.category, shown.strong, shown.topic, shown.topic_counted) == ("v1", "gambling", 12, 6, 4)
    assert (shown.context, shown.context_counted, shown.score, shown.limit) == (3, 2, 15.1239, 20)
    assert (shown.words, shown.min_words, shown.opinion) == (5, 3, round(15.1239 - SUM.score, 3))
    nearest = breakdown_of(explained, "v1")
    assert nearest is not None
    assert nearest.category == "drugs", "the one nearest to its own limit"
    of_page = breakdown_of(replace(explained, classification=replace(found, category="gambling")), "v1")
    assert of_page is not None
    assert of_page.category == "gambling"
    assert breakdown_of(explained, "v1", "weapons") is None
    assert breakdown_of(Explained(found, {}, {}), "v1") is None


CATEGORIES: Any = {"gambling": type("Category", (), {"limit": 20.0})(), "drugs": type("Category", (), {"limit": 40.0})()}


def placed(*found: tuple[str, int, float], text: str, zone: str = "main") -> ZoneHits:
    hits = {Meaning(f"{name}{at}", name, Role.WORD, weight): (at, at + 1) for name, at, weight in found}
    return ZoneHits(zone, text, True, hits)


def test_the_passage_with_the_most_weight_within_its_size() -> None:
    weight = LEAST_SHARE * 20.0 / 2
    text = "x" * 9_000
    together = placed(("gambling", 3_000, weight), ("gambling", 3_000 + LETTERS, weight), text=text)
    found = densest([together], CATEGORIES, ideographic=False)
    assert found is not None
    margin = LETTERS // MARGIN
    assert (found.zone, found.start, len(found.text)) == ("main", 3_000 - margin, LETTERS + 2 * margin)
    apart = placed(("gambling", 3_000, weight), ("gambling", 3_001 + LETTERS, weight), text=text)
    assert densest([apart], CATEGORIES, ideographic=False) is None
    other = placed(("drugs", 3_000, weight), ("drugs", 3_100, weight), text=text)
    assert densest([other], CATEGORIES, ideographic=False) is None, "half of its own limit"
    for hits in (together._replace(zone="title"), together._replace(placed=False)):
        assert densest([hits], CATEGORIES, ideographic=False) is None
    second = placed(("gambling", 5_000, 3 * weight), text=text, zone="rest")
    assert cast("Any", densest([together, second], CATEGORIES, ideographic=False)).zone == "rest"
    assert cast("Any", densest([second, together], CATEGORIES, ideographic=False)).zone == "rest"


def test_a_passage_ends_with_its_lines() -> None:
    text = "above\n" + "a" * 30 + "W" + "b" * 20 + "\nbelow"
    found = densest([placed(("gambling", 36, 90.0), text=text)], CATEGORIES, ideographic=False)
    assert found == ("main", 6, "a" * 30 + "W" + "b" * 20)


def test_letters_that_blanks_part_from_words() -> None:
    joined = "az09AZéдא가\u0dff\u0f00\u2e7f\ua4d0"
    apart = " -_的ไทยあ\u2e80\u4e00\ua4cf\u0e01\u0edf\uf900\uff21"
    assert [mark for mark in joined if not is_alphabetic(mark) and mark.isalnum()] == []
    assert [mark for mark in apart if is_alphabetic(mark)] == []


def test_a_tenth_of_ideographs_makes_a_page_one_of_theirs() -> None:
    for count, ideographic in ((100, False), (101, True)):
        text = ("的" * count).ljust(998, "x")  # and the two ends of lines between zones
        assert PageText("", {"main": text}).is_ideographic() is ideographic
    assert not PageText("", {}).is_ideographic()
    seen = PageText("", {"title": "ab", "main": "的é", "rest": "\ud800", "url": "none"})
    assert (seen.length(), seen.visible()) == (2 + 5 + 1, "ab\n的é\n\ud800")


def forms(*credentials: Credential, target: str = "/login") -> PageForms:
    return PageForms(frozenset(credentials), (target,), (), "", (), ())


CARD, CHECK, PIN, SEED, LOGIN = Credential.CARD, Credential.CARD_CHECK, Credential.PIN, Credential.SEED, Credential.LOGIN


@all_cases(
    ("asked", "target", "said"),
    [
        ((CARD, CHECK, PIN), "/x", "security code and PIN together"),
        ((CARD, CHECK, LOGIN), "post.php", ""),
        ((CARD, PIN), "post.php", "to a script beside the page"),
        ((CARD, PIN), "/x", ""),
        ((CARD,), "post.php", ""),
        ((SEED,), "post.php", "wallet recovery phrase"),
        ((SEED,), "https://other.example/x", ""),
        ((SEED,), "/x", ""),
        ((Credential.PASSWORD,), "https://api.telegram.org/bot1/sendMessage", "sends a password to a chat bot"),
        ((LOGIN,), "https://api.telegram.org/bot1/sendMessage", ""),
        ((Credential.PASSWORD,), "https://other.example/", ""),
    ],
)
def test_what_no_honest_page_asks(asked: tuple[Credential, ...], target: str, said: str) -> None:
    found = _greedy(forms(*asked, target=target), "site.example")
    assert said in found
    assert bool(found) is bool(said)


@all_cases(
    ("target", "destination"),
    [
        ("mailto:a@b.example", Destination.COLLECTOR), ("MAILTO:a@b.example", Destination.COLLECTOR), ("", Destination.SITE),
        ("/login", Destination.SITE), ("login.php?x", Destination.SCRIPT), ("a/b/post.cgi", Destination.SCRIPT),
        ("https://www.site.example/x.php", Destination.SITE), ("//other.example/x", Destination.OTHER),
        ("http://[broken", Destination.SITE), ("https://api.telegram.org/bot1/x", Destination.BOT),
    ],
)  # fmt: skip
def test_where_a_form_leads(target: str, destination: Destination) -> None:
    assert _destination_of(target, "site.example", None, None) is destination


def test_hosts_of_other_sites_and_of_this_network() -> None:
    foreign = ("other.example", "www.other.example", "8.8.8.8")
    own = ("site.example", "www.site.example", "site.test", "localhost", "printer", "a.lan", "192.168.1.1", "[::1]")
    assert [host for host in foreign if not _is_foreign(host, "site.example")] == []
    assert [host for host in own if _is_foreign(host, "site.example")] == []
    assert [_is_local(host) for host in ("localhost", "a.local", "10.0.0.1", "example.com", "8.8.8.8")] == [True] * 3 + [
        False
    ] * 2


def test_ignored_words_are_taken_out_and_others_stay() -> None:
    words = IgnoredWords("free slots\n赌场大全")
    assert words.taken_out_of("free and slots").split() == ["and"]
    assert words.taken_out_of("x赌场y").count("赌") == 0
    assert words.taken_out_of("大场") == "大场", "characters in another order are another word"
    assert words.taken_out_of("a赌场大b").split() == ["a", "b"]
    assert words.taken_out_of("我赌场你") == "我  你"
    assert words.taken_out_of("我大全") == "我  "


def test_terms_are_words_then_pairs_then_triples() -> None:
    terms = terms_of("alpha beta gamma delta")
    shown = [terms.shown(index) for index in range(len(terms.places))]
    assert shown == [
        "alpha", "beta", "gamma", "delta", "alpha beta", "beta gamma", "gamma delta", "alpha beta gamma", "beta gamma delta",
    ]  # fmt: skip
    assert (terms_of("").count, list(terms_of("").places)) == (1, [])
