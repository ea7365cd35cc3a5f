"""Text density: smoothing, the maximum-sum run, and the main text of pages of several shapes."""

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify.zones import page_text
from gatewayfilter.config import ClassifySettings, Settings
from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.main_text import MAX_ATTRIBUTES, MAX_DEPTH, is_tame, split_main
from gatewayfilter.documents.text_density import Block, densest_run, density, main_run, smoothed, split_by_density
from gatewayfilter.interfaces import Page
from gatewayfilter.settings import Extractor
from gatewayfilter.wiring import classifier
from tests.case_tables import all_cases

pytestmark = pytest.mark.usefixtures("each_reading")
PROSE = "The council met on Tuesday and talked about the new bridge for three hours, without coming to an end. "
HAN = "市议会星期二开会讨论新桥的建设方案、会议持续了三个小时、最后没有作出任何决定、代表们将于下周继续。"
VALUES = st.lists(st.integers(-50, 50).map(float), max_size=40)


@settings(max_examples=30)
@given(VALUES, st.integers(0, 60).map(float))
def test_densest_run_is_the_best_of_all_runs(values: list[float], least: float) -> None:
    sums = [sum(values[a:b]) for a in range(len(values)) for b in range(a + 1, len(values) + 1)]
    start, end = densest_run(values, least)
    if max(sums, default=0.0) <= least:
        assert (start, end) == (0, 0)
    else:
        assert sum(values[start:end]) == max(sums)


@settings(max_examples=30)
@given(VALUES, st.sampled_from([0.5, 1.0, 2.0]))
def test_smoothing_keeps_sum_inside_and_length(values: list[float], sigma: float) -> None:
    reach = math.ceil(2 * sigma)
    padded = [0.0] * reach + values + [0.0] * reach
    found = smoothed(padded, sigma)
    assert len(found) == len(padded)
    assert sum(found) == pytest.approx(sum(values), abs=1e-6)


def test_smoothing_falls_off_to_both_sides() -> None:
    found = smoothed([0, 0, 0, 0, 1, 0, 0, 0, 0], 1.0)
    assert found == pytest.approx(found[::-1])
    assert all(left <= right for left, right in pairwise(found[:5]))
    assert found[4] > found[3] > found[2] > 0 == found[1]


@all_cases(
    ("block", "sign"),
    [
        (Block(PROSE, 0), 1),
        (Block(PROSE, len(PROSE)), -1),
        (Block(PROSE, 20), 1),
        (Block("", 0), 0),
        (Block(HAN, 0), 1),
    ],
)
def test_density_counts_links_against(block: Block, sign: int) -> None:
    found = density(block)
    assert (found > 0) - (found < 0) == sign


def test_ideographs_weigh_more_than_letters() -> None:
    assert density(Block("市议会开会讨论新桥", 0)) > density(Block("council m", 0)) * 2


MENU = [Block(f"Section {number}", 9) for number in range(30)]
ARTICLE = [Block(PROSE, 0)] * 5
CASES = [
    ([*MENU, *ARTICLE, *MENU], (30, 35)),
    ([*ARTICLE, *MENU], (0, 5)),
    (MENU, (0, 0)),
    ([], (0, 0)),
    ([Block("Sale!", 0)] * 6, (0, 0)),
    ([*MENU, *ARTICLE[:3], Block("A caption", 0), *ARTICLE[:2], *MENU], (30, 36)),
    ([*MENU, *ARTICLE, *MENU, Block(PROSE, 0), *MENU], (30, 35)),  # an imprint does not outweigh the article
    ([Block("首页", 2)] * 20 + [Block(HAN, 0)] * 4 + [Block("首页", 2)] * 20, (20, 24)),
]


@all_cases(("blocks", "run"), CASES)
def test_main_run(blocks: list[Block], run: tuple[int, int]) -> None:
    start, end = main_run(blocks)
    if run == (0, 0):
        assert (start, end) == run
    else:  # a short block at an edge may be carried along by the smoothing
        assert start <= run[0] <= start + 2
        assert end - 2 <= run[1] <= end


