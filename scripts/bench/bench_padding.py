"""How many described sites are found among other text: before, after and around what they say, and hidden beside it.

    python scripts/bench/bench_padding.py [--sites 90]

Sites are those of the reporting half of `tests/classify/samples`, harmful and harmless ones; the text beside them comes from
harmless sets of texts (GATEWAYFILTER_TEST_DATA, or ../shared/data beside the repository). Judged as shipped, at `standard`.
"""

import argparse
import gzip
import html
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from gatewayfilter.classify import PageClassifier, load_classifier  # noqa: E402
from gatewayfilter.interfaces import Page  # noqa: E402
from tests.classify.synthetic_pages import Site, sites  # noqa: E402

SETS: Final = {
    "en": ("en_agnews", "en_hardneg_museum", "en_website_classif"),
    "zh": ("zh_dureader_web", "zh_thucnews_titles", "zh_wiki_cmrc"),
}
"""Whose texts stand beside a site: news, an encyclopedia or a museum, web pages."""
TIMES: Final = 10
HARMLESS_TITLES: Final = {"en": "Town library: opening hours and news", "zh": "市图书馆 开放时间与新闻"}
URL: Final = "http://site.example/"

type Shape = Callable[[Site, "Filler"], str]


class Filler:
    """Harmless paragraphs in a drawn order, without end.

    Args:
        folder: of the sets of texts.
        language: whose.
    """

    def __init__(self, folder: Path, language: str) -> None:
        self._texts = [text for name in SETS[language] for text in _texts(folder / f"{name}.dev.jsonl.gz")]
        self._chance = random.Random(7)

    def paragraphs(self, characters: int) -> list[str]:
        """Returns paragraphs of so many characters together, the last one cut."""
        taken: list[str] = []
        while characters > 0:
            text = self._chance.choice(self._texts)[:characters]
            taken.append(text)
            characters -= len(text)
        return taken


def _texts(file: Path) -> Iterator[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in islice(lines, 2_000):
            row = json.loads(line)
            if row.get("label") != "harmful" and len(row.get("text", "")) > 20:
                yield row["text"]


def page_of(title: str, *groups: list[str], hidden: list[str] | None = None) -> str:
    """Returns the markup of a page with these paragraphs, and hidden ones before them."""
    shown = "".join(f"<p>{html.escape(text)}</p>\n" for group in groups for text in group)
    unseen = "".join(f"<p>{html.escape(text)}</p>\n" for text in hidden or ())
    return f"<!doctype html><title>{html.escape(title)}</title><div style='display:none'>{unseen}</div>{shown}"


def _own(site: Site) -> list[str]:
    return list(site.parts)


def _size(site: Site) -> int:
    return TIMES * sum(map(len, site.parts))


SHAPES: Final[dict[str, Shape]] = {
    "nothing": lambda site, _: page_of(site.title, _own(site)),
    "1,000 characters before": lambda site, filler: page_of(site.title, filler.paragraphs(1_000), _own(site)),
    "3,500 characters before": lambda site, filler: page_of(site.title, filler.paragraphs(3_500), _own(site)),
    "ten times as much, before": lambda site, filler: page_of(site.title, filler.paragraphs(_size(site)), _own(site)),
    "the same, and a harmless title": lambda site, filler: page_of(
        HARMLESS_TITLES[site.language], filler.paragraphs(_size(site)), _own(site)
    ),
    "ten times as much, after": lambda site, filler: page_of(site.title, _own(site), filler.paragraphs(_size(site))),
    "ten times as much, half before and half after": lambda site, filler: page_of(
        site.title, filler.paragraphs(_size(site) // 2), _own(site), filler.paragraphs(_size(site) // 2)
    ),
    "ten times as much, hidden": lambda site, filler: page_of(site.title, _own(site), hidden=filler.paragraphs(_size(site))),
}


def blocked(classifier: PageClassifier, chosen: list[Site], shape: Shape, filler: Filler) -> int:
    """Returns how many of the sites are blocked in this shape."""
    bodies = (shape(site, filler).encode() for site in chosen)
    headers = {"content-type": "text/html; charset=utf-8"}
    return sum(classifier.classify_page(Page(URL, URL, 200, headers, body)).harmful for body in bodies)


def spread(found: list[Site], most: int) -> list[Site]:
    """Returns so many sites, in equal steps over all categories."""
    return found[:: max(len(found) // most, 1)][:most]


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sites", type=int, default=90, help="of each language and kind")
    chosen = options.parse_args()
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data") / "texts"
    classifier = load_classifier([ROOT / "lists" / "words"])
    columns = [
        (spread(list(sites(f"{kind}-{language}", "report")), chosen.sites), language)
        for kind in ("pages", "fine")
        for language in SETS
    ]
    print("| text beside it | English | Chinese | harmless, English | harmless, Chinese |\n|---|---|---|---|---|")
    sums = [0] * len(columns)
    for name, shape in SHAPES.items():
        counts = [blocked(classifier, of, shape, Filler(folder, language)) for of, language in columns]
        if name != "nothing":
            sums = [total + count for total, count in zip(sums, counts, strict=True)]
        cells = (f"{count} of {len(of)}" for count, (of, _) in zip(counts, columns, strict=True))
        print(f"| {name} | {' | '.join(cells)} |")
    cells = (f"{total} of {len(of) * (len(SHAPES) - 1)}" for total, (of, _) in zip(sums, columns, strict=True))
    print(f"| all seven | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
