"""The compiled reading of markup gives what Python gives, whatever the page, and takes no more steps than its length."""

import gzip
import importlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from html.entities import html5
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hatch_build
from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.documents.html import markup
from gatewayfilter.documents.html.markup import PURE, compiled_reading
from gatewayfilter.documents.html.tags import MAX_ATTRIBUTES, MAX_HTML, MAX_TAGS
from gatewayfilter.documents.text_density import Block, main_run, pure_main_run, pure_split, split_by_density
from tests.case_tables import all_cases
from tests.classify.markup_pages import HIDING, HOSTILE, LONG, ORDINARY, characters, grammar, hiding

ROOT = Path(__file__).parents[3]
_reading = compiled_reading()
needs_compiled = pytest.mark.skipif(_reading is None, reason="the compiled reading was not built")
SLOWEST_S = 0.25
WAITED_S = 60.0
WIDER = ("", "\u0101", "\U00010000")
"""What makes a string be kept in one, two and four bytes a character."""


def check(html: str) -> None:
    assert _reading is not None
    expected = PURE.markup(html)
    assert _reading.markup(html) == expected
    assert _reading.html(html) == expected.texts
    assert _reading.references(html) == expected.references


@needs_compiled
@pytest.mark.parametrize("wider", WIDER)
def test_pages_cut_off_anywhere(wider: str) -> None:
    assert _reading is not None
    for html in ORDINARY:
        check(html + wider)
        for end in range(len(html)):
            assert _reading.markup(html[:end] + wider) == PURE.markup(html[:end] + wider)
            assert _reading.markup(wider + html[end:]) == PURE.markup(wider + html[end:])


@needs_compiled
@pytest.mark.parametrize("blank", ["", " ", "\t", "\n", "\r", "\f", "\v", "\u00a0", "\u2028", "\x1c"])
def test_space_of_css_alone_stands_before_a_value(blank: str) -> None:
    check(f'<p style="display:{blank}none">hidden?')


@needs_compiled
@all_cases("number", range(len(HOSTILE)))
def test_hostile_pages(number: int) -> None:
    check(HOSTILE[number](3_000))
    check(HOSTILE[number](1_000) + "<p>\U0001f600")


@pytest.mark.slow
@needs_compiled
def test_bounds() -> None:
    for html in (
        *LONG,
        "<p>x" * (MAX_TAGS + 2),
        "<p>x" * MAX_TAGS,
        "x<p>" * (MAX_TAGS - 1) + "<" * 3,
        "x" * (MAX_HTML - 5) + "<p>y</p>z",
        "<p>\u4e2d" + " " * MAX_HTML + "y",
        "<a href=1>x</a><img src=y><area href=z>" * 6_000,
    ):
        check(html)
    for before in range(MAX_ATTRIBUTES - 30, MAX_ATTRIBUTES + 3):
        check(f"<a x='{'y' * before}'  href = \"reference\" rel=z>text</a><img {'y' * before} src='a' alt=b>")


@needs_compiled
def test_real_pages(data_folder: Path) -> None:
    files = sorted((data_folder / "pages" / "html").glob("*.gz"))
    if not files:
        pytest.skip("no real pages there")
    for file in files:
        html = decode(gzip.decompress(file.read_bytes())).text
        check(html)
        blocks = PURE.html(html).blocks
        assert main_run(blocks) == pure_main_run(blocks)
        assert split_by_density(blocks) == pure_split(
            blocks, *(pure_main_run(blocks) if any(pure_main_run(blocks)) else (0, len(blocks)))
        )


@needs_compiled
@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from("ax\u00e9\u4e2d\uac00\u3041"), st.integers(0, 900), st.sampled_from((0, 0, 0.3, 1))),
        max_size=30,
    )
)
def test_main_text_of_any_blocks(shapes: list[tuple[str, int, float]]) -> None:
    blocks = [Block(letter * length, int(length * linked)) for letter, length, linked in shapes]
    run = pure_main_run(blocks)
    assert main_run(blocks) == run
    assert split_by_density(tuple(blocks)) == pure_split(blocks, *(run if any(run) else (0, len(blocks))))


@needs_compiled
@given(grammar)
@settings(max_examples=30)
def test_made_up_pages(html: str) -> None:
    check(html)


