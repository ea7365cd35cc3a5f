"""The inputs of the text model: described sites and texts of this project, and real texts of a folder.

The folder holds `NAME.dev.jsonl.gz`: JSON lines `{"text", "label", "lang", "source"}` and `"html"` where there is markup. Weights
are learned from this project's own samples and from the sets in `LICENSED`; the others choose the knots of the scale and are
reported on.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gatewayfilter.interfaces import Page
from tests.classify.synthetic_pages import SAMPLES, pages_of, sites

LANGUAGES = ("en", "zh")
HARMFUL = ("pages", "second", "third", "fourth", "wide", "more", "further", "late", "voices1", "voices2", "voices3", "voices4")
FINE = ("fine", "second-fine", "third-fine", "fourth-fine", "ordinary", "daily", "about", "plain")
REPORTED = ("pages", "fourth", "fourth-fine", "ordinary", "daily")
"""Sets of whose described sites the tuning half alone is learned from: the other half is reported on."""
WRITERS = ("trade", "press", "portal")
"""Writers of harmful sites and, beside them, of harmless ones near the same subjects."""
KEPT = "kept"
"""A writer like them of whom nothing is learned."""
WRITTEN = "texts-"
"""Begins the names of texts of many genres that were written for the model."""
BLOCKS = ("texts-tools", "texts-various")
"""Those of which `BLOCK` lines in a row count as a writer: a genre that stands nowhere else would be new to a fold without it."""
BLOCK = 25
LICENSED = (
    "en_spamassassin",
    "zh_hardneg_laws",
    "en_hardneg_gov_health",
    "en_hardneg_docs",
    "zh_wiki_cmrc",
    "zh_medical_qa",
    "zh_it_docs",
    "en_video_titles",
)
"""Sets that may be learned from: public domain, open government, MIT and Creative Commons texts."""
SPAM = frozenset({"spam", "fraud", "drugs", "adult", "gambling"})
"""Labels of unwanted mail in `en_spamassassin`: as harmful for the weights, in no category."""
CATEGORIES = ("adult", "gambling", "fraud", "violence", "drugs", "malware")
RENAMED = {"weapons": "violence"}
HARMLESS = "harmless"
URL = "http://site.example/"


class Sample(NamedTuple):
    """One page.

    Attributes:
        origin: its set.
        writer: who wrote it: all sets of one are left out together.
        source: what it stands in: terms of one source alone are not learned.
        half: `tune`, `report` for what nothing is learned from, `real` for texts of the folder.
        label: a category, `HARMLESS`, or what the set calls it.
    """

    origin: str
    writer: str
    source: str
    half: str
    language: str
    label: str
    page: Page

    @property
    def is_harmful(self) -> bool:
        """Whether the label is one of the categories."""
        return self.label in CATEGORIES


def text_page(text: str) -> Page:
    """Returns plain text as a page with a neutral address."""
    return Page(URL, URL, 200, {"content-type": "text/plain; charset=utf-8"}, text.encode(errors="replace"))


def html_page(html: str) -> Page:
    """Returns markup as a page with a neutral address."""
    return Page(URL, URL, 200, {"content-type": "text/html; charset=utf-8"}, html.encode(errors="replace"))


def described() -> Iterator[Sample]:
    """Yields the described sites: each as text and as pages."""
    names = [(name, name, name in HARMFUL) for name in (*HARMFUL, *FINE)]
    for writer in (*WRITERS, KEPT):
        names += [(writer, writer, True), (f"{writer}-fine", writer, False)]
    for name, writer, harmful in names:
        for language in LANGUAGES:
            if not (SAMPLES / f"{name}-{language}.txt").exists():
                continue
            for half in ("tune", "report"):
                kept = "report" if writer == KEPT or (name in REPORTED and half == "report") else "tune"
                for site in sites(f"{name}-{language}", half):
                    label = site.category if harmful else HARMLESS
                    text = "\n".join((site.title, *site.parts))
                    made = [text_page(text), *(html_page(html) for _, html in pages_of(site))]
                    for page in made:
                        yield Sample(name, writer, f"{name} {site.title}", kept, language, label, page)


def traps() -> Iterator[Sample]:
    """Yields the sentences that no word may take for harmful."""
    for language in LANGUAGES:
        for line in (SAMPLES / f"traps-{language}.txt").read_text("utf-8").splitlines():
            if line and not line.startswith("#"):
                yield Sample("traps", "traps", line, "tune", language, HARMLESS, text_page(line))


def trap_pages() -> Iterator[Sample]:
    """Yields each of these sentences as a page, beside a title and a menu."""
    for trap in traps():
        text = trap.page.body.decode()
        menu = "<nav><a href=/>Home</a> <a href=/c>Contact</a></nav>"
        yield trap._replace(page=html_page(f"<!doctype html><title>Notes</title>{menu}<main><p>{text}</p></main>"))


def written() -> Iterator[Sample]:
    """Yields texts of many genres that were written for the model (`texts-*.jsonl.gz`)."""
    for path in sorted(SAMPLES.glob(f"{WRITTEN}*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        for number, row in enumerate(rows_of(path)):
            writer = f"{name}-{number // BLOCK}" if name in BLOCKS else name
            yield Sample(name, writer, f"{name} {number}", "tune", row["lang"], row["label"] or HARMLESS, text_page(row["text"]))


def real(folder: Path) -> Iterator[Sample]:
    """Yields the texts and pages of the folder."""
    for path in sorted(folder.glob("*.dev.jsonl.gz")):
        name = path.name.removesuffix(".dev.jsonl.gz")
        for number, row in enumerate(rows_of(path)):
            page = html_page(row["html"]) if "html" in row else text_page(row["text"])
            label = RENAMED.get(row["label"], row["label"])
            yield Sample(name, name, f"{name} {row['source']} {number}", "real", row["lang"], label, page)


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    """Yields the rows of a file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
