"""What makes a login page a clone, point by point: names, declared addresses, account links, the request and where it leads."""

from typing import Any

import pytest

from gatewayfilter.classify.imitated_services import Claim, ImitatedServices, Service, folded
from gatewayfilter.classify.login_clone import (
    MAX_LENGTH,
    Destination,
    _account_hosts,
    _destination,
    _destination_of,
    _evidence,
    _identities,
    _Identity,
    _is_local,
    _may_be_named,
    _names_itself,
    _parsed,
    _phrased,
    find_login_clone,
    login_clone,
    may_be_login_clone,
)
from gatewayfilter.documents.html.forms import Credential, PageForms
from tests.case_tables import all_cases

SERVICES = ImitatedServices(
    [
        "PayBank | paybank online = paybank.com paybank.net",
        "mail? = mail.example.org",
        "other = other.com # a comment",
        "Deep Sea Bank = deepsea.com",
    ]
)
OWN = "site.example"
PASSWORD, CARD, CHECK, LOGIN = Credential.PASSWORD, Credential.CARD, Credential.CARD_CHECK, Credential.LOGIN


def forms(*credentials: Credential, target: str = "/x", **more: Any) -> PageForms:
    given = {"declared": (), "saved_from": "", "names": (), "references": ()} | more
    return PageForms(frozenset(credentials or (PASSWORD,)), (target,), **given)


def identities(
    title: str = "", text: str = "", own: str = OWN, hosts: tuple[str, ...] = (), **more: Any
) -> list[tuple[str, str, int, bool]]:
    parsed = [address for host in hosts if (address := _parsed(host))]
    found = _identities(forms(**more), own, title, text, parsed, SERVICES)
    return [(each.name, each.domain, each.points, each.is_plain) for each, _ in found]


ACCOUNT, OTHER = "https://paybank.com/help", "https://elsewhere.example/help"
SIGN_IN = "https://login.paybank.com/account"


@all_cases(
    ("given", "found"),
    [
        ({}, []), ({"title": "PayBank"}, [("PayBank", "paybank.com", 2, False)]),
        ({"title": "Mail"}, [("Mail", "example.org", 1, True)]),
        ({"title": "PayBank | Firm", "own": "firm.example"}, [("PayBank", "paybank.com", 1, True)]),
        ({"names": ("PayBank",)}, [("PayBank", "paybank.com", 2, False)]),
        ({"names": ("a", "b", "c", "PayBank")}, [("PayBank", "paybank.com", 2, False)]),
        ({"names": ("a", "b", "c", "d", "PayBank")}, []),
        ({"title": "PayBank", "names": ("Mail", "Other")}, [("PayBank", "paybank.com", 2, False),
        ("Other", "other.com", 2, False), ("Mail", "example.org", 1, True)]),
        ({"declared": ("https://paybank.com/",)}, [("PayBank", "paybank.com", 3, False)]),
        ({"title": "PayBank", "declared": ("https://paybank.com/", "https://www.paybank.net/")}, [("PayBank",
        "paybank.com", 5, False)]),
        ({"declared": ("https://a.example/",) * 7 + ("https://paybank.com/",)}, [("PayBank", "paybank.com", 3, False)]),
        ({"declared": ("https://a.example/",) * 8 + ("https://paybank.com/",)}, []),
        ({"declared": ("https://paybank.com/",), "saved_from": "https://paybank.com/x"}, [("PayBank", "paybank.com", 4, False),
        ("paybank.com", "paybank.com", 3, False)]),
        ({"saved_from": "https://www.bank.example/x"}, [("bank.example", "bank.example", 3, False)]),
        ({"saved_from": "https://www.site.example/x"}, []),
        ({"title": "PayBank", "text": "log in to paybank now"}, [("PayBank", "paybank.com", 3, False)]),
        ({"text": "log in to paybank now"}, []),
        # account links: one names, most of them weigh more, all of them or a login host most
        ({"title": "PayBank", "hosts": (ACCOUNT,)}, [("PayBank", "paybank.com", 3, False)]),
        ({"title": "PayBank", "hosts": (ACCOUNT,) * 3}, [("PayBank", "paybank.com", 5, False)]),
        ({"title": "PayBank", "hosts": (ACCOUNT,) * 3 + (OTHER,) * 3}, [("PayBank", "paybank.com", 4, False)]),
        ({"title": "PayBank", "hosts": (ACCOUNT,) * 3 + (OTHER,) * 4}, [("PayBank", "paybank.com", 3, False)]),
        ({"title": "PayBank", "hosts": (ACCOUNT,) * 2 + (SIGN_IN,) + (OTHER,) * 3}, [("PayBank", "paybank.com", 5, False)]),
        ({"hosts": (ACCOUNT,) * 3}, []), ({"hosts": (ACCOUNT,) + (SIGN_IN,) * 2}, [("PayBank", "paybank.com", 3, False)]),
        ({"hosts": (ACCOUNT,) * 2 + (SIGN_IN,)}, []),
        ({"hosts": (SIGN_IN,) * 2}, []), ({"hosts": (SIGN_IN,) * 3 + (OTHER,) * 4}, []),
        ({"hosts": ("https://x.site.example/help",) * 9 + (SIGN_IN,) * 3}, [("PayBank", "paybank.com", 3, False)]),
    ],
)  # fmt: skip
def test_in_whose_name_a_page_is(given: dict[str, Any], found: list[tuple[str, str, int, bool]]) -> None:
    assert identities(**given) == found


