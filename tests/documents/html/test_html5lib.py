"""The text of a page against the trees that html5lib-tests expects, where that repository is at hand."""

import os
from pathlib import Path

import pytest

from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.html.tags import without_zeros
from tests.documents.html.html5lib_cases import TreeCase, cases_of, visible_text

pytestmark = pytest.mark.usefixtures("each_reading")
FOLDERS = (os.environ.get("HTML5LIB_TESTS", ""), "../shared/data/html5lib-tests")
NOT_RENDERED = (
    "blocks:10 blocks:11 blocks:12 blocks:13 ruby:15 ruby:16 ruby:17 ruby:18 ruby:19 tests1:87 tests10:32 tests10:33 tests15:5"
    " tests18:22 tests19:15 tests2:39 tests2:46 tests2:47 tests20:49 tests7:0 tests7:1 webkit01:28 webkit02:37 webkit02:39"
    " webkit02:46 webkit02:47 webkit02:44 webkit02:45 noscript01:16 tests18:4"
)
"""Text that the tree holds and no browser renders: closed `details` and `dialog`, `rp`, `datalist`, `title`, `desc`, closed
`select`, `noscript`. It counts as hidden."""
SCRIPTING = "tests16:84 tests16:86 tests16:88 tests16:181 tests16:183 tests16:185 tests5:16 webkit01:0 webkit01:1"
"""Trees of a browser without scripts, or with a script that was run."""
ORDER = "adoption01:10 adoption01:11 tests1:78 tests1:79 tests7:30"
"""Text that tables put before themselves: nothing is missing, the order is another."""
FRAMES = "tests18:17 tests18:18 tests18:20 tests19:40 tests2:5 tests2:6 tests2:7 tests6:7"
"""Text beside a `frameset`: read, not shown."""
SIGNS = "tests1:35 tests1:36 tests1:37"
"""A `<` at the very end."""
ZEROS = "plain-text-unsafe pending-spec-changes-plain-text-unsafe"
"""Files about zero characters, of which `without_zeros` makes nothing where a browser makes U+FFFD."""
ALLOWED = frozenset(f"{NOT_RENDERED} {SCRIPTING} {ORDER} {FRAMES} {SIGNS}".split())
CASES = (
    ("<xmp><p>a</xmp><p>b", "<p>ab"),
    ("<p>a<plaintext><!-- b", "a<!--b"),
    ("<svg><style>a<p>b</svg>", "b"),
    ("<svg><noembed><p>a", "a"),
    ("<svg><foreignObject><![CDATA[a>b]]></svg>", "a>b"),
    ("<svg><![CDATA[a]]>b<![CDATA[c", "abc"),
    ("<math><mi><style>a</style>b</mi><xmp>c<b>d</math>", "bcd"),
    ("<svg></div><noembed>a<style><br>b", "ab"),
    ("<svg><font>a<style>b</style><font color=x>c<style>d</style>", "ac"),
    ("<script><!--<script></script>a</script>b", "b"),
    ("<script><!--a</script>b", "b"),
    ("<script><!--<script>--></script>a", "a"),
    ("<script><!--><script></script>a", "a"),
    ("<template>a<div></template>b", "b"),
    ("<div><template></div>a</template>b", "b"),
    ("<ul><li hidden>a</ul>b", "b"),
    ("<div><span hidden>a</div>b", "b"),
    ("<div hidden>a</section></body>b</div>c", "c"),
    ("<p hidden>a<b>b<table><tr><td>c", "c"),
    ("<p><span hidden>a<p>b", "b"),
    ("<div hidden><p>a</div>b", "b"),
    ("<table><tr><td hidden>a<tr><td>b</table>", "b"),
    ("<select size=2><option hidden>a<option>b</select>", "b"),
    ("<b hidden>a<p>b</b>c", "c"),
)
"""Markup, and the text that is shown of it, white space dropped."""


def shown(html: str) -> str:
    blocks = read_html(without_zeros(html)).blocks
    return "".join("".join(block.text for block in blocks).split())


@pytest.mark.parametrize(("html", "text"), CASES)
def test_text_as_browsers_show_it(html: str, text: str) -> None:
    assert shown(html) == text


def test_the_text_of_an_expected_tree() -> None:
    head = '| <html>\n|   <head>\n|     <title>\n|       "a"\n'
    tree = head + '|   <body>\n|     <p>\n|       x="y"\n|       "b\nc"\n|     <script>\n|       "d"\n'
    assert visible_text(tree) == "bc"


def test_html5lib_tests() -> None:
    """98 of 100 documents have the text of their tree, less what no browser renders; each other one is written down."""
    folder = next((Path(name) for name in FOLDERS if name and Path(name).is_dir()), None)
    if folder is None:
        pytest.skip("html5lib-tests is not here: HTML5LIB_TESTS names its folder")
    cases = [case for file in sorted(folder.rglob("*.dat")) for case in cases_of(file)]
    different = [
        case
        for case in cases
        if shown(case.html) != case.text.replace('"', "") and shown(case.html).replace('"', "") != case.text
    ]
    unknown = [case for case in different if case.name not in ALLOWED and case.name.partition(":")[0] not in ZEROS.split()]
    assert not unknown, "\n".join(map(_complaint, unknown))
    rendered = [case for case in different if case.name not in NOT_RENDERED.split()]
    assert 1 - len(rendered) / len(cases) >= 0.98
    assert 1 - len(different) / len(cases) >= 0.96


def _complaint(case: TreeCase) -> str:
    return f"{case.name}: {case.html!r} shows {shown(case.html)!r}, not {case.text!r}"
