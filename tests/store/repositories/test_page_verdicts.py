from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewayfilter.interfaces import HostPages, VerdictStore
from gatewayfilter.model import Classification, Evidence
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.page_verdicts import KEEP_S, SqlVerdictStore

URL = "http://a.example/x?y=1"
HARMFUL = Classification(
    "gambling",
    42.5,
    20.0,
    {"gambling": 42.5, "fraud": 3.0},
    (Evidence("casino", "gambling", 12.0, "title", 4), Evidence("医学", "gambling", -3.0, "main", 120)),
    "Casino 赌场",
    "gb18030",
    bytes(range(16)),
)
HARMLESS = Classification("", 1.0, 20.0)


def test_a_judgement_comes_back_with_its_evidence(verdicts: VerdictStore) -> None:
    assert verdicts.find(URL) is None
    verdicts.record(URL, HARMFUL, 100.5)
    assert verdicts.find(URL) == (HARMFUL, 100.5)
    assert verdicts.find("http://a.example/x?y=2") is None


def test_a_judgement_with_every_member_comes_back(verdicts: VerdictStore) -> None:
    whole = replace(HARMFUL, fields={"price": ["7"]}, certainty=0.5, doubt="fraud")
    verdicts.record(URL, whole, 100.5)
    assert verdicts.find(URL) == (whole, 100.5)


def test_the_newest_judgement_is_kept(verdicts: VerdictStore) -> None:
    verdicts.record(URL, HARMFUL, 100.0)
    verdicts.record(URL, HARMLESS, 101.0)
    assert verdicts.find(URL) == (HARMLESS, 101.0)
    verdicts.record(URL, HARMFUL, 50.0)
    assert verdicts.find(URL) == (HARMLESS, 101.0)
    verdicts.record(URL, HARMFUL, 101.0)
    assert verdicts.find(URL) == (HARMFUL, 101.0)


def test_several_judgements_at_once_are_kept_as_one_by_one(verdicts: VerdictStore) -> None:
    newer, older, new = "http://a.example/newer", "http://a.example/older", "http://a.example/new"
    verdicts.record(newer, HARMFUL, 200.0)
    verdicts.record(older, HARMFUL, 50.0)
    verdicts.record_all({newer: HARMLESS, older: HARMLESS, new: HARMLESS}, 100.0)
    assert [verdicts.find(url) for url in (newer, older, new)] == [(HARMFUL, 200.0), (HARMLESS, 100.0), (HARMLESS, 100.0)]
    verdicts.record_all({}, 100.0)


def test_a_new_judgement_knows_nothing_of_the_evidence_of_the_old_one(verdicts: SqlVerdictStore) -> None:
    verdicts.record(URL, HARMFUL, 100.0)
    assert verdicts.note_archived(URL, "pages:0:1")
    verdicts.record(URL, HARMFUL, 99.0)
    assert verdicts.archived(URL) == "pages:0:1"
    verdicts.record(URL, replace(HARMFUL, text_digest=b""), 101.0)
    assert verdicts.archived(URL) == "", "without a text nobody knows that it is the same page"


def test_a_word_about_the_same_text_keeps_the_evidence(verdicts: SqlVerdictStore) -> None:
    text = replace(HARMFUL, text_digest=b"t" * 16)
    verdicts.record(URL, text, 100.0)
    assert verdicts.note_archived(URL, "pages:0:1")
    verdicts.record(URL, replace(text, category=""), 101.0)
    assert verdicts.archived(URL) == "pages:0:1"
    verdicts.record(URL, replace(text, text_digest=b"u" * 16), 102.0)
    assert verdicts.archived(URL) == ""


