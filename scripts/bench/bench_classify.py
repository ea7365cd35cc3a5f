"""Classification: whole pages and reading their markup, compiled and in Python, beside resiliparse's text alone; the word scan.

Needs the folder of real pages: GATEWAYFILTER_TEST_DATA, or ../shared/data beside the repository. CPU time, median of pages of the
best of some rounds each. What is compiled and what is not is measured by turns, each in processes of its own.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from gatewayfilter import compiled
from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.classify.lexicon.scanner import Scanner
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.classify.normalize.views import changed_lines, normal_view
from gatewayfilter.classify.reloading_classifier import load_classifier
from gatewayfilter.classify.score import Judge, ZoneHits
from gatewayfilter.classify.zones import page_text
from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.documents.html.markup import read_html, read_markup, read_references
from gatewayfilter.documents.text_density import split_by_density
from gatewayfilter.interfaces import Page

ROOT = Path(__file__).parents[2]
WORDS = ROOT / "lists" / "words"
URL = "http://site.example/a"
ROUNDS = 3
TURNS = 3
SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Of the bundled words; above 1, as many more are made up."""
LABELS = {
    "whole": "whole classification",
    "sets": "the same of the HTML pages of the sets of texts",
    "words": "the same by words alone, without the topic model",
    "parts": "whole classification, links and pictures too",
    "decode": "of it finding the charset and decoding",
    "markup": "reading texts, links and pictures",
    "html": "reading texts alone",
    "references": "reading links and pictures alone",
    "density": "main text by density",
    "views": "normal view of the visible text",
    "squash": "lines that squashing changes",
    "zones": "scan of all zones with the bundled words",
    "score": "score of what was found",
    "scan": "scan of 4,000 characters with 50,000 words",
    "peer": "resiliparse, main text and all text alone",
}


def median_ms[T](work: Callable[[T], object], items: Sequence[T], anew: Callable[[T], T] = lambda item: item) -> float:
    """Returns the median over the items of each item's best CPU time in milliseconds.

    Args:
        work: is timed.
        items: what it is given.
        anew: returns an item as one that was never seen: what a process remembers of the last page is no work.
    """
    best = []
    for item in items:
        times = []
        for _ in range(ROUNDS):
            given = anew(item)
            begun = time.process_time_ns()
            work(given)
            times.append((time.process_time_ns() - begun) / 1e6)
        best.append(min(times))
    return statistics.median(best)