def test_account_links_are_counted() -> None:
    paths = ("help", "fonts.css", "oauth/login", "about")
    urls = (*(f"https://paybank.com/{path}" for path in paths), SIGN_IN, OTHER)
    parsed = [address for url in urls if (address := _parsed(url))]
    assert {name: found[1:] for name, found in _account_hosts(parsed, OWN, SERVICES).items()} == {"PayBank": (2, 1)}
    assert _account_hosts(parsed, "paybank.com", SERVICES)["PayBank"][1:] == (1, 1)


@all_cases(
    ("text", "found"),
    [
        ("log in to paybank", {"PayBank"}), ("your PayBank account", {"PayBank"}),
        ("continue to deep sea bank", {"Deep Sea Bank"}), ("sign in to mail, your other password", {"Mail", "Other"}),
        ("paybank", set()), ("log in to nothing", set()), ("x" * 3_990 + " log in to paybank", set()),
        ("log in to x paybank", set()), ("log in to paybank online x y", {"PayBank"}),
    ],
)  # fmt: skip
def test_in_whose_name_a_text_asks(text: str, found: set[str]) -> None:
    assert _phrased(text, SERVICES) == found


@all_cases(
    ("title", "own", "itself"),
    [("Firm | x", "firm.example", True), ("F-i-r-m", "firm.example", True), ("abc", "abc.example", False),
     ("abcd", "abcd.example", True), ("x", "firm.example", False), ("PayBank", "paybank.example", False),
     ("PayBank", "my-paybank.example", False),
     ("a" * 296 + "firm", "firm.example", True), ("a" * 297 + "firm", "firm.example", False),
     ("login", "login.example", False)],
)  # fmt: skip
def test_whether_a_title_has_the_name_of_its_site(title: str, own: str, *, itself: bool) -> None:
    assert _names_itself(title, own, SERVICES) is itself


@all_cases(
    ("html", "title", "named"),
    [
        ("", "PayBank", True), ("", "x", False), ("<meta name=savepage-x>", "", True), ("og:url //www.PayBank.com", "", True),
        ("//paybank.com canonical", "", True),
        ("//paybank.com", "", False), ("og:url" + " " * 200 + "//paybank.com", "", False),
        ("og:url" + " " * 180 + "//paybank.com", "", True),
        ("//paybank.com" + " " * 190 + "og:url", "", False), ("//paybank.com" + " " * 180 + "og:url", "", True),
        ("og:url" + " //aaa" * 3 + " //paybank.com", "", True),
        ("og:url" + " //aaa" * 4 + " //paybank.com", "", False),
        ("og:url //aaa" + " " * 300 + "canonical //paybank.com", "", True), ("x" * 300 + "canonical //paybank.com", "", True),
    ],
)  # fmt: skip
def test_a_field_for_a_name_alone_needs_a_name(html: str, title: str, *, named: bool) -> None:
    assert _may_be_named(html, title, SERVICES) is named
    assert may_be_login_clone(f"{html}<input type=email>", title, SERVICES) is named
    assert may_be_login_clone(f"{html}<input type=password>", title, SERVICES) is True
    assert may_be_login_clone(html, title, SERVICES) is False


PAYBANK: dict[str, Any] = {"declared": ("https://paybank.com/",)}
"""Three points of identity; a title is two more, a field one."""