def test_old_judgements_are_forgotten_now_and_then(open_store: Callable[[], Store]) -> None:
    first = open_store()
    first.verdicts.record(URL, HARMFUL, 100.0)
    first.verdicts.record("http://b.example/", HARMFUL, 200.0)
    open_store().verdicts.record("http://c.example/", HARMLESS, 150.0 + KEEP_S)
    assert first.verdicts.find(URL) is None
    assert first.verdicts.find("http://b.example/") == (HARMFUL, 200.0)


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_NUMBER = st.floats(-1e9, 1e9)
_CLASSIFICATIONS = st.builds(
    Classification,
    category=_TEXT,
    score=_NUMBER,
    limit=_NUMBER,
    scores=st.dictionaries(_TEXT, _NUMBER, max_size=3),
    evidence=st.lists(st.builds(Evidence, _TEXT, _TEXT, _NUMBER, _TEXT, st.integers(0, 10**7)), max_size=4).map(tuple),
    title=_TEXT,
    charset=_TEXT,
    text_digest=st.binary(min_size=16, max_size=16) | st.just(b""),
    fields=st.dictionaries(_TEXT, st.lists(_TEXT, max_size=3), max_size=3),
)


@given(classification=_CLASSIFICATIONS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_judgement_survives_the_database(verdicts: VerdictStore, classification: Classification) -> None:
    verdicts.record(URL, classification, 1.0)
    assert verdicts.find(URL) == (classification, 1.0)


def judged(text: str, category: str = "") -> Classification:
    return Classification(category, 1.0, 20.0, text_digest=text.encode().ljust(16))


def test_pages_of_a_host_count_by_their_texts(verdicts: VerdictStore) -> None:
    assert verdicts.host_pages("a.example") == HostPages(0, {})
    for url, said in {
        "http://a.example/1": judged("one", "gambling"),
        "https://a.example/1?x": judged("one", "gambling"),
        "http://a.example:8080/2": judged("two", "gambling"),
        "http://a.example/3": judged("three"),
        "http://a.example/4": Classification("adult", 42.0, 20.0),  # without a text it counts for nothing
        "http://www.a.example/5": judged("five", "gambling"),
    }.items():
        verdicts.record(url, said, 100.0, counts=True)
    assert verdicts.host_pages("a.example") == HostPages(3, {"gambling": 2})
    verdicts.record("http://a.example:8080/2", judged("two"), 101.0, counts=True)
    assert verdicts.host_pages("a.example") == HostPages(3, {"gambling": 1})


def test_one_path_is_one_page(verdicts: VerdictStore) -> None:
    for number, url in enumerate(("http://a.example/", "https://a.example/", "http://a.example:8080/")):
        verdicts.record(url, judged(f"{number}", "gambling"), 100.0, counts=True)
    assert verdicts.host_pages("a.example") == HostPages(1, {"gambling": 1})


def test_a_page_counts_for_its_host_while_it_reads_as_when_it_counted(verdicts: VerdictStore) -> None:
    verdicts.record(URL, judged("one"), 100.0)
    assert verdicts.host_pages("a.example") == HostPages(0, {})
    verdicts.record(URL, judged("one"), 101.0, counts=True)
    verdicts.record(URL, judged("one", "gambling"), 102.0)
    assert verdicts.host_pages("a.example") == HostPages(1, {"gambling": 1})
    verdicts.record(URL, judged("two", "gambling"), 103.0)
    assert verdicts.host_pages("a.example") == HostPages(0, {})


def test_where_a_page_lies_is_noted_until_it_is_judged_anew(verdicts: VerdictStore) -> None:
    assert isinstance(verdicts, SqlVerdictStore)
    assert not verdicts.note_archived(URL, "place")
    assert not verdicts.archived(URL)
    verdicts.record(URL, HARMFUL, 100.0)
    assert not verdicts.archived(URL)
    assert verdicts.note_archived(URL, "place")
    assert verdicts.archived(URL) == "place"
    assert verdicts.find(URL) == (HARMFUL, 100.0)
    verdicts.record(URL, HARMLESS, 101.0)
    assert not verdicts.archived(URL)
