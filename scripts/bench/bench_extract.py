"""Main-text extraction: ours, the paper's by lines, resiliparse and no extraction, on real pages with their article text.

Needs the folder of real pages: GATEWAYFILTER_TEST_DATA, or ../shared/data beside the repository. Prints the table of
docs/classification.md. Precision, recall and F1 are over 4-word shingles, averaged over the pages, as in the
article-extraction-benchmark; a page with recall below a half is lost. CPU time: median over
pages of the best of rounds, HTML to main text, taking turns.
"""

import argparse
import gzip
import json
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from resiliparse.extract.html2text import extract_plain_text

from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.main_text import is_tame, split_main
from gatewayfilter.documents.text_density import LEAST_SUM, SIGMA, THRESHOLD, densest_run, smoothed
from gatewayfilter.settings import Extractor

ROOT = Path(__file__).parents[2]
_WORD = re.compile(r"\w+")
_RAW = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->")
_TAG = re.compile(r"<[^>]*+>")
SHINGLE = 4

type Extract = Callable[[str], str]


def by_density(html: str) -> str:
    """Ours, the default."""
    return "\n".join(read_html(html).split_main()[0])


def by_lines(html: str) -> str:
    """The paper's: characters of each raw line without its tags, smoothed, maximum-sum subsequence; links count like text."""
    lines = [" ".join(_TAG.sub("", line).split()) for line in _RAW.sub("", html).split("\n")]
    densities = smoothed([float(len(line)) for line in lines], SIGMA)
    start, end = densest_run([value - THRESHOLD for value in densities], LEAST_SUM)
    return "\n".join(lines[start:end])


def by_resiliparse(html: str) -> str:
    """The library alone."""
    return str(extract_plain_text(html, main_content=True))


def by_setting(html: str) -> str:
    """`classify.extractor = "resiliparse"`: the library chooses among our blocks, where a page is tame."""
    return "\n".join(split_main(html, read_html(html), Extractor.RESILIPARSE)[0])


def all_text(html: str) -> str:
    """No extraction."""
    return "\n".join(block.text for block in read_html(html).blocks)


WAYS: dict[str, Extract] = {
    "density over blocks (`density`, default)": by_density,
    "density over raw lines, as the paper": by_lines,
    "resiliparse choosing blocks (`resiliparse`)": by_setting,
    "resiliparse alone": by_resiliparse,
    "all text": all_text,
}


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """Returns how often each run of `SHINGLE` words occurs."""
    words = _WORD.findall(text)
    return Counter(tuple(words[at : at + SHINGLE]) for at in range(max(1, len(words) - SHINGLE + 1)))


def accuracy(found: str, truth: str) -> tuple[float, float]:
    """Returns precision and recall of one page."""
    ours, theirs = shingles(found), shingles(truth)
    common = (ours & theirs).total()
    return common / ours.total(), common / theirs.total()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data") / "pages"
    if not (folder / "ground-truth.json").exists():
        print("no real pages found: set GATEWAYFILTER_TEST_DATA")
        return
    truth = {name: page["articleBody"] for name, page in json.loads((folder / "ground-truth.json").read_text()).items()}
    pages = {name: decode(gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())).text for name in truth}
    best: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    for _ in range(rounds):
        for name, html in pages.items():
            for way, extract in WAYS.items():
                begun = time.process_time_ns()
                extract(html)
                took = (time.process_time_ns() - begun) / 1e6
                best[way][name] = min(took, best[way].get(name, took))
    tame = sum(map(is_tame, pages.values()))
    print(f"{len(pages)} pages; {tame} are within the bounds for a DOM parser\n")
    print("| main text by | precision | recall | F1 | pages lost | CPU a page |\n|---|---|---|---|---|---|")
    for way, extract in WAYS.items():
        found = [accuracy(extract(html), truth[name]) for name, html in pages.items()]
        precision, recall = (statistics.mean(values) for values in zip(*found, strict=True))
        lost = sum(page_recall < 0.5 for _, page_recall in found)
        f1 = 2 * precision * recall / (precision + recall)
        spent = statistics.median(best[way].values())
        print(f"| {way} | {precision:.3f} | {recall:.3f} | {f1:.3f} | {lost} | {spent:.2f} ms |")


if __name__ == "__main__":
    main()
