"""What the values of accounts, reviews, changes and verdicts answer about themselves."""

from dataclasses import replace

import pytest

from gatewayfilter.errors import AccountError, PolicyError
from gatewayfilter.model import (
    Action,
    ChangeKind,
    Classification,
    ContentId,
    ContentKind,
    Evidence,
    Pause,
    PauseScope,
    Reason,
    ReviewKind,
    ReviewTask,
    Verdict,
    parse_matcher,
)
from gatewayfilter.model.access.account import Account, Role, Scope, WebSession, check_account_name, folded_name
from gatewayfilter.model.client_matcher import _MOST_USER_CHARACTERS, canonical_address
from gatewayfilter.model.modification import Enforcement
from gatewayfilter.model.values.file_types import FILE_GROUPS, expanded_types
from gatewayfilter.renamed_codes import RENAMED_CODES
from gatewayfilter.urls import parse_url


@pytest.mark.parametrize(
    ("role", "covers"),
    [(Role.VIEWER, {Role.VIEWER}), (Role.APPROVER, {Role.VIEWER, Role.APPROVER}), (Role.ADMIN, set(Role))],
)
def test_a_role_covers_those_before_it(role: Role, covers: set[Role]) -> None:
    assert {other for other in Role if role.covers(other)} == covers


def test_a_token_has_the_lower_one_of_scope_and_role() -> None:
    assert [scope.role for scope in Scope] == [Role.VIEWER, Role.APPROVER, Role.ADMIN]
    assert [Scope.APPROVE.within(role) for role in Role] == [Role.VIEWER, Role.APPROVER, Role.APPROVER]


def test_sessions_and_accounts() -> None:
    session = WebSession(bytes(range(32)), 1, "csrf", 0.0, 0.0, 1.0, "10.0.0.2", "agent")
    assert session.public_id == "0001020304050607"
    assert not Account(1, "anna", Role.ADMIN).has_second_factor
    assert Account(1, "anna", Role.ADMIN, totp_secret="A").has_second_factor is True


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("a", "a"),
        ("a" * 64, "a" * 64),
        (" Anna@example.org ", "Anna@example.org"),
        ("１a", "1a"),  # noqa: RUF001  a full-width digit
        ("é_-+.", "é_-+."),
        ("हिन्दी", None),
        ("", None),
        ("  ", None),
        ("a" * 65, None),
        ("a b", None),
        ("a/b", None),
        ("_a", None),
        ("@", None),
    ],
)
def test_names_of_accounts(name: str, stored: str | None) -> None:
    if stored is None:
        with pytest.raises(AccountError):
            check_account_name(name)
    else:
        assert check_account_name(name) == stored


def test_names_that_are_one_account() -> None:
    assert folded_name(" ＡNNA ") == folded_name("anna") == "anna"  # noqa: RUF001  a full-width letter
    assert folded_name("a\0b\udc80") == "a\ufffdb?"


def test_what_is_changed_in_one_line() -> None:
    change = Enforcement(
        "safesearch", "strict.bing.com", (("adlt", "strict"),), (("PREF", "f2=8"),), (("YouTube-Restrict", "Strict"),)
    )
    assert change.summary == "strict.bing.com, adlt=strict, cookie PREF=f2=8, header YouTube-Restrict: Strict"
    assert Enforcement("safesearch", "", (("safe", "active"),)).summary == "safe=active"


def test_a_review_covers_the_page_and_where_it_was_redirected() -> None:
    nothing = Classification("", 1.0, 20.0)
    task = ReviewTask(1, ReviewKind.PAGE, "http://a.org/", "a.org/", "games", nothing, blocked=True, created_at=0.0)
    assert (task.urls, task.keys) == (("http://a.org/",), ("a.org/",))
    moved = replace(task, final_url="https://www.b.org/c?d")
    assert moved.urls == ("http://a.org/", "https://www.b.org/c?d")
    assert moved.keys == ("a.org/", parse_url("https://www.b.org/c?d").key)


def test_a_page_is_blocked_while_it_is_waited_for() -> None:
    found = Classification("gambling", 42.0, 20.0, evidence=(Evidence("casino", "gambling", 9.0, "main", 0),))
    verdict = found.block(unknown=True)
    assert (verdict.action, verdict.reason, verdict.source_list, verdict.category) == (
        *(Action.BLOCK, Reason.LEARNED, "learned:gambling", "gambling"),
    )
    assert (verdict.unknown, found.block(unknown=False).unknown) == (True, False)
    assert verdict.detail == "score 42.0 (limit 20.0): casino"
    assert (found.harmful, Classification("", 1.0, 20.0).harmful) == (True, False)


