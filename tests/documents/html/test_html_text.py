import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify.zones import MAX_ZONE, page_text, plain_text, url_words
from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.html.tags import MAX_TAGS
from tests.case_tables import all_cases

pytestmark = pytest.mark.usefixtures("each_reading")
PROSE = "This is a long paragraph of running text that a reader would call the article, sentence after sentence. " * 3
MENU = "".join(f'<li><a href="/{number}">Section {number} of the site</a></li>' for number in range(30))


def test_zones_of_a_page() -> None:
    html = (
        "<title>The &amp; Title</title><meta name=Description content='What it is'><meta property='og:description' content=Other>"
        f"<meta name=keywords content='one, two'><ul>{MENU}</ul><article><p>{PROSE}</p></article><img alt='a cat'>"
    )
    zones = page_text(html, "https://best-site.example/free%20things?q=a_b").zones
    assert zones["title"] == "the & title"
    assert zones["description"] == "what it is\nother"
    assert zones["keywords"] == "one, two"
    assert zones["url"] == "best site example free things q a b"
    assert zones["main"].startswith("this is a long paragraph")
    assert "section 7 of" in zones["rest"]
    assert "section 7 of" not in zones["main"]
    assert "a cat" in zones["rest"]


@all_cases(
    "hidden",
    [
        "<!-- secret -->",
        "<script>secret</script>",
        "<SCRIPT>if (a < b) '</p>secret'</SCRIPT >",
        "<style>.secret{}</style>",
        "<div style='display: none'>secret</div>",
        "<div hidden>secret<div>secret</div>secret</div>",
        "<p STYLE=visibility:hidden>secret</p>",
        "<span style='font-size:0'>secret</span>",
        "<template><p>secret</p></template>",
        "<div style='opacity:0'>secret</div>",
        "<noscript>secret</noscript>",
        "<dialog>secret</dialog>",
        "<details><p>secret</details>",
        "<svg><desc>secret</desc><defs><text>secret</text></defs></svg>",
        "<select><option>one<option>secret</select>",
        "<p title='a > b secret'></p>",
        "<input type=hidden value=secret>",
        "<iframe>secret</iframe>",
        "<!doctype secret>",
    ],
)
def test_what_a_reader_does_not_see(hidden: str) -> None:
    zones = page_text(f"<p>{PROSE}</p>{hidden}<p>end</p>").zones
    assert "secret" not in "".join(zones.values())
    assert zones["main"].rstrip().endswith("end") or "end" in zones.get("rest", "")


@all_cases(
    "shown",
    [
        "<div style='overflow: hidden'>secret</div>",
        "<div aria-hidden=true>secret</div>",
        "<div data-hidden=1>secret</div>",
        "<div class='hidden'>secret</div>",
        "<div hidden=until-found>secret</div>",
        "<x-a>sec</x-a>ret",
        "sec<i hidden></i>ret",
        "<details open>secret</details>",
        "<iframe srcdoc='&lt;p>secret'></iframe>",
        "<plaintext>secret",
        "<p style='display:none'>x<div>secret</div>",
        "<b>sec</b>ret",
        "<i title='>'>secret</i>",
        "<x <y secret>secret",
        "&#115;ecret",
        "<body style='visibility:hidden'>secret",
        "<p style='font-size:0.9em'>secret</p>",
        "1 < 2 secret",
    ],
)
def test_what_a_reader_sees(shown: str) -> None:
    assert "secret" in "".join(page_text(f"<p>{PROSE}</p>{shown}").zones.values())


def test_a_page_that_hides_nearly_everything_shows_it_by_script() -> None:
    hidden = "secret text of the page"
    assert "secret" in page_text(f"<p>Loading</p><div style='display:none'>{hidden}</div>").zones["main"]
    shown = f"<p>{'words that are shown ' * 15}</p><div style='display:none'>{hidden * 20}</div>"
    assert "secret" in page_text(shown).zones["rest"]
    assert "rest" not in page_text(shown.replace(hidden * 20, hidden)).zones


def test_numbers_of_thousands_of_digits_are_no_characters() -> None:
    assert read_html("a&#" + "9" * 10_000 + ";b").blocks[0].text == "a\ufffdb"


def test_zones_are_bounded() -> None:
    zones = plain_text("a " * 1_000_000).zones
    assert len(zones["main"]) <= MAX_ZONE
    assert "beginning" in plain_text("beginning" + " x" * MAX_ZONE + "the end").zones["main"]
    assert plain_text("beginning" + " x" * MAX_ZONE + " the end").zones["main"].endswith("the end")


def test_tags_are_bounded() -> None:
    page = read_html("<p>x" * (MAX_TAGS + 500) + "<script>y</script>end")
    assert len(page.blocks) <= MAX_TAGS
    assert page.blocks[-1].text.endswith("x x x end")  # what stands beyond is one block, without its tags
    assert page.is_unusual


def test_url_words_of_odd_urls() -> None:
    assert url_words("") == ""
    assert url_words("https://a.example/%zz%E8%B5%8C") == "a example zz赌"


