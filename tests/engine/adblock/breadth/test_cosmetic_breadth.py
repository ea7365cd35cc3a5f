"""Selectors that speak of every page, and those that do not, at their edges: `…breadth.cosmetic_breadth`."""

from gatewayfilter.engine.adblock.breadth.cosmetic_breadth import cosmetic_refusal
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import read_cosmetic

OF_EVERY_PAGE = "it would hide, change or remove what pages of every site are made of"


def test_which_attributes_few_pages_have() -> None:
    for selector, few in (
        ('[class="x"]', True), ('[class=""]', False), ('[class^="ab"]', False), ('[class^="abc"]', True),
        ('[class*="abc"]', True),
        ('[href^="://"]', False), ('[href^="http"]', False), ('[href$=".html"]', False), ('[href^="https://x"]', True),
        ('[type="text"]', False), ('[type="TEXT"]', False), ("[TYPE]", False), ("[type='x']", True), ("[data-x]", True),
        ('[class="/main/"]', False), ('[class="#:/"]', False), ('[class="/main/x"]', True),
    ):  # fmt: skip
        assert cosmetic_refusal(read_cosmetic(f"##{selector}")) == ("" if few else OF_EVERY_PAGE), selector


def test_every_part_of_a_selector_counts() -> None:
    for selector, few in (
        (".ad,.ads", True), ("div,.ad", False), (".ad,div", False), (".ad,.ads,div", False), ('div[title="a,b"]', True),
        ('div[title="a,b"],div', False), ("div[title=',body']", True), ("div:is(.ad,.ads)", True), ("div:is(.ad,div)", False),
        ("div:is(.ad,div),.ads", False), ("div:where(.ad)", True), ("div:has(.ad)", True), ("div:not(.ad)", False),
        ("div:has(:is(.ad,.ads))", True), ("div:has(:is(.ad,p))", False), ("div:not(.ad) .x", True),
        ("div:not(.x):is(.ad)", True),
        ("div:not(.ad) span", False), ('div:has([title=")"],div)', False), ('div:not([title=")"]) .ad', True),
        ('div:not([title="a)"],.ad) p', False), ("div:not([title='a)'],.ad) p", False),
        (r"div:not(.\)) .ad", True), (r"div:not(.\)) p", False), ("html:has(.ad)", False), ("html:is(.ad)", True),
        ("p:has(.ad)", True), ("div *:has(.ad)", False), ("div>html:has(.ad)", False), (".x *:has(.ad)", True),
    ):  # fmt: skip
        assert cosmetic_refusal(read_cosmetic(f"##{selector}")) == ("" if few else OF_EVERY_PAGE), selector


def test_names_are_read_as_they_are_meant() -> None:
    for selector, few in (
        (".main", False), (".MAIN", False), ("#Content", False), (".mains", True), (r".m\61 in", False), (r".\6d ains", True),
        (r"\64 iv", False), ("x-ad", True), ("DIV", False), ("div::before", False), (r".main\.x", True), (".é", True),
        (r".\110000 x", True), (r".\ffffffmain", True), (r".pag\.e", True), (r".\70 age", False), (r"\.ad", True),
    ):  # fmt: skip
        assert cosmetic_refusal(read_cosmetic(f"##{selector}")) == ("" if few else OF_EVERY_PAGE), selector


def test_rules_of_sites_are_taken_and_those_of_suffixes_are_not() -> None:
    for line, why in (
        ("a.example##div", ""), ("#@#div", ""), ("com#@#div", ""), ("com##div", OF_EVERY_PAGE),
        ("a.example,com##div", OF_EVERY_PAGE),
        ("~com##div", OF_EVERY_PAGE), (r"/^www\./##div", OF_EVERY_PAGE), (r"/^shop\d/##div", ""), ("com##.ad", ""),
        (r"/\.(cn|org|uk)$/##div", OF_EVERY_PAGE), (r"/\.(cn|uk)$/##div", ""), (r"a.test,/\.(cn|org|uk)$/##div", OF_EVERY_PAGE),
        ("com##^script:has-text(advert)", "it would change pages of every site"),
        ("a.example##^script:has-text(advert)", ""), ("com##^responseheader(refresh)", "it would change pages of every site"),
        ("com##div:style(overflow: auto)", ""), ("com##div:style(overflow: auto; top: 0)", OF_EVERY_PAGE),
        ("com##^div:has-text(advert)", OF_EVERY_PAGE), ("com##^.ad:has-text(advert)", ""),
    ):  # fmt: skip
        assert cosmetic_refusal(read_cosmetic(line)) == why, line