@all_cases(
    ("page", "title", "text", "is_clone"),
    [
        (forms(**PAYBANK), "PayBank", "", True), (forms(**PAYBANK), "", "", False),
        (forms(target="https://x.example/", **PAYBANK), "", "", True),
        (forms(target="x.php", **PAYBANK), "", "a" * 2_501, True),
        (forms(target="https://x.example/", **PAYBANK), "", "a" * 2_501, False),
        (forms(target="https://x.example/", **PAYBANK), "", "a" * 2_500, True),
        (forms(target="https://x.example/", **PAYBANK), "", "é" * 1_250, True),
        (forms(target="https://x.example/", **PAYBANK), "", "é" * 1_251, False), (forms(CARD, CHECK, **PAYBANK), "", "", True),
        (forms(CARD, **PAYBANK), "", "", False),
        (forms(CARD, CHECK, LOGIN, **PAYBANK), "", "", True), (forms(LOGIN, **PAYBANK), "PayBank", "", True),
        (forms(LOGIN, target="https://x.example/", **PAYBANK), "", "", False),
        (forms(target="https://paybank.com/login", **PAYBANK), "PayBank", "", False),
        (forms(target="x.php"), "PayBank", "", True), (forms(target="x.php"), "x", "", False),
        (forms(target="mailto:a@b.example"), "Mail", "", False),
        (forms(target="mailto:a@b.example"), "Mail", "log in to mail", False),
        (forms(target="mailto:a@b.example", references=("https://example.org/help",) * 3), "Mail", "", True),
        (forms(**PAYBANK), "PayBank", "a" * (MAX_LENGTH + 1), False),
        (forms(target="x.php"), "Mail | PayBank", "", False), (forms(target="x.php", names=("PayBank",)), "Mail", "", True),
    ],
)  # fmt: skip
def test_the_points_decide(page: PageForms, title: str, text: str, *, is_clone: bool) -> None:
    found = login_clone(page, "https://site.example/", title, text, SERVICES)
    assert (found is not None) is is_clone


def test_where_no_page_is_a_clone() -> None:
    page = forms(target="/x", **PAYBANK)
    for url in (
        "https://paybank.com/",
        "http://printer/",
        "http://10.0.0.1/",
        "x",
        "https://web.archive.org/",
        "https://ezproxy.uni.example/",
    ):
        assert login_clone(page, url, "PayBank", "", SERVICES) is None, url
    scripted = forms(target="x.php", **PAYBANK)
    assert login_clone(scripted, "https://ezproxy.uni.example/", "PayBank", "", SERVICES) == _evidence(
        "asks for a password in the name of PayBank, whose site is paybank.com"
    )
    assert _evidence("x").position == -1
    both: dict[str, Any] = {"target": "https://other.com/", "declared": ("https://other.com/", "https://paybank.com/")}
    for first, second in (("PayBank", "Other"), ("Other", "PayBank")):  # the owner of one of both names is no thief of it
        found = login_clone(forms(names=(second,), **both), "https://site.example/", first, "", SERVICES)
        assert found is not None
        assert "PayBank" in found.word


IDENTITY = _Identity("b", "bank.example", 3)


@all_cases(
    ("target", "identity", "destination"),
    [
        ("https://www.bank.example/", IDENTITY, Destination.OWNER), ("https://x.example/", IDENTITY, Destination.OTHER),
        ("https://bank.example/", None, Destination.OTHER),
        ("https://formspree.io/x", None, Destination.COLLECTOR), ("https://api.formspree.io/x", None, Destination.COLLECTOR),
        ("https://forms.gle/x", None, Destination.COLLECTOR),
        ("https://api.telegram.org/x", None, Destination.OTHER), ("https://x.example/bot", None, Destination.OTHER),
        ("https://discord.com/api/webhooks/1", None, Destination.BOT),
        ("gopher://x.php", None, Destination.SITE), ("https://x.example/", None, Destination.OTHER),
    ],
)  # fmt: skip
def test_where_forms_lead(target: str, identity: _Identity | None, destination: Destination) -> None:
    assert _destination_of(target, OWN, identity, None) is destination


