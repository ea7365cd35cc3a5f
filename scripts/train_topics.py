"""Trains the model that tells what a text reads like (`lists/words/topics.npz`), or measures what such a model is worth.

    train_topics.py FOLDER…                    train on all that may be trained on, and write the model
    train_topics.py --without third FOLDER…    train without one writer's sites, and count what is found of them

It learns from the described sites of `tests/classify/samples` (of sets that are reported on, the tuning half alone) and from the
harmless texts of the folders (bench_benign.py says what they hold), again the tuning half. With `--without` it prints how many
pages of that writer's reporting half are found by words alone and by both, and how many harmless pages are blocked, on the halves
that nothing was learned from.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "bench")]

from bench_benign import from_data, from_folder, language  # noqa: E402  after the path
from bench_detection import LANGUAGES  # noqa: E402

from gatewayfilter.classify import Lexicon, PageClassifier  # noqa: E402
from gatewayfilter.classify.models.topic_model import BITS, HARMLESS, TOPICS_FILE, TopicModel, pack, terms_of  # noqa: E402
from gatewayfilter.interfaces import Page  # noqa: E402
from tests.classify.synthetic_pages import SAMPLES, pages_of, sites  # noqa: E402

HARMFUL = ("pages", "second", "third", "fourth", "wide", "more", "further", "voices1", "voices2", "voices3", "voices4")
FINE = ("fine", "second-fine", "third-fine", "fourth-fine", "ordinary", "daily", "about", "plain")
REPORTED = ("pages", "fourth", "fourth-fine", "ordinary", "daily")
"""Sets of whose described sites the tuning half alone is learned from: the other half is reported on."""
INVERSE_PENALTY = 100.0
FINE_COUNTS = 2.0
"""What a harmless described site counts to a harmless text of the folders."""
LEAST_SOURCES = 2
"""Sites or texts in which a term stands before anything is learned of it."""
MOST_TEXTS = 3_000
"""Of the folders, and as many of the test data's comments and tweets."""
RUDE = ("comments", "tweets")
"""Texts of people who insult each other: not what the categories are about."""
URL = "http://site.example/"


class Sample(NamedTuple):
    """One text: of which set and half, in which language, of which category, of which site, and its page."""

    origin: str
    half: str
    language: str
    category: str
    source: str
    page: Page


def described() -> Iterator[Sample]:
    """Yields the pages of the described sites."""
    for name in (*HARMFUL, *FINE):
        for tongue in LANGUAGES:
            if not (SAMPLES / f"{name}-{tongue}.txt").exists():
                continue
            for half in ("tune", "report"):
                for site in sites(f"{name}-{tongue}", half):
                    category = site.category if name in HARMFUL else HARMLESS
                    for _, html in pages_of(site):
                        page = Page(URL, URL, 200, {"content-type": "text/html; charset=utf-8"}, html.encode())
                        yield Sample(name, half, tongue, category, f"{name} {site.title}", page)


def traps() -> Iterator[Sample]:
    """Yields the sentences that no word may take for harmful."""
    for tongue in LANGUAGES:
        for line in (SAMPLES / f"traps-{tongue}.txt").read_text("utf-8").splitlines():
            if line and not line.startswith("#"):
                page = Page(URL, URL, 200, {"content-type": "text/plain; charset=utf-8"}, line.encode())
                yield Sample("traps", "tune", tongue, HARMLESS, line, page)


def collected(folders: Iterable[Path]) -> Iterator[Sample]:
    """Yields the harmless texts of the folders and of the test data, each once; of the latter no page is learned from."""
    seen: set[bytes] = set()
    for origin, texts in (("folder", (pair for folder in folders for pair in from_folder(folder))), ("data", from_data())):
        for source, text in texts:
            raw = text if isinstance(text, bytes) else text.encode(errors="replace")
            digest = md5(raw, usedforsecurity=False).digest()
            if digest in seen or len(raw) < 8:
                continue
            seen.add(digest)
            kind = "text/html" if isinstance(text, bytes) else "text/plain; charset=utf-8"
            half = "tune" if digest[0] % 2 and (origin == "folder" or source.startswith(RUDE)) else "report"
            yield Sample(
                f"{origin} {source}",
                half,
                language(text),
                HARMLESS,
                digest.hex(),
                Page(URL, URL, 200, {"content-type": kind}, raw),
            )


def rows_of(texts: Sequence[str]) -> csr_matrix:
    """Returns a row of length 1 a text: which terms it holds."""
    places = [np.unique(terms_of(text).places) for text in texts]
    counts = np.array([len(some) for some in places])
    values = np.repeat(1.0 / np.sqrt(np.maximum(counts, 1)), counts)
    starts = np.concatenate(([0], np.cumsum(counts)))
    return csr_matrix((values, np.concatenate(places).astype(np.int64), starts), shape=(len(texts), 1 << BITS))