def test_the_evidence_in_one_line() -> None:
    hits = [Evidence(f"w{number}", "gambling", 1.0, "main", number) for number in range(7)]
    hits[1] = Evidence("against", "gambling", -1.0, "main", 1)
    hits[2] = Evidence("other", "adult", 1.0, "main", 2)
    hits[3] = Evidence("w0", "gambling", 1.0, "title", 3)
    hosts = [Evidence(f"h{number}", "gambling", 1.0, "host", number) for number in range(3)]
    against = Evidence("good", "gambling", -1.0, "host", 4)
    found = Classification("gambling", 10.0, 20.0, evidence=(*hits, against, *hosts))
    assert found.summary() == "score 10.0 (limit 20.0): w0, w4, w5, w6; blocked because h0, h1"
    assert found.summary(2) == "score 10.0 (limit 20.0): w0, w4; blocked because h0, h1"
    nothing = Evidence("nothing", "gambling", 0.0, "host", 4)
    assert Classification("gambling", 1.0, 2.0, evidence=(nothing,)).summary() == "score 1.0 (limit 2.0): no words"
    counted = Evidence("nothing", "gambling", 0.0, "main", 4)
    assert Classification("gambling", 1.0, 2.0, evidence=(counted,)).summary() == "score 1.0 (limit 2.0): no words"
    above = Classification("gambling", 20.0, 20.0, evidence=(*hits, *hosts))
    assert above.summary() == "score 20.0 (limit 20.0): w0, w4, w5, w6"
    assert Classification("", 1.0, 20.0, evidence=(*hosts,)).summary() == "score 1.0 (limit 20.0): no words"


def test_a_network_of_all_addresses() -> None:
    assert [str(parse_matcher(text)) for text in ("0.0.0.0/0", "::/0", "10.0.0.0/31")] == ["0.0.0.0/0", "::/0", "10.0.0.0/31"]


def test_what_a_verdict_says() -> None:
    assert (Verdict(Action.BLOCK, Reason.BLACKLIST).blocked, Verdict(Action.ALLOW, Reason.UNKNOWN).blocked) == (True, False)


def test_codes_of_earlier_releases() -> None:
    for kind in (Reason, ChangeKind):
        assert [kind(member.value) for member in kind] == list(kind)
        with pytest.raises(ValueError, match="nothing"):
            kind("nothing")
    found = {old: kind(old) for old, new in RENAMED_CODES.items() for kind in (Reason, ChangeKind) if new in list(kind)}
    assert found == {old: new for old, new in RENAMED_CODES.items() if new in {*Reason, *ChangeKind}}
    assert len(found) >= 6


def test_the_names_of_pauses() -> None:
    pauses = (Pause(PauseScope.ALL, "", 1.0), Pause(PauseScope.GROUP, "a", 1.0), Pause(PauseScope.CLIENT, "b", 1.0))
    assert [pause.name for pause in pauses] == ["all", "group:a", "client:b"]


def test_contents_are_equal_by_both_digests() -> None:
    ids = [ContentId(ContentKind.PAGE, digest, proof) for digest in (b"a" * 16, b"b" * 16) for proof in (b"c" * 16, b"d" * 16)]
    assert len(set(ids)) == len({hash(one) for one in ids}) == 4
    assert hash(ContentId(ContentKind.PAGE, b"a" * 16, b"c" * 16)) == hash(ids[0])


def test_groups_of_file_types() -> None:
    assert expanded_types(frozenset({"exe"})) == {"exe"}
    assert expanded_types(frozenset({"exe", "video"})) == {"exe", *FILE_GROUPS["video"]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fe80::1%eth0", "fe80::1"),
        ("[::1]", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
    ],
)
def test_addresses_in_one_form(text: str, shown: str) -> None:
    assert canonical_address(text) == shown


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("user:", "no name of a proxy user"),
        ("user:a\tb", "no name of a proxy user"),
        ("user:" + "a" * (_MOST_USER_CHARACTERS + 1), "no name of a proxy user"),
        ("10.0.0.1/8", r"did you mean 10\.0\.0\.0/8\?"),
        ("nothing", "is no address, network, MAC or user:NAME"),
    ],
)
def test_what_matches_nobody(text: str, sentence: str) -> None:
    with pytest.raises(PolicyError, match=sentence):
        parse_matcher(text)


def test_what_matches_somebody() -> None:
    assert str(parse_matcher("USER:" + "a" * _MOST_USER_CHARACTERS)) == "user:" + "a" * _MOST_USER_CHARACTERS
    assert [str(parse_matcher(text)) for text in ("::ffff:0:0/96", "::ffff:a00:0/103", "::fffe:0:0/95")] == [
        *("0.0.0.0/0", "10.0.0.0/7", "::fffe:0:0/95")
    ]
