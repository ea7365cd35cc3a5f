"""The table of rule options: which of them take a value, and which text begins options."""

from gatewayfilter.engine.adblock.syntax.option_table import OPTIONS, Meaning, is_option_name, looks_like_options
from gatewayfilter.engine.adblock.syntax.options import read_options
from gatewayfilter.errors import RuleError
from tests.case_tables import all_cases

WITH_VALUE = [
    *("domain", "from", "to", "denyallow", "method", "client", "ctag", "reason", "stealth", "header", "responseheader"),
    *("ipaddress", "csp", "permissions", "removeparam", "queryprune", "redirect", "rewrite", "redirect-rule", "replace"),
    *("uritransform", "urltransform", "urlskip", "removeheader", "requestheader", "cname", "sitekey", "app", "network"),
    *("dnstype", "dnsrewrite", "cookie", "hls", "jsonprune", "xmlprune", "referrerpolicy", "addheader", "rewrite-rule"),
    "bypass-csp",
]
WITHOUT_VALUE = [
    *("all", "document", "doc", "script", "xhr", "popup", "popunder", "webrtc", "jsinject", "content", "urlblock"),
    *("extension", "third-party", "3p", "thirdparty", "first-party", "1p", "firstparty", "strict1p", "strict3p"),
    *("strict-first-party", "strict-third-party", "important", "badfilter", "match-case", "elemhide", "ehide"),
    *("generichide", "ghide", "specifichide", "shide", "genericblock", "inline-script", "inline-font", "collapse"),
    *("empty", "mp4"),
]


def complaint_about(options: str) -> str:
    try:
        read_options(options)
    except RuleError as error:
        return str(error)
    return ""


@all_cases("name", WITH_VALUE)
def test_an_option_may_have_a_value(name: str) -> None:
    assert "takes no value" not in complaint_about(f"{name}=example.com")


@all_cases("name", WITHOUT_VALUE)
def test_an_option_may_have_no_value(name: str) -> None:
    assert complaint_about(f"{name}=example.com") == f"the option {name!r} takes no value"


def test_the_lists_above_name_all_options_but_types() -> None:
    types = {name for name, option in OPTIONS.items() if option.meaning is Meaning.TYPE}
    assert types | {*WITH_VALUE, *WITHOUT_VALUE} == {*OPTIONS}


@all_cases(
    ("text", "known"),
    [
        ("script", True),
        ("~script", True),
        ("SCRIPT", True),
        ("script,image", True),
        ("script ,image", True),
        ("domain=example.com", True),
        ("domain =example.com", True),
        ("_", True),
        ("___,x", True),
        ("~_", True),
        ("_script", False),
        ("unheard", False),
        ("unheard=script", False),
        ("script.js", False),
        ("script/", False),
        ("script image", False),
        ("~~script", False),
        ("-script", False),
        ("", False),
        ("~", False),
        (",script", False),
    ],
)
def test_text_that_begins_with_the_name_of_an_option(text: str, *, known: bool) -> None:
    assert is_option_name(text) is known


@all_cases(
    ("text", "expected"),
    [
        ("script", True),
        ("unheard", True),
        ("~unheard=x", True),
        ("unheard,x", True),
        ("un.heard", False),
        ("un heard", False),
        ("-unheard", False),
        ("", False),
    ],
)
def test_text_in_the_form_of_options(text: str, *, expected: bool) -> None:
    assert looks_like_options(text) is expected
