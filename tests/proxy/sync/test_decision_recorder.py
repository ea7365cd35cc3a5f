from dataclasses import replace

from gatewayfilter.config import LogPrivacy, LogSettings
from gatewayfilter.model import Action, LogDetail, LogRecord, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.proxy.proxy_fakes import BLOCK

ASKED = Request(parse_url("http://a.example/p?q=secret"), None, ResourceType.SCRIPT, "POST", "192.0.2.7")
LEARNED = Verdict(Action.BLOCK, Reason.LEARNED, rule="a.example/p?q=secret")
ADBLOCK = Verdict(Action.BLOCK, Reason.ADBLOCK, rule="/ads?x=")


def recorded(privacy: LogPrivacy, verdict: Verdict = BLOCK, key: bytes | None = None) -> list[LogRecord]:
    found: list[LogRecord] = []
    DecisionRecorder(found.append, privacy, key, clock=lambda: 7.0).record(ASKED, verdict, 12)
    return found


def test_everything_is_recorded() -> None:
    assert recorded(LogPrivacy.FULL) == [
        LogRecord(
            7.0,
            "192.0.2.7",
            "POST",
            "http://a.example/p?q=secret",
            "script",
            "block",
            "blacklist",
            "test",
            "blocked.example",
            "gambling",
            12,
        )
    ]


@all_cases(
    ("privacy", "verdict", "url", "rule"),
    [
        (LogPrivacy.FULL, LEARNED, "http://a.example/p?q=secret", "a.example/p?q=secret"),
        (LogPrivacy.NO_QUERY, LEARNED, "http://a.example/p?", "a.example/p"),
        (LogPrivacy.HOST, LEARNED, "a.example", "a.example"),
        (LogPrivacy.HOST, ADBLOCK, "a.example", "/ads?x="),
    ],
)
def test_levels(privacy: LogPrivacy, verdict: Verdict, url: str, rule: str) -> None:
    (record,) = recorded(privacy, verdict)
    assert (record.url, record.rule) == (url, rule)


@all_cases("path", ["p", "p?", "p?q", "p?q=secret", "p?q=?secret", "p?\u79d8?"])
def test_by_default_a_url_ends_at_its_mark(path: str) -> None:
    found: list[LogRecord] = []
    asked = replace(ASKED, url=parse_url(f"http://a.example/{path}"))
    DecisionRecorder(found.append, LogSettings().privacy).record(asked, BLOCK, 12)
    DecisionRecorder(found.append).record(asked, BLOCK, 12)
    assert {one.url for one in found} == {f"http://a.example/{path[:2]}"}


def test_off_records_nothing() -> None:
    assert recorded(LogPrivacy.OFF) == []
    found: list[LogRecord] = []
    DecisionRecorder(found.append, LogPrivacy.OFF).record_unreadable("192.0.2.7", "GET", BLOCK)
    assert found == []


def test_clients_are_hashed_with_the_key() -> None:
    (one,), (same,), (other,) = (recorded(LogPrivacy.FULL, key=key) for key in (b"k" * 16, b"k" * 16, b"l" * 16))
    assert one.client == same.client != other.client
    assert "192" not in one.client
    assert len(one.client) == 16


def test_unreadable_requests_have_no_url() -> None:
    found: list[LogRecord] = []
    DecisionRecorder(found.append).record_unreadable("192.0.2.7", "G" * 50, Verdict(Action.BLOCK, Reason.BAD_REQUEST))
    assert (found[0].url, found[0].method, found[0].reason) == ("", "G" * 20, "bad-request")


@all_cases("privacy", [LogPrivacy.FULL, LogPrivacy.NO_QUERY, LogPrivacy.HOST])
def test_no_text_of_a_record_has_more_than_its_bound(privacy: LogPrivacy) -> None:
    url = parse_url(f"http://{'a' * 60}.example/{'p' * 30_000}?{'q' * 30_000}")
    asked = Request(url, None, ResourceType.SCRIPT, "M" * 60_000, "192.0.2.7")
    verdict = Verdict(Action.BLOCK, Reason.ADBLOCK, source_list="l" * 9_000, rule=f"/{'r' * 60_000}", category="c" * 9_000)
    found: list[LogRecord] = []
    recorder = DecisionRecorder(found.append, privacy, clock=lambda: 7.0)
    recorder.record(asked, verdict, 12)
    recorder.record_unreadable("192.0.2.7", "M" * 60_000, verdict)
    for record in found:
        assert sum(len(text.encode()) for text in record if isinstance(text, str)) < 2_900


def test_a_long_url_is_kept_from_its_beginning_with_its_length() -> None:
    asked = Request(parse_url(f"http://a.example/?{'q' * 5_000}"), None, ResourceType.SCRIPT, "GET", "192.0.2.7")
    found: list[LogRecord] = []
    DecisionRecorder(found.append, LogPrivacy.FULL, clock=lambda: 7.0).record(asked, BLOCK, 12)
    assert found[0].url.startswith("http://a.example/?qqqq")
    assert found[0].url.endswith("q… (5018 characters)")
    assert len(found[0].url) < 1_850


class Details:
    """Clients of which less or more is kept."""

    varies_log = True

    def log_detail(self, client: str, user: str = "") -> LogDetail | None:
        return {"192.0.2.7": LogDetail.OFF, "192.0.2.8": LogDetail.HOST, "anna": LogDetail.FULL}.get(user or client)


@all_cases(
    ("client", "user", "urls"),
    [
        ("192.0.2.7", "", []),
        ("192.0.2.7", "anna", ["http://a.example/p?q=secret"]),
        ("192.0.2.8", "", ["a.example"]),
        ("192.0.2.9", "", ["http://a.example/p?"]),
    ],
)
def test_a_policy_of_the_client_outranks_the_setting(client: str, user: str, urls: list[str]) -> None:
    found: list[LogRecord] = []
    recorder = DecisionRecorder(found.append, LogPrivacy.NO_QUERY, details=Details())
    recorder.record(replace(ASKED, client=client, user=user), LEARNED, 1)
    assert [record.url for record in found] == urls
    found.clear()
    recorder.record_unreadable(client, "GET", BLOCK)
    assert bool(found) is (client != "192.0.2.7")


@all_cases("more", [0, 1])
def test_texts_are_kept_whole_up_to_their_bounds(more: int) -> None:
    begin = "http://a.example/"
    url = f"{begin}{'p' * (1_800 - len(begin) + more)}"
    rule, name = "r" * (500 + more), "n" * (100 + more)
    asked = Request(parse_url(url), None, ResourceType.SCRIPT, "M" * (20 + more), "192.0.2.7", name)
    found: list[LogRecord] = []
    verdict = Verdict(Action.BLOCK, Reason.ADBLOCK, source_list=name, rule=rule, category=name)
    recorder = DecisionRecorder(found.append, LogPrivacy.FULL)
    recorder.record(asked, verdict, 12)
    (record,) = found
    assert record.url == (f"{url[:1_800]}… (1801 characters)" if more else url)
    assert record.rule == (f"{rule[:500]}… (501 characters)" if more else rule)
    assert (record.method, record.source_list, record.category, record.user) == ("M" * 20, *["n" * 100] * 3)


def test_a_client_is_written_down_as_it_is_without_a_key() -> None:
    assert DecisionRecorder(lambda _: None).client("192.0.2.7") == "192.0.2.7"
