"""Classification: the word scan with 50,000 words, and whole pages beside resiliparse's text extraction alone.

Needs the folder of real pages: GATEWAYFILTER_TEST_DATA, or ../shared/data beside the repository. CPU time, median of pages.
"""

import gzip
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.classify.charset import decode
from gatewayfilter.classify.lexicon_file import WordFile
from gatewayfilter.classify.markup import read_html
from gatewayfilter.classify.scanner import Scanner
from gatewayfilter.classify.views import normal_view
from gatewayfilter.interfaces import Page

ROOT = Path(__file__).parents[2]
ROUNDS = 5


def median_ms[T](work: Callable[[T], object], items: Sequence[T]) -> float:
    """Returns the median over the items of each item's best CPU time in milliseconds."""
    best = []
    for item in items:
        times = []
        for _ in range(ROUNDS):
            begun = time.process_time_ns()
            work(item)
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


def main() -> None:
    """Measures and prints."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data") / "pages" / "html"
    bodies = [gzip.decompress(file.read_bytes()) for file in sorted(folder.glob("*.gz"))]
    if not bodies:
        print("no real pages found: set GATEWAYFILTER_TEST_DATA")
        return
    url = "http://site.example/a"
    pages = [Page(url, url, 200, {"content-type": "text/html"}, body) for body in bodies]
    htmls = [decode(body).text for body in bodies]
    lexicon = Lexicon.load([ROOT / "lists" / "words"])
    classifier = PageClassifier(lexicon)
    print(f"{len(pages)} pages, median {statistics.median(map(len, bodies)) / 1000:.0f} KB; {lexicon.word_count()} bundled words")
    print(f"whole classification        {median_ms(classifier.classify_page, pages):6.2f} ms a page")
    print(f"  of it reading the HTML    {median_ms(read_html, htmls):6.2f} ms a page")
    print(f"resiliparse, text alone     {median_ms(peer, htmls):6.2f} ms a page")
    joined = normal_view(" ".join(" ".join(block.text for block in read_html(html).blocks) for html in htmls))
    texts = [joined[start : start + 4000] for start in range(0, 160_000, 4000)]
    scanner = Scanner(many_words(50_000))
    print(f"scan, 4,000 characters      {median_ms(scanner.scan, texts):6.3f} ms, 50,000 words")


if __name__ == "__main__":
    main()