# Each of these took a DOM parser, or a backtracking expression, from many seconds to for ever.
PATHOLOGICAL = """
N = 2_000_000
cases = ['<div>' * (N // 5), '<b>' * (N // 3), '<div>' * (N // 11) + '</div>' * (N // 11), 'a' * N,
    '<p title="' + 'x' * N, '<p ' + ' '.join(f'a{i}=1' for i in range(N // 10)) + '>', '<' * N, '&' * N,
    '&#' + '9' * N, '<!--' * (N // 4), '<!-' * (N // 3), '<a "' * (N // 4), '<p><b><i><a>' * (N // 12),
    '<script>' * (N // 8), '<script></scrip' * (N // 15), '<p a=' * (N // 5), '<title>x' * (N // 8),
    '<p style="display:none">x' * (N // 24), '<svg><style><a b=\\'' * (N // 18), ' ' * N, '\\n ' * (N // 2),
    'a ' * (N // 2), 'a1' * (N // 2), '1a' * (N // 2), 'a.' * (N // 2), '\\u0430' * N, 'a*' * (N // 2),
    '\\u8d4c\\u535a' * (N // 2), '\\u8d4c.' * (N // 2), '\\u8d4c' * N, 'casino ' * (N // 7), '\\ufdfa' * N,
    '\\u200b' * N, '<meta name=description content=x>' * (N // 32),
    ('<img alt ' + 'x' * 19_980 + '>') * (N // 20_000), ('<img alt' + '"' * 19_980 + '>') * (N // 20_000)]
import resource
from pathlib import Path
from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.interfaces import Page
resource.setrlimit(resource.RLIMIT_CPU, (110, 110))
classifier = PageClassifier(Lexicon.load([Path('lists/words')]))
for number, case in enumerate(cases):
    page = Page('http://x.example/', 'http://x.example/', 200, {'content-type': 'text/html'}, case.encode()[:N])
    classifier.classify_page(page)
    print(number, flush=True)
print('done')
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pathological_pages_end(each_reading: str) -> None:
    """All of them together take 2 to 10 s of CPU here; one quadratic step would take minutes. They have 110 s."""
    environ = {**os.environ, "GATEWAYFILTER_PURE": "1" if each_reading == "Python" else ""}
    command = [sys.executable, "-c", PATHOLOGICAL]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=840, check=False, env=environ)
    assert ended.stdout.endswith("done\n"), ended.stdout[-10:] + ended.stderr[-1000:]


@settings(max_examples=30)
@given(st.text(alphabet="<>/!-= \"'&;#abpdivscriptmetahidden\n", max_size=300))
def test_any_markup_is_read(html: str) -> None:
    page = read_html(html)
    main, rest = page.split_main()
    assert len(main) + len(rest) == len(page.blocks)


@all_cases(
    "comment",
    [
        *("<!-->", "<!--->", "<!---->", "<!-- x --!>", "<!-- x --->", "<!-- -- -->", "<!--x--!y-->"),
        *("<!----!>", "<!--!>x-->", "<!---!>x-->", "<!--!>x--!>", "<!--x--!-->"),
    ],
)
def test_a_comment_ends_where_browsers_end_it(comment: str) -> None:
    assert [block.text for block in read_html(f"<p>a{comment}<p>casino<!-- b -->").blocks] == ["a", "casino"]


@all_cases(
    ("html", "title", "blocks"),
    [
        ("<title>x<!--</title><p>casino", "x<!--", ["casino"]),
        ("<title><script></title><p>casino", "<script>", ["casino"]),
        ("<TITLE lang=en>a</titles></title/><p>casino", "a</titles>", ["casino"]),
        ("<title>a</ti", "a</ti", []),
        ("<title>a<b>casino</b>", "a<b>casino</b>", []),
        ("<titles>a<!--</titles>--><p>casino", "", ["a", "casino"]),
        ("<textarea><!--</textarea><p>casino", "", ["<!--", "casino"]),
        ("<textarea>&lt;b</title></TextArea\n><p>casino", "", ["<b</title>", "casino"]),
        ("<textarea><title></textarea><p>casino</title>", "", ["<title>", "casino"]),
        ("<script></scripts><!--</script><p>casino", "", ["casino"]),
        ("<svg hidden><title/></svg><p>a<p>casino", "", ["a", "casino"]),
        ("<noscript>a<!--</noscript><p>casino", "", ["casino"]),
        ("<noscript>1 < 2<style></NoScript ><p>casino", "", ["casino"]),
        ("<noscript><p title='</noscript><p>casino", "", ["casino"]),
        ("<noscript><textarea>a</noscript><p>casino", "", ["casino"]),
        ("<noscript><noscript><!--</noscript><!-- --><noscript><p>a</noscripts>b</noscript>casino", "", ["casino"]),
        ("<noscript><b>a</b><p>casino", "", []),
        ("<script><noscript></script><!--</noscript>--><p>casino", "", ["casino"]),
    ],
)
def test_elements_without_markup_end_where_browsers_end_them(html: str, title: str, blocks: list[str]) -> None:
    page = read_html(html)
    assert (page.title, [block.text for block in page.blocks]) == (title, blocks)