@settings(max_examples=30)
@given(st.lists(st.builds(Block, st.text(max_size=60), st.just(0)), max_size=30))
def test_no_block_is_lost(blocks: list[Block]) -> None:
    main, rest = split_by_density(blocks)
    assert sorted(main + rest) == sorted(block.text for block in blocks)


PAGE = (
    "<nav><ul>" + "".join(f"<li><a href=/{n}>Topic {n}</a></li>" for n in range(20)) + "</ul></nav><main><article>"
    "<h1>Bridge</h1>" + f"<p>{PROSE}</p>" * 4 + "</article></main><footer><p>Imprint and terms</p></footer>"
)


@all_cases("extractor", Extractor)
@all_cases("html", [PAGE, PAGE.replace("><", ">\n<"), PAGE.replace("<p>", "<div>").replace("</p>", "</div>")])
def test_extractors_agree_on_a_plain_article(html: str, extractor: Extractor) -> None:
    page = read_html(html)
    main, rest = split_main(html, page, extractor)
    assert main.count(PROSE.strip()) == 4
    assert "Topic 3" in rest
    assert sorted(main + rest) == sorted(block.text for block in page.blocks)
    assert "bridge" in page_text(html, "", extractor).zones["main"]


def test_resiliparse_finding_nothing_leaves_it_to_density() -> None:
    html = "<nav><p>Just a word</p></nav>"
    assert split_main(html, read_html(html), Extractor.RESILIPARSE) == split_main(html, read_html(html), Extractor.DENSITY)


DEEP = MAX_DEPTH + 1
TAME = [
    (PAGE, True),
    ("", True),
    ("<div>" * MAX_DEPTH, True),
    ("<div>" * DEEP, False),
    ("<div></div>" * 5000, True),
    ("<ul>" + "<li>one" * 5000 + "</ul>", True),
    ("<p>one" * 5000, True),
    ("<table>" + "<tr><td>x</td></tr>" * 5000 + "</table>", True),
    ("<div></span>" * DEEP, False),
    ("<div><select></div></select>" * DEEP, False),
    ("<div><table><td></div></td></table>" * DEEP, False),
    ("<b class=x>" * DEEP, False),
    ("<p " + "a " * 1000 + ">", False),
    ("<p " + "a/" * 1000 + ">", False),
    ("<p " + "a=1 " * MAX_ATTRIBUTES + ">", False),
    ("<p title='" + "word" * 5000 + "'>", True),
    ("<script>" + "<div>" * DEEP + "</script>", True),
]


@all_cases(("html", "tame"), TAME)
def test_what_a_dom_parser_is_trusted_with(html: str, *, tame: bool) -> None:
    assert is_tame(html) is tame


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 180_000,
        "<p " + "".join(f"a{n} " for n in range(200_000)) + ">text",
        "<div><select></div></select>" * 60_000,
        ("<p " + "".join(f"a{n} " for n in range(MAX_ATTRIBUTES - 20)) + ">") * 600,
        ("<div>" * MAX_DEPTH + "</div>" * MAX_DEPTH) * 150,
        ("<b id=x><p>" * 140) + "text" * 1000,
        ("<a href=x>" * 290) + "<p>text" * 5000,
    ],
)
def test_hostile_markup_ends_with_either(html: str) -> None:
    """Without the bounds the first three hold resiliparse for minutes; the test's timeout is the bound."""
    for extractor in Extractor:
        page_text(html, "", extractor)


@pytest.mark.slow
def test_the_setting_reaches_the_classifier(tmp_path: Path) -> None:
    """A comment that stands apart, which density takes along with the article and resiliparse does not."""
    html = PAGE.replace("<footer>", f"<div class='sidebar' id='sidebar'><p>{PROSE.replace('bridge', 'casino')}</p></div><footer>")
    page = Page("http://x.example/", "http://x.example/", 200, {"content-type": "text/html"}, html.encode())
    zones = {}
    for extractor in Extractor:
        settings = Settings(data_dir=tmp_path, classify=ClassifySettings(extractor=extractor))
        zones[extractor] = next(zone for zone, text in classifier(settings).explain(page).zones.items() if "casino" in text)
    assert zones == {Extractor.DENSITY: "main", Extractor.RESILIPARSE: "rest"}
