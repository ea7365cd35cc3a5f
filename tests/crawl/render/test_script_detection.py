"""Which pages are rendered."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.crawl.render.script_detection import rendering_sign
from tests.case_tables import all_cases

SCRIPT = "<script src=/app.js></script>"
PROSE = "<p>" + "Plain words that a reader sees at once. " * 8
CASES = [
    (f"<div id=root></div>{SCRIPT}", "app root"),
    (f'<div class="x" id="app"></div>{SCRIPT}', "app root"),
    (f"<div id='__next'><p>Loading …</div>{SCRIPT}", "app root"),
    (f"<app-root></app-root>{SCRIPT}", "app root"),
    (f"<noscript>You need to enable JavaScript to run this app.</noscript><div></div>{SCRIPT}", "noscript notice"),
    (f"<noscript>请启用 JavaScript 后访问</noscript>{SCRIPT}", "noscript notice"),
    (f"<noscript>{'JavaScript must be on. ' * 30}</noscript>{SCRIPT}", "noscript notice"),
    (f'<html ng-app="shop"><body>{SCRIPT}', "framework"),
    ("<script>window.__NUXT__={}</script><div></div>", "framework"),
    ('<script type="module" src="/x.js"></script>', "framework"),
    (f"<div id=root>{PROSE}</div>{SCRIPT}", ""),
    (f"<noscript>Enable JavaScript</noscript>{PROSE}{SCRIPT}", ""),
    ("<div id=root></div>", ""),
    (f"<p>Under construction{SCRIPT}", ""),
    (f'<noscript><img src="https://t.example/p.gif"></noscript><p>Hi{SCRIPT}', ""),
    (f"<div id=rooted></div>{SCRIPT}", ""),
    (PROSE, ""),
    ("", ""),
    (f"{PROSE}<xmp>x</xmp>", "unusual markup"),
    (f"{PROSE}<svg><text><![CDATA[x]]></text></svg>", "unusual markup"),
    (f"{PROSE}<svg><noembed>x</noembed></svg>", "unusual markup"),
    (f"{PROSE}<svg><style>p{{}}</style></svg>", ""),
    (f"{PROSE}<iframe srcdoc='&lt;p>x'></iframe>", "unusual markup"),
    (f"{PROSE}<div hidden>{PROSE * 4}</div>", "hidden text"),
    (f"{PROSE}<div hidden>{PROSE}</div>", ""),
    (f"<style>p::before{{content:attr(title)}}</style>{PROSE}", "text by style sheet"),
    (f"<style>p::before{{content:'{'word ' * 9}'}}</style>{PROSE}", "text by style sheet"),
    (f"<style>[hidden]{{display:block}}</style>{PROSE}", "text by style sheet"),
    (f"<style>[hidden]{{display:none}} p::before{{content:'»'}}</style>{PROSE}", ""),
]


@all_cases(("html", "sign"), CASES)
def test_signs(html: str, sign: str) -> None:
    assert rendering_sign(html) == sign


@settings(max_examples=30)
@given(st.text(alphabet="<>/noscriptdvapmle='\" ", max_size=300))
def test_any_markup(html: str) -> None:
    rendering_sign("<script>" + html)


@pytest.mark.parametrize(
    "html",
    [
        "<noscript " * 200_000,
        "<noscript>" * 200_000,
        "<div " * 400_000,
        "<div id='" * 200_000,
        "<noscript><" * 150_000,
        "content :" * 150_000,
        "[hidden]" * 150_000,
    ],
)
def test_markup_that_is_made_to_last_ends(html: str) -> None:
    rendering_sign(SCRIPT + html)
