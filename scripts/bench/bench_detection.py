"""Detection: how many synthetic pages are found, and how many harmless ones are taken for harmful, by category and language.

The pages are made by `tests/classify/synthetic_pages.py`. Prints the table of docs/classification.md; `--half tune` shows
what the words were chosen by, `--misses` the pages that were judged wrong (of the tuning half alone: the other stays unread).
"""

import argparse
import gzip
import os
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from gatewayfilter.classify import PageClassifier, load_classifier  # noqa: E402  the tests are no package of the environment
from gatewayfilter.interfaces import Page  # noqa: E402
from gatewayfilter.model import Classification  # noqa: E402
from tests.classify.synthetic_pages import pages_of, sites  # noqa: E402

LANGUAGES = ("en", "zh")
FILES = {
    "first": ("pages", "fine"),
    "second": ("second", "second-fine"),
    "third": ("third", "third-fine"),
    "fourth": ("fourth", "fourth-fine"),
    "wide": ("wide", "ordinary"),
    "daily": ("", "daily"),
}
WRITERS = {writer: (writer,) for writer in FILES}
"""Whose sites may be asked for. Of the second's and the third's and of `wide` both halves were read."""


def judged(classifier: PageClassifier, html: str) -> Classification:
    """Returns the judgement of a page with a neutral address."""
    url = "http://site.example/"
    return classifier.classify_page(Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode()))


def described(found: Classification) -> str:
    """Returns scores and words in one line."""
    return f"{found.category or '-'} {found.scores} {[(hit.word, round(hit.weight, 1)) for hit in found.evidence][:14]}"


def real_pages(classifier: PageClassifier) -> tuple[int, int]:
    """Returns how many real pages of the data folder there are, and how many of them are blocked."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data") / "pages" / "html"
    htmls = [gzip.decompress(file.read_bytes()) for file in sorted(folder.glob("*.gz"))]
    pages = [Page("http://a.example/", "http://a.example/", 200, {"content-type": "text/html"}, html) for html in htmls]
    return len(pages), sum(classifier.classify_page(page).harmful for page in pages)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("tune", "report"), default="report")
    parser.add_argument(
        "--writer", choices=tuple(WRITERS), default="first", help="whose sites: the words' own author's or others'"
    )
    parser.add_argument("--words", type=Path, default=ROOT / "lists" / "words", help="folder of other words, to compare")
    parser.add_argument("--words-alone", action="store_true", help="without the model of what texts read like")
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    if options.misses and options.half == "report":
        parser.error("--misses shows pages of the tuning half alone")
    classifier = load_classifier([options.words], topics=not options.words_alone)
    found: Counter[tuple[str, str, str]] = Counter()
    named = [pair for writer in WRITERS[options.writer] for pair in zip(("pages", "fine"), FILES[writer], strict=True)]
    for kind, name in sorted((pair for pair in named if pair[1]), reverse=True):
        for site in (site for language in LANGUAGES for site in sites(f"{name}-{language}", options.half)):
            for made, html in pages_of(site):
                result = judged(classifier, html)
                right = result.category == site.category if kind == "pages" else not result.harmful
                found[kind, site.category, f"{site.language} all"] += 1
                found[kind, site.category, f"{site.language} {'right' if right else 'wrong'}"] += 1
                found[kind, site.category, f"{site.language} blocked"] += result.harmful
                if options.misses and not right:
                    print(f"{kind} {site.category} [{made}] {site.title}: {described(result)}")
    _print_table(found, options.half)
    total, blocked = real_pages(classifier)
    if total:
        print(f"\n{blocked} of {total} real pages are blocked.")


def _print_table(found: Counter[tuple[str, str, str]], half: str) -> None:
    for kind, title in (("pages", "found as what they are"), ("fine", "harmless, let pass")):
        categories = list(dict.fromkeys(category for other, category, _ in found if other == kind))
        if not categories:
            continue
        print(f"\n| {title} ({half} half) | English | Chinese |\n|---|---|---|")
        for category in categories:
            print(f"| {category} | {' | '.join(_share(found, kind, [category], language) for language in LANGUAGES)} |")
        print(f"| all | {' | '.join(_share(found, kind, categories, language) for language in LANGUAGES)} |")
    for language in LANGUAGES:
        every = {category for kind, category, _ in found if kind == "pages"}
        total = sum(found["pages", category, f"{language} all"] for category in every)
        blocked = sum(found["pages", category, f"{language} blocked"] for category in every)
        if total:
            print(f"\nBlocked under any category, {language}: {blocked} of {total} ({blocked / total:.1%}).")


def _share(found: Counter[tuple[str, str, str]], kind: str, categories: list[str], language: str) -> str:
    total = sum(found[kind, category, f"{language} all"] for category in categories)
    right = sum(found[kind, category, f"{language} right"] for category in categories)
    return f"{right} of {total} ({right / total:.1%})" if total else "none"


if __name__ == "__main__":
    main()
