"""What fields take, where forms lead, and what a page declares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.documents.html import forms
from gatewayfilter.documents.html.forms import MAX_FIELDS, Credential, likely_credentials, read_forms
from gatewayfilter.documents.html.tags import MAX_HTML
from tests.case_tables import all_cases

PIECES = (
    "<input ",
    "<INPUT\t",
    "<input",
    "<textarea ",
    "<TextArea/",
    "<textarea",
    "input",
    " type=password",
    " name=otp",
    " name=mnemonic",
    " name=card_number",
)
"""What fields are written with."""


@all_cases(
    ("field", "credential"),
    [
        ("<input type=password>", Credential.PASSWORD),
        ("<INPUT TYPE='Password' name=x>", Credential.PASSWORD),
        ("<input type=text name=psw>", Credential.PASSWORD),
        ('<input placeholder="请输入密码">', Credential.PASSWORD),
        ("<input name=card_number>", Credential.CARD),
        ("<input autocomplete=cc-number>", Credential.CARD),
        ("<input type=cvv name=x>", Credential.CARD_CHECK),
        ("<input type=password placeholder='Card PIN'>", Credential.PIN),
        ("<input name=OTP type=tel>", Credential.CODE),
        ("<input autocomplete=one-time-code>", Credential.CODE),
        ("<textarea name=mnemonic></textarea>", None),  # outside a form
        ("<form><textarea name=mnemonic></textarea></form>", Credential.SEED),
        ("<input placeholder='SSN (9 digits)'>", Credential.IDENTITY),
        ("<input type=email>", Credential.LOGIN),
        ("<input type=search name=q>", None),
        ("<input type=hidden name=password>", None),
        ("<input type=submit name=login>", None),
        ("<form><textarea name=message></textarea></form>", None),
        ("<!-- <input type=password> -->", None),
        ("<script>'<input type=password>'</script>", None),
        ("<textarea><input type=password></textarea>", None),
        ("&lt;input type=password&gt;", None),
    ],
)
def test_a_field_takes(field: str, credential: Credential | None) -> None:
    found = read_forms(field)
    assert (found.credentials if found else frozenset()) == ({credential} if credential else frozenset())


def test_targets_are_of_forms_with_credentials() -> None:
    found = read_forms("<form action=/search><input name=q></form><form action='a.php?x&amp;y'><input type=password></form>")
    assert found is not None
    assert found.targets == ("a.php?x&y",)
    loose = read_forms("<form action=a.php></form><input type=password>")
    assert loose is not None
    assert loose.targets == ("a.php",)


def test_a_target_is_listed_once_and_only_for_the_fields_of_its_form() -> None:
    found = read_forms(
        "<form action=a><input name=q></form><input type=password><form action=b><input type=password><input type=email></form>"
        "<form action=c><input type=email><form action=d><input type=password>"
    )
    assert found is not None
    assert found.targets == ("b", "c", "d")


@all_cases(
    ("head", "saved_from"),
    [
        ("<!-- mirrored from a.example/x -->", "http://a.example/x"),
        ("<!-- Mirrored from https://a.example/x -->", "https://a.example/x"),
        ("<!-- mirrored from gopher://a.example/ -->", "http://gopher://a.example/"),
        ("<!-- saved from url=(0014)about:internet -->", "http://about:internet"),
        ("<meta name=savepage-url content=http://a.example/><meta name=savepage-from content=http://b.example/>",
        "http://a.example/"),
        ("<meta name=savepage-from content=a.example>", ""), ("<!-- mirrored from abc -->", ""),
        (" " * 2_990 + "<!-- mirrored from a.example -->", ""),
        ("<!-- mirrored from a.example --><meta name=savepage-url content=http://b.example/>", "http://b.example/"), ("", ""),
    ],
)  # fmt: skip
def test_where_a_saved_page_was(head: str, saved_from: str) -> None:
    found = read_forms(head + "<input type=password>")
    assert found is not None
    assert found.saved_from == saved_from


@all_cases(
    ("html", "references"),
    [
        ("<link rel=icon href=https://a.example/>", ("https://a.example/",)), ("<link rel=icon href=gopher://a.example/>", ()),
        ("<link rel='alternate icon' href=//a.example/>", ()), ("<link rel=dns-prefetch href=//a.example/>", ()),
        ("<link rel=icon href=/a>", ()),
        ("<img src='//a.example/b'>", ("//a.example/b",)), ("<script src=HTTP://a.example></script>", ("HTTP://a.example",)),
        ("<area href=a//b>", ()),
        ("<a data-href=//a.example/>x</a>", ("//a.example/",)), ("<p href=//a.example/>", ()), ("<img alt=x><a>", ()),
    ],
)  # fmt: skip
def test_absolute_references_alone_count(html: str, references: tuple[str, ...]) -> None:
    found = read_forms(html + "<input type=password>")
    assert found is not None
    assert found.references == references


def test_what_a_page_declares() -> None:
    found = read_forms(
        "<!-- saved from url=(0020)https://a.example/x --><link rel='shortcut icon' href=//b.example/i.ico>"
        "<link rel=canonical href=https://c.example/><meta property=og:url content=https://d.example/>"
        "<meta name=application-name content=Name><a href=/local>x</a><a href=https://e.example/>x</a>"
        "<input type=hidden value=https://f.example/><input type=password>"
    )
    assert found is not None
    assert found.declared == ("https://c.example/", "https://d.example/", "https://a.example/x")
    assert found.saved_from == "https://a.example/x"
    assert found.names == ("Name",)
    assert found.references == ("//b.example/i.ico", "https://e.example/", "https://f.example/")


def test_a_saved_page_whose_address_was_taken_out_is_of_what_it_declares() -> None:
    found = read_forms(
        "<meta name=savepage-url content=''><meta name=savepage-version content=1>"
        "<meta property=og:url content=https://d.example/><input type=password>"
    )
    assert found is not None
    assert found.saved_from == "https://d.example/"


@all_cases(
    ("html", "likely"),
    [
        ("<p>password</p>", set()),
        ("<input name=q>", set()),
        ("<iNpUt type=password>", {Credential.PASSWORD}),
        ("<!-- <input type=password> -->", {Credential.PASSWORD}),
        ("<textarea name=mnemonic>", {Credential.SEED}),
        ("<input name=q><TextArea placeholder='recovery phrase'>", {Credential.SEED}),
        ("<textarea name=message></textarea><input type=password>", {Credential.PASSWORD}),
        ("<input name=q <textarea name=mnemonic>", {Credential.SEED}),
        ("<input name=q>" * MAX_FIELDS + "<input name=q><textarea name=mnemonic>", {Credential.SEED}),
        ("<p>mnemonic</p><textareas name=mnemonic>", set()),
        ("<textarea name=seed></textarea>", set()),  # of a garden, as far as the page says
        ("<textarea name=seed></textarea> your phrase", {Credential.SEED}),
    ],
)
def test_the_first_search_finds_as_much_or_more(html: str, likely: set[Credential]) -> None:
    assert likely_credentials(html) == likely


def test_what_was_asked_last_is_kept_for_that_page_alone() -> None:
    page, other = "<input type=password>", "<input name=otp>"
    assert likely_credentials(page) == likely_credentials(page) == {Credential.PASSWORD}
    assert likely_credentials(other) == {Credential.CODE}
    assert likely_credentials(page) == {Credential.PASSWORD}


@pytest.mark.skipif(forms._compiled is None, reason="the compiled reading was not built")
@given(st.lists(st.sampled_from([*"<<<>/=\n\u00a0\u0101\U00010000", *PIECES]), max_size=30).map("".join))
def test_compiled_code_finds_the_fields_that_python_finds(html: str) -> None:
    likely = likely_credentials(html)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "_compiled", None)
        assert likely_credentials(f"{html} ") == likely  # another page, of which nothing is kept


def test_fields_are_looked_for_up_to_the_end_of_what_is_read() -> None:
    before = "x" * (MAX_HTML - 40)
    assert likely_credentials(f"{before}<input type=password>") == {Credential.PASSWORD}
    assert likely_credentials(f"{before}{' ' * 40}<input type=password>") == set()