def many_words(count: int) -> Lexicon:
    """Returns a lexicon of made-up words, half alphabetic, half Chinese."""
    chance = random.Random(7)
    words: dict[str, float] = {}
    while len(words) < count:
        words["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(4, 10)))] = 1.0
        words["".join(chr(chance.randint(0x4E00, 0x6FFF)) for _ in range(chance.randint(2, 4)))] = 1.0
    return Lexicon.of([WordFile("made-up", words=words)])


def peer(html: str) -> None:
    """What another extractor needs for main text and all text, without scan, zones or URL."""
    tree = HTMLTree.parse(html)
    extract_plain_text(tree, main_content=True)
    extract_plain_text(tree)


def bodies_in(folder: Path) -> list[bytes]:
    """Returns the bodies of the real pages."""
    return [gzip.decompress(file.read_bytes()) for file in sorted((folder / "pages" / "html").glob("*.gz"))]


def pages_of_sets(folder: Path) -> list[bytes]:
    """Returns the bodies of the harmless HTML pages of the sets of texts."""
    found: list[bytes] = []
    for file in sorted((folder / "texts").glob("html_*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            found += [html.encode("utf-8", "surrogateescape") for line in lines if (html := json.loads(line).get("html"))]
    return found


def fetched(bodies: Sequence[bytes]) -> list[Page]:
    """Returns pages with these bodies."""
    return [Page(URL, URL, 200, {"content-type": "text/html"}, body) for body in bodies]


def another(body: bytes) -> bytes:
    """Returns equal bytes."""
    return bytes(bytearray(body))


def fetched_again(page: Page) -> Page:
    """Returns an equal page."""
    return replace(page, body=another(page.body))


def measure(folder: Path) -> dict[str, float]:
    """Returns the milliseconds of each step in this process, by the keys of `LABELS`."""
    bodies = bodies_in(folder)
    pages = fetched(bodies)
    htmls = [decode(body).text for body in bodies]
    blocks = [read_html(html).blocks for html in htmls]
    texts = ["\n".join(block.text for block in row) for row in blocks]
    lexicon = Lexicon.load([WORDS])
    classifier = load_classifier([WORDS])
    scanner = Scanner(lexicon)
    judge = Judge(lexicon, scanner)
    zoned = [page_text(html, URL) for html in htmls]
    normals = [normal_view(text) for text in texts]
    found = [
        ([ZoneHits(zone, text, True, scanner.scan(text)) for zone, text in page.zones.items()], page.length()) for page in zoned
    ]
    joined = normal_view(" ".join(texts))
    slices = [joined[start : start + 4000] for start in range(0, 160_000, 4000)]
    return {
        "whole": median_ms(classifier.classify_page, pages, fetched_again),
        "sets": median_ms(classifier.classify_page, fetched(pages_of_sets(folder)), fetched_again),
        "words": median_ms(PageClassifier(lexicon).classify_page, pages, fetched_again),
        "parts": median_ms(classifier.classify_with_parts, pages, fetched_again),
        "decode": median_ms(decode, bodies, another),
        "markup": median_ms(read_markup, htmls),
        "html": median_ms(read_html, htmls),
        "references": median_ms(read_references, htmls),
        "density": median_ms(split_by_density, blocks),
        "views": median_ms(normal_view, texts),
        "squash": median_ms(changed_lines, normals),
        "zones": median_ms(lambda zones: [scanner.scan(zone) for zone in zones], [list(page.zones.values()) for page in zoned]),
        "score": median_ms(lambda item: judge.judge(*item), found),
        "scan": median_ms(Scanner(many_words(50_000)).scan, slices),
        "peer": median_ms(peer, htmls),
    }


def list_growth(folder: Path, share: float) -> dict[str, float]:
    """Returns what a share of the bundled words (above 1: and so many made-up ones) costs to compile, to hold and to look for."""
    lexicon = Lexicon.load([WORDS])
    chance = random.Random(7)
    for category in lexicon.categories.values():
        category.words = {word: weight for word, weight in category.words.items() if share >= 1 or chance.random() < share}
    categories = {**lexicon.categories}
    if share > 1:
        categories |= many_words(int(lexicon.word_count() * (share - 1))).categories
    lexicon = Lexicon(categories, lexicon.exceptions, lexicon.offers, lexicon.context)
    held = resident_mb()
    begun = time.process_time()
    scanner = Scanner(lexicon)
    built = time.process_time() - begun
    held = resident_mb() - held
    zones = [list(page_text(decode(body).text).zones.values()) for body in bodies_in(folder)]
    scan = median_ms(lambda texts: [scanner.scan(text) for text in texts], zones)
    return {"words": lexicon.word_count(), "built": built, "held": held, "scan": scan}


def resident_mb() -> float:
    """Returns the memory of this process, 0 where the system does not say it so."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
    except OSError:
        return 0.0


def in_child(folder: Path, pure: str, share: float = 0.0) -> dict[str, float]:
    """Measures in a process of its own, with compiled modules or without: the steps or, with a share of the words, the scan."""
    command = [sys.executable, __file__, "--measure", str(folder), "--share", str(share)]
    environ = {**os.environ, "GATEWAYFILTER_PURE": pure, "PYTHONPATH": str(ROOT)}
    return dict(json.loads(subprocess.run(command, env=environ, check=True, capture_output=True).stdout))


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--measure", type=Path, metavar="FOLDER", help="measure this process alone and print JSON")
    options.add_argument("--share", type=float, default=0.0, help="with --measure: the scan alone, with this share of the words")
    chosen = options.parse_args()
    if chosen.measure:
        print(json.dumps(list_growth(chosen.measure, chosen.share) if chosen.share else measure(chosen.measure)))
        return
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data")
    bodies = bodies_in(folder)
    if not bodies:
        print("no real pages found: set GATEWAYFILTER_TEST_DATA")
        return
    missing = {name: why for name, why in compiled.in_use().items() if why}
    runs: dict[str, list[dict[str, float]]] = {"": [], "1": []}
    for _ in range(TURNS):
        for pure, found in runs.items():
            found.append(in_child(folder, pure))
    begun = time.process_time()
    words = Lexicon.load([WORDS]).word_count()
    loading = time.process_time() - begun
    for pages, what in ((bodies, "pages"), (pages_of_sets(folder), "HTML pages of the sets of texts")):
        sizes = [len(body) / 1000 for body in pages] or [0.0]
        print(f"{len(pages)} {what}, median {statistics.median(sizes):.0f} KB, mean {statistics.mean(sizes):.0f} KB")
    print(f"{words} words, read in {loading:.2f} s")
    if missing:
        print(f"not compiled: {missing}")
    print("\n| CPU ms a page, median | compiled | Python | |\n|---|---|---|---|")
    for key, label in LABELS.items():
        ours, python = (statistics.median(run[key] for run in runs[pure]) for pure in runs)
        if key == "peer":
            print(f"| {label} | {statistics.median([ours, python]):.2f} | | |")
        else:
            print(f"| {label} | {ours:.3f} | {python:.3f} | {python / ours:.1f} x |")
    print("\n| words | compiling, s (Python) | memory, MB (Python) | scan of a page, ms (Python) |\n|---|---|---|---|")
    for share in SHARES:
        fast, python_alone = in_child(folder, "", share), in_child(folder, "1", share)
        columns = ((key, digits) for key, digits in (("built", 2), ("held", 0), ("scan", 3)))
        cells = (f"{fast[key]:.{digits}f} ({python_alone[key]:.{digits}f})" for key, digits in columns)
        print(f"| {fast['words']} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