@needs_compiled
def test_what_hides() -> None:
    """All threes of the parts, in and out of quotes: in short pages, that they cost little."""
    assert _reading is not None
    for first, second, third in product(HIDING, repeat=3):
        html = f"a<p {first}{second}{third}>x"
        assert _reading.html(html) == PURE.html(html), html
    for first, second, third in product(HIDING, repeat=3):
        html = f"a<p class='x' style='a {first}{second}{third}'>x"
        assert _reading.html(html) == PURE.html(html), html


@needs_compiled
@given(hiding, st.sampled_from(("a<p {}>x", "a<p a='{}'>x", 'a<p style="{}">x')))
@settings(max_examples=30)
def test_what_may_hide(attributes: str, page: str) -> None:
    check(page.format(attributes))


@needs_compiled
@all_cases(
    ("attributes", "hides"),
    [
        ("hidden", True),
        ("class='btn hidden'", False),
        ("class='hidden'", False),
        ("hidden=until-found", False),
        ("hidden style=display:block", False),
        ("style='display:none;display:block'", False),
        ("style='display:none!important'", True),
        ("style=display:none/", False),
        ("style='opacity:0'", True),
        ("style='height:0;overflow:hidden'", True),
        ("style='height:0'", False),
        ("style='position:absolute;left:-9999px'", True),
        ("style='left:-9999px'", False),
        ("style='font-size:1px'", True),
        ("style='background:url(;display:none;)'", False),
        ("class=hidden-xs", False),
        ("type=hidden", False),
        ("type='hidden'-", False),
        ("hid type=hiddenden", False),
        ("hidaria-hiddenden", False),
        ("x aria-hidden", False),
        ("aria-hidden hidden", True),
        (":aria-hidden hidden", True),
        ("n hidden", True),
        ("style='display:none'", True),
        ("style='display\u00a0:none'", False),
        ("style='display          :none'", True),
        ("style='display aria-hidden:none'", False),
        ("style='displaaria-hiddeny:none'", False),
        ("style='block;none'", False),
        ("style='visibility: hidden'", True),
        ("style='visibility aria-hidden:hidden'", False),
        ("style='overflow:hidden'", False),
        ("style='font-size:0'", True),
        ("style='font-size : 0px'", True),
        ("style='font-size:0;color:red'", True),
        ("style='font-size:0.5em'", False),
        ("style='font-size:05px'", False),
    ],
)
def test_what_hides_is_told_alike(attributes: str, hides: object) -> None:
    assert _reading is not None
    for reading in (PURE, _reading):
        assert bool(reading.html(f"<i>a</i><p {attributes}>x").hidden) is hides


@needs_compiled
@given(characters)
@settings(max_examples=30)
def test_any_characters(html: str) -> None:
    check(html)


@needs_compiled
def test_the_result_is_made_of_the_same_types() -> None:
    assert _reading is not None
    ours, theirs = _reading.markup(ORDINARY[0]), PURE.markup(ORDINARY[0])
    assert [type(block) for block in ours.texts.blocks] == [Block] * len(theirs.texts.blocks)
    assert {type(link) for link in ours.references.links} == {type(link) for link in theirs.references.links}
    assert {type(link.on_page) for link in ours.references.links} == {bool}
    assert {type(image) for image in ours.references.images} == {type(image) for image in theirs.references.images}


@needs_compiled
def test_python_reads_where_the_module_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "gatewayfilter.documents.html._markup", None)
        assert compiled_reading() is None
        patched.delitem(sys.modules, "gatewayfilter.documents.html.markup")
        assert importlib.import_module("gatewayfilter.documents.html.markup").read_html(ORDINARY[0]) == PURE.html(ORDINARY[0])
    monkeypatch.setenv("GATEWAYFILTER_PURE", "1")
    assert compiled_reading() is None
    assert markup.read_html(ORDINARY[0]) == PURE.html(ORDINARY[0])


COUNTING = """
import importlib.util, json, sys
import gatewayfilter.documents.html.markup
spec = importlib.util.spec_from_file_location("gatewayfilter.documents.html._markup", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from tests.case_tables import all_cases
from tests.classify.markup_pages import HOSTILE, ORDINARY
def steps(html):
    before = module.steps()
    module.read(html, texts=True, references=True)
    return module.steps() - before
found = [[steps(page(n)) / n for n in (20_000, 200_000)] for page in HOSTILE]
json.dump([steps(ORDINARY[0]), found], sys.stdout)
"""


