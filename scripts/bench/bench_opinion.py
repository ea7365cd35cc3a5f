"""The second opinion: area under the curve of words, linear model and both, and what the model costs.

COLD (Chinese comments, offensive or not): words and model see the training part, the figures are for the development part.
Davidson (English tweets): five-fold cross-validation on a sample. Needs the folder of real data, as the other benchmarks.
"""

import argparse
import csv
import os
import statistics
import time
from pathlib import Path

import numpy as np

from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.lexicon.scanner import Scanner
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.classify.models.training import Example, area_under_curve, fit, train
from gatewayfilter.classify.normalize.views import normal_view

DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data")


def rows(name: str, text: str, harmful: tuple[str, str]) -> list[Example]:
    """Returns the texts of a CSV file; `harmful` is the column and the value that means so."""
    with (DATA / "text" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [Example(row[text], row[harmful[0]] == harmful[1]) for row in csv.DictReader(file)]


def word_counts(examples: list[Example], scanner: Scanner) -> list[int]:
    """Returns how many different words of the list each text has: what a filter with a word list alone knows."""
    return [len(scanner.scan(normal_view(example.text))) for example in examples]


def words() -> list[str]:
    """Returns the Chinese words of the data folder's lists, one a line."""
    files = [path for path in sorted((DATA / "words").rglob("*")) if path.is_file() and "README" not in path.name]
    lines = {line.strip() for path in files for line in path.read_text("utf-8", errors="replace").splitlines()}
    return [line for line in lines if 1 < len(line) <= 20 and any("\u4e00" <= one <= "\u9fff" for one in line)]


def odds_by_count(scanner: Scanner, examples: list[Example]) -> list[float]:
    """Returns the log-odds that a text with 0, 1 … 5 and more words of the list is harmful."""
    counts = np.minimum(word_counts(examples, scanner), 5)
    labels = np.array([example.harmful for example in examples])
    weights = [np.log(((labels & (counts == n)).sum() + 1) / ((~labels & (counts == n)).sum() + 1)) for n in range(6)]
    return [float(weight) for weight in weights]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=25_000, help="of the training part at most")
    options = parser.parse_args()
    if not (DATA / "text").is_dir():
        print("no texts found: set GATEWAYFILTER_TEST_DATA")
        return
    learned = rows("cold-train", "TEXT", ("label", "1"))[: options.texts]
    unseen = rows("cold-dev", "TEXT", ("label", "1"))
    known = {example.text for example in learned}
    unseen = [example for example in unseen if example.text not in known]
    begun = time.process_time()
    model = fit(learned)
    spent = time.process_time() - begun
    scanner = Scanner(Lexicon.of([WordFile("list", words=dict.fromkeys(words(), 1.0))]))
    labels = np.array([float(example.harmful) for example in unseen])
    counts = np.array(word_counts(unseen, scanner), dtype=float)
    logits = np.array([model.logit(normal_view(example.text)) for example in unseen])
    weights = odds_by_count(scanner, learned)
    together = logits + np.array([weights[int(min(count, 5))] for count in counts])
    print(f"| {len(unseen):,} Chinese comments, trained on {len(learned):,} others | area under the curve |\n|---|---|")
    print(f"| {len(words()):,} words of public lists, counted | {area_under_curve(counts, labels):.3f} |")
    print(f"| linear model | {area_under_curve(logits, labels):.3f} |")
    print(f"| both | {area_under_curve(together, labels):.3f} |")
    tweets = rows("davidson-dev", "tweet", ("class", "2"))
    inverted = [Example(example.text, not example.harmful) for example in tweets[:4_000]]
    print(f"| {len(inverted):,} English tweets, linear model, cross-validation | {train(inverted, 0.0).auc:.3f} |")
    times = []
    long_text = normal_view(" ".join(example.text for example in unseen[:400]))[:4000]
    for _ in range(50):
        at = time.process_time_ns()
        model.logit(long_text)
        times.append((time.process_time_ns() - at) / 1e6)
    print(f"\nTraining took {spent:.1f} s of CPU time; asking about 4,000 characters takes {statistics.median(times):.2f} ms.")


if __name__ == "__main__":
    main()
