import pytest

from gatewayfilter.config import LogSettings
from gatewayfilter.model import Action, LogRecord, Reason, Request, Verdict
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.log_exclusions import LogExclusions
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

ALLOWED = Verdict(Action.ALLOW, Reason.UNKNOWN)


@all_cases(
    ("client", "user", "host", "logged"),
    [
        ("192.0.2.7", "", "a.example", True),
        ("192.0.2.8", "", "a.example", False),
        ("198.51.100.9", "", "a.example", False),
        ("::ffff:198.51.100.9", "", "a.example", False),
        ("2001:db8::5", "", "a.example", False),
        ("192.0.2.7", "kim", "a.example", False),
        ("192.0.2.7", "kimberly", "a.example", True),
        ("192.0.2.7", "", "bank.example", False),
        ("192.0.2.7", "", "www.bank.example", False),
        ("192.0.2.7", "", "mybank.example", True),
        ("no address", "", "a.example", True),
        ("", "", "a.example", True),
    ],
)
def test_who_and_what_is_left_out(client: str, user: str, host: str, logged: bool) -> None:  # noqa: FBT001
    settings = LogSettings(
        ignored_clients=("192.0.2.8", "198.51.100.0/24", "2001:db8::/32", "user:kim"), ignored_hosts=("Bank.example",)
    )
    found: list[LogRecord] = []
    recorder = DecisionRecorder(found.append, exclusions=LogExclusions(settings.ignored_clients, settings.ignored_hosts))
    for _ in range(2):
        recorder.record(Request(parse_url(f"http://{host}/x"), client=client, user=user), ALLOWED, 1)
    assert len(found) == (2 if logged else 0)
    recorder.record_unreadable(client, "GET", ALLOWED, user)
    assert len(found) == (3 if logged else 1 if host.endswith(".example") and client == "192.0.2.7" and not user else 0)


@all_cases(
    ("key", "value"),
    [
        ("ignored_clients", "no client"),
        ("ignored_clients", "02:00:00:00:00:01"),
        ("ignored_hosts", "a b"),
        ("ignored_hosts", "a.example/path"),
    ],
)
def test_what_is_neither_a_client_nor_a_host_is_refused(key: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"must|neither|client|address|host"):
        LogSettings(**{key: (value,)})  # type: ignore[arg-type]


def test_nothing_is_left_out_by_default() -> None:
    assert not LogExclusions((), ())
    for clients, hosts in ((["192.0.2.8"], []), (["192.0.2.0/24"], []), (["user:kim"], []), ([], ["a.example"])):
        assert LogExclusions(clients, hosts), "anything is left out"


def test_what_is_remembered_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.sync.log_exclusions._MOST_REMEMBERED", 2)
    found = LogExclusions(["198.51.100.0/24"], [])
    for address, left_out, kept in (
        ("192.0.2.1", False, 1),
        ("198.51.100.1", True, 2),
        ("192.0.2.1", False, 2),
        ("no address", False, 1),
        ("198.51.100.1%eth0", True, 2),
    ):
        assert found.has_client(address) is left_out
        assert len(found._of_address) == kept, address


def test_users_are_recorded_and_hashed_like_addresses() -> None:
    plain: list[LogRecord] = []
    DecisionRecorder(plain.append).record(Request(parse_url("http://a.example/"), client="192.0.2.7", user="kim"), ALLOWED, 1)
    assert (plain[0].client, plain[0].user) == ("192.0.2.7", "kim")
    hashed: list[LogRecord] = []
    recorder = DecisionRecorder(hashed.append, client_key=b"k" * 32)
    recorder.record(Request(parse_url("http://a.example/"), client="192.0.2.7", user="kim"), ALLOWED, 1)
    recorder.record_unreadable("192.0.2.7", "GET", ALLOWED, "kim")
    assert "kim" not in hashed[0].user
    assert hashed[0].user == hashed[1].user == recorder.client("user:kim")


@all_cases(("address", "left_out"), [("192.0.2.8", False), ("no address", False), ("198.51.100.1", True)])
def test_whether_a_client_is_left_out_is_told_in_one_word(address: str, *, left_out: bool) -> None:
    assert LogExclusions(["198.51.100.0/24"], []).has_client(address) is left_out
    assert LogExclusions(["192.0.2.7"], []).has_client(address) is False