def test_services_as_they_are_written() -> None:
    services = ImitatedServices(
        [
            "Bink|bink online? = bank.com bank.net # no",
            "cloud = cloud.* cloudy.com gov.uk",
            "# none",
            "name =",
            " = host.com",
            "",
            "later = bank.net later.com",
            "Own = bank.com",
        ]
    )
    assert len(services) == 4
    bank = Service("Bink", ("bank.com", "bank.net"), frozenset(), ())
    assert services.of_title("Bink") == Claim(bank, plain=False)
    assert services.of_title("Bink Online - x") == Claim(bank, plain=True)
    cloud = services.of_title("Cloud")
    assert cloud is not None
    assert cloud.service == Service("Cloud", ("cloudy.com",), frozenset({"cloud"}), ("gov.uk",))
    for host, name in (
        ("www.bank.net", "Later"), ("bank.com", "Own"), ("later.com", "Later"), ("a.cloud.de", "Cloud"), ("cloud.com", ""),
        ("x.gov.uk", "Cloud"), ("cloudy.com", "Cloud"), ("x.com", ""),
    ):  # fmt: skip
        owner = services.of_host(host)
        assert (owner.name if owner else "") == name, host
    for title, is_named in (
        ("a | b | Bink", True),
        ("a | Bink | b", True),
        ("a | b | Bink | c", False),
        ("Bink | a | b", True),
        ("Sign in to Bink", True),
        ("Bïnk", False),
        ("", False),
    ):
        assert (services.of_title(title) is not None) is is_named, title


MORE = ImitatedServices(["Bank A | banka? = banka.com", "One Two Three Four = four.com"])


def test_a_plain_name_beside_an_own_one_is_not_plain() -> None:
    for title, plain in (("banka", True), ("banka | Bank A", True)):
        found = list(_identities(forms(), OWN, title, "", [], MORE))
        assert [(each.name, each.points, each.is_plain) for each, _ in found] == [("Bank A", 1, plain)]
    named = list(_identities(forms(names=("Bank A",)), OWN, "banka", "", [], MORE))
    assert [(each.name, each.points, each.is_plain) for each, _ in named] == [("Bank A", 2, False)]


def test_names_of_up_to_three_words_are_looked_for_in_a_text() -> None:
    assert _phrased("log in to one two three four", MORE) == set()
    assert _phrased("log in to bank a now", MORE) == {"Bank A"}
    four = ImitatedServices(["One Two Three = four.com", "Log = log.com"])
    assert _phrased("log in to one two three four", four) == {"One Two Three"}


def test_letters_that_look_like_latin_ones_are_those_beside_latin_ones() -> None:
    assert [folded(text) for text in ("P\u0430yBank", "вход", "ВХОД a", "Pay\nBank!", "é")] == [
        "paybank", "вход", "bxoд a", "pay bank", "é",
    ]  # fmt: skip


def test_so_many_forms_and_so_much_text_are_read() -> None:
    for count, destination in ((19, Destination.SCRIPT), (20, Destination.SITE)):
        assert _destination(("/x",) * count + ("x.php",), OWN, None, None) is destination
    assert _destination((), OWN, None, None) is Destination.SITE
    sent = forms(target="https://x.example/", **PAYBANK)
    for text, is_clone in (("a" * MAX_LENGTH, True), ("é" * (MAX_LENGTH // 2), True), ("é" * (MAX_LENGTH // 2) + "a", False)):
        assert (login_clone(sent, "https://site.example/", "PayBank", text, SERVICES) is not None) is is_clone
    html = '<link rel=canonical href="https://paybank.com/"><form action="https://x.example/"><input type=password></form>'
    for length, is_clone in ((MAX_LENGTH, True), (MAX_LENGTH + 1, False)):
        assert (find_login_clone(html, "https://site.example/", "PayBank", "a" * length, SERVICES) is not None) is is_clone
    assert find_login_clone("<p>", "https://site.example/", "PayBank", "", SERVICES) is None


def test_forms_are_read_only_where_a_page_may_be_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr("gatewayfilter.classify.login_clone.read_forms", read.append)
    field = "<input type=password>"
    for html, text in ((field, "a" * (MAX_LENGTH + 1)), ("<p>", ""), (field, "a" * MAX_LENGTH)):
        assert find_login_clone(html, "https://site.example/", "PayBank", text, SERVICES) is None
    assert read == [field]


def test_addresses_that_are_none_are_local() -> None:
    assert [_is_local(host) for host in ("[::g]", "[2001:4860:4860::8888]", "256.1.1.1", "printer", "nas.home")] == [
        True, False, False, True, True,
    ]  # fmt: skip


def test_a_service_owns_each_of_its_domains_but_those_that_are_the_main_one_of_another() -> None:
    services = ImitatedServices(["One = one.com shared.com more.com", "Two = two.com shared.com more.com", "More = more.com"])
    owners = [services.of_host(host) for host in ("one.com", "two.com", "www.shared.com", "more.com", "none.com")]
    assert [owner and owner.name for owner in owners] == ["One", "Two", "One", "More", None]
    later = ImitatedServices(["More = more.com", "One = one.com more.com two.com"])
    assert [getattr(later.of_host(host), "name", "") for host in ("more.com", "two.com")] == ["More", "One"]
