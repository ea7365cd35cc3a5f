"""Login clones are found by identity and form together; honest pages with credential fields are none."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.classify.classifier import MAX_BODY
from gatewayfilter.classify.imitated_services import SERVICES_FILE, ImitatedServices
from gatewayfilter.classify.login_clone import MAX_LENGTH, find_login_clone
from gatewayfilter.classify.zones import page_text
from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Evidence
from gatewayfilter.settings import Extractor, bundled_folder
from tests.case_tables import all_cases
from tests.classify.honest_login_pages import CLONES, HONEST, Case, canonical, form, page

OWNED = (
    ("paypal", "www.paypal.com"),
    ("Amazon.com", "www.amazon.co.jp"),
    ("支付宝", "my.alipay.com"),
    ("HMRC", "www.tax.service.gov.uk"),
)
SERVICES = ImitatedServices.load(bundled_folder() / SERVICES_FILE)


def found_on(url: str, html: str) -> Evidence | None:
    text = page_text(html, url, Extractor.DENSITY, None, read_html(html))
    return find_login_clone(html, url, text.title, text.visible(), SERVICES)


@all_cases("case", HONEST)
def test_an_honest_page_is_no_clone(case: Case) -> None:
    assert found_on(case.url, case.html) is None


@all_cases("case", CLONES)
def test_a_clone_is_found(case: Case) -> None:
    found = found_on(case.url, case.html)
    assert found is not None
    assert found.category == "fraud"


def test_the_evidence_names_field_service_and_site() -> None:
    found = found_on("http://site.example/", page("Twitter / Log in", form("x.php")))
    assert found is not None
    assert found.word == "asks for a password in the name of Twitter, whose site is twitter.com"


def test_a_form_alone_and_a_name_alone_are_none() -> None:
    assert found_on("http://site.example/", page("Members", form("login.php"))) is None
    assert found_on("http://site.example/", page("PayPal", form("/login"))) is None


def test_a_page_of_much_text_is_none() -> None:
    html = page("PayPal", form("login.php"), canonical("https://www.paypal.com/"))
    assert find_login_clone(html, "http://site.example/", "PayPal", "a" * MAX_LENGTH, SERVICES)
    assert find_login_clone(html, "http://site.example/", "PayPal", "a" * (MAX_LENGTH + 1), SERVICES) is None


def test_without_services_only_saved_pages_and_greedy_forms_are_found() -> None:
    none = ImitatedServices(())
    assert find_login_clone(page("PayPal", form("login.php")), "http://site.example/", "PayPal", "", none) is None


def test_services_are_many_and_each_owns_its_domains() -> None:
    assert len(SERVICES) >= 80
    for name, domain in OWNED:
        claim = SERVICES.of_title(f"{name} | Sign in")
        assert claim is not None
        assert claim.service.owns(domain)
        assert not claim.service.owns("site.example")


@all_cases("host", ["me.github.io", "paypal.com.evil.org", "amazon.xyz", "xgoogle.com"])
def test_a_host_that_anybody_may_have_is_owned_by_no_service(host: str) -> None:
    assert SERVICES.of_host(host) is None


def test_a_missing_list_and_bad_lines_hold_no_services(tmp_path: Path) -> None:
    assert len(ImitatedServices.load(tmp_path / "none.txt")) == 0
    assert len(ImitatedServices(["# comment", "", "name without domains", " = a.example"])) == 0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *"<>\"'= /\x00&#;",
                "<input ",
                "type=password",
                "<form ",
                "action=",
                "<meta ",
                "content=",
                "//",
                "http://[",
                "\ud800",
                "PayPal",
                "x.php",
            ]
        )
        | st.text(max_size=5),
        max_size=60,
    )
)
def test_nothing_raises(parts: list[str]) -> None:
    html = "".join(parts)
    found_on("http://site.example/", html)
    found_on("http://site.example/", form("x.php") + html)
    find_login_clone(html, html, html, html, SERVICES)


@pytest.mark.parametrize(
    "html",
    [
        form("login.php") + "<a href=https://passport.yandex.com/login>" * 50_000,
        "<input name=password " * 90_000,
        "<form action=a/a/a/a/a/a/a/a/a/>" * 50_000 + "<input type=password>",
        "<input name='" + "card pin " * 200_000 + "'>",
        "<!-- saved from url=(" + "1" * 1_900_000 + form("a.php"),
        '<meta name="savepage-url" content="http://' + "a." * 900_000 + '">' + form("login.php"),
        "<title>" + "PayPal - " * 200_000 + "</title>" + form("x.php"),
        form("a/" * 500_000 + ".php"),
        form("%" * 500_000),
        form("a.php") + ("<a href=" + " " * 19_000 + "x>") * 100,
        "phrase" + "<textarea " * 190_000 + form("a.php"),
    ],
    ids=["links", "fields", "forms", "attribute", "mark", "address", "title", "action", "escapes", "spaces", "areas"],
)
def test_the_cost_is_bounded(html: str) -> None:
    start = time.process_time()
    find_login_clone(html, "http://site.example/", "PayPal " * 100, "log in to " * 590, SERVICES)
    assert time.process_time() - start < 2.0


def test_a_long_body_is_read_up_to_the_bound() -> None:
    html = page("PayPal", form("login.php"), canonical("https://www.paypal.com/"))
    url, headers = "http://site.example/", {"content-type": "text/html"}
    judge = PageClassifier(Lexicon.of([WordFile("fraud", words={"lure": 30.0}, limit=20.0)]), services=SERVICES)
    long = Page(url, url, 200, headers, html.encode() + b"<!--" + b"x" * MAX_BODY)
    assert judge.classify_page(long).category == "fraud"
    assert judge.classify_with_parts(long)[0].category == "fraud"