def fit(samples: Sequence[Sample], texts: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]:
    """Returns categories, weights[categories, 2 ** BITS] and bias."""
    rows = rows_of(texts)
    sources = {name: number for number, name in enumerate(dict.fromkeys(sample.source for sample in samples))}
    owners = np.repeat([sources[sample.source] for sample in samples], np.diff(rows.indptr))
    pairs = np.unique(np.stack((rows.indices.astype(np.int64), owners)), axis=1)
    known = np.bincount(pairs[0], minlength=1 << BITS) >= LEAST_SOURCES
    labels = [sample.category for sample in samples]
    count = Counter(labels)
    weights = [
        len(samples) / len(count) / count[sample.category] * (FINE_COUNTS if sample.origin in FINE else 1.0) for sample in samples
    ]
    chosen = np.flatnonzero(known)
    model = LogisticRegression(C=INVERSE_PENALTY, max_iter=150)
    model.fit(rows[:, chosen], labels, sample_weight=weights)
    whole = np.zeros((len(model.classes_), 1 << BITS))
    whole[:, chosen] = model.coef_
    return tuple(map(str, model.classes_)), whole, model.intercept_


def main() -> None:
    """Trains, and writes or measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="unpacked packages of harmless texts")
    parser.add_argument("--without", choices=("second", "third"), help="measure: leave this writer out, and count what is found")
    parser.add_argument("--words", type=Path, default=ROOT / "lists" / "words", help="folder of other words, to compare")
    parser.add_argument("--output", type=Path, default=ROOT / "lists" / "words" / TOPICS_FILE)
    options = parser.parse_args()
    lexicon = Lexicon.load([options.words])
    words = PageClassifier(lexicon)
    samples = [*described(), *traps(), *collected(options.folders)]
    learned = [sample for sample in samples if may_learn(sample, options.without)]
    learned = [sample for sample in learned if not sample.origin.startswith(("folder", "data"))] + [
        sample for origin in ("folder", "data") for sample in thinned(learned, origin)
    ]
    categories, weights, bias = fit(learned, [words.text_of(sample.page) for sample in learned])
    pack(options.output, categories, weights, bias)
    count = Counter(sample.category or "harmless" for sample in learned)
    size = options.output.stat().st_size
    learned_of = ", ".join(f"{number} {name}" for name, number in sorted(count.items()))
    print(f"{options.output.name}: {size:,} bytes, of {learned_of} pages")
    if options.without:
        model = TopicModel.load(options.output)
        both = PageClassifier(lexicon, topics=model)
        measure([sample for sample in samples if is_measured(sample, options.without)], {"words": words, "both": both})


def thinned(samples: Iterable[Sample], origin: str) -> list[Sample]:
    """Returns at most `MOST_TEXTS` or so of the samples of an origin."""
    chosen = [sample for sample in samples if sample.origin.startswith(origin)]
    return chosen[:: -(-len(chosen) // MOST_TEXTS) or 1]


def may_learn(sample: Sample, without: str | None) -> bool:
    """Returns whether a sample is learned from."""
    if without and sample.origin.split("-")[0] == without:
        return False
    return sample.half == "tune" or sample.origin in set(HARMFUL + FINE) - set(REPORTED)


def is_measured(sample: Sample, without: str) -> bool:
    """Returns whether a sample is measured where one writer was left out."""
    if sample.origin.split("-")[0] == without:
        return sample.half == "report"
    return sample.origin.startswith(("folder", "data")) and sample.half == "report"


def measure(samples: Iterable[Sample], classifiers: dict[str, PageClassifier]) -> None:
    """Prints what is found and what is blocked, for each classifier."""
    found: Counter[tuple[str, str, str]] = Counter()
    for sample in samples:
        kind = "found" if sample.category else sample.origin
        found["all", kind, sample.language] += 1
        for name, classifier in classifiers.items():
            judged = classifier.classify_page(sample.page)
            found[name, kind, sample.language] += judged.category == sample.category if sample.category else judged.harmful
    print("| what | language | pages | " + " | ".join(classifiers) + " |\n|---|---|---|" + "---|" * len(classifiers))
    for kind, tongue in dict.fromkeys((kind, tongue) for _, kind, tongue in found):
        cells = [f"{found[name, kind, tongue]}" for name in classifiers]
        print(f"| {kind} | {tongue} | {found['all', kind, tongue]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