@needs_compiled
@pytest.mark.slow
def test_no_page_takes_long() -> None:
    """2 MB of anything are read in a quarter of a second; the slowest takes half of that on one quiet core.

    The best of some readings counts, in the time of this thread: others share the caches, the cores and the process. A quiet
    moment is waited for.
    """
    assert _reading is not None
    slow = []
    for number, page in enumerate(HOSTILE):
        html = page(MAX_HTML)
        best, readings, began = math.inf, 0, time.monotonic()
        while best > SLOWEST_S and (readings < 20 or time.monotonic() - began < WAITED_S):
            before = time.thread_time()
            markup.read_markup(html)
            best = min(best, time.thread_time() - before)
            readings += 1
        if best > SLOWEST_S:
            slow.append((number, best))
    assert not slow


@needs_compiled
def test_all_character_references() -> None:
    assert _reading is not None
    for name, text in html5.items():
        for html in (f"<p>&{name}", f"<p>a&{name}b;", f"<p>&{name[:-1]};", f"<p>&{name}&{name}\U0001f600"):
            assert _reading.html(html) == PURE.html(html), html
        assert _reading.html(f"<p>x&{name} y").blocks[0].text == " ".join(f"x{text} y".split())
    for number in (
        *range(0x200),
        *range(0xD7F0, 0xE010),
        *range(0xFDC0, 0xFE00),
        0xFFFD,
        0xFFFE,
        0x1FFFF,
        0x10FFFF,
        0x110000,
        10**12,
    ):
        for html in (
            f"<p>a&#{number};b",
            f"<p>a&#x{number:x}",
            f"<p>a&#{number}<b>;",
            f"<a href='&#X00{number:X};'>",
            f"<p>&#0{number}z",
        ):
            assert _reading.markup(html) == PURE.markup(html), html


GUARDED = """
import importlib.util, sys
import gatewayfilter.documents.html.markup
spec = importlib.util.spec_from_file_location("gatewayfilter.documents.html._markup", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from tests.case_tables import all_cases
from tests.classify.markup_pages import HOSTILE, ORDINARY
pages = [page(size) for page in HOSTILE for size in (1, 33, 65, 1_000)]
pages += [html[:end] for html in ORDINARY for end in range(0, len(html), 3)]
for page in pages:
    for wider in ("", "\\u0101", "\\U00010000"):
        module.read(page + wider, texts=True, references=True)
print(len(pages), "pages were read")
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_memory_but_the_page_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads with a build in which the compiler guards each access to memory, and each string has memory of its own."""
    libraries = [
        Path(subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout.strip())
        for name in (("libasan.so", "libubsan.so") if shutil.which("gcc") else ())
    ]
    if not libraries or not all(library.is_absolute() for library in libraries):
        pytest.skip("gcc and its sanitizers are not here")
    monkeypatch.setenv("CFLAGS", "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -U_FORTIFY_SOURCE")
    monkeypatch.setenv("CC", "gcc")
    source = Path("gatewayfilter/documents/html/_markup.pyx")
    module = tmp_path / hatch_build.module_file(source)
    try:
        hatch_build.look_for_tools()
        hatch_build.compile_module(ROOT, source, module)
    except hatch_build.NotBuiltError as error:
        pytest.skip(str(error))
    environ = {name: value for name, value in os.environ.items() if name != "GATEWAYFILTER_PURE"}
    environ |= {"LD_PRELOAD": ":".join(map(str, libraries)), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    command = [sys.executable, "-c", GUARDED, str(module)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environ, check=False)
    assert ran.stdout.endswith("pages were read\n"), ran.stderr[:2000]
    assert ran.returncode == 0, ran.stderr[:2000]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_steps_grow_with_the_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts what a build with a counter reads: no page takes more than a few steps a character, the tenfold page tenfold."""
    monkeypatch.setenv("CFLAGS", "-DCOUNT_STEPS -O1")
    source = Path("gatewayfilter/documents/html/_markup.pyx")
    module = tmp_path / hatch_build.module_file(source)
    try:
        hatch_build.look_for_tools()
        hatch_build.compile_module(ROOT, source, module)
    except hatch_build.NotBuiltError as error:
        pytest.skip(str(error))
    environ = {name: value for name, value in os.environ.items() if name != "GATEWAYFILTER_PURE"}
    ran = subprocess.run(
        [sys.executable, "-c", COUNTING, str(module)], capture_output=True, text=True, cwd=ROOT, env=environ, check=True
    )
    ordinary, found = json.loads(ran.stdout)
    assert ordinary > len(ORDINARY[0]) / 2  # it does count
    assert len(found) == len(HOSTILE)
    for number, (short, long) in enumerate(found):
        assert long < 5, number
        assert long < 1.2 * short + 0.2, number
