"""Settles the knots of the text model for `standard`, and prints what the classifier blocks and finds with them.

    settle_text_model.py FOLDER [--write]

The second step of `make train` (scripts/training/settled.py). FOLDER holds the real texts. The tables count whole pages as the
product judges them; what weights were learned from is left out. The last one has knots that were chosen on half of the pages,
measured on the other half, for several divisions: login clones and passages are no part of it.
"""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402  after the path

from gatewayfilter.classify import PageClassifier, load_classifier  # noqa: E402
from gatewayfilter.classify.imitated_services import SERVICES_FILE, ImitatedServices  # noqa: E402
from gatewayfilter.classify.models.calibration import BLOCKED_FROM  # noqa: E402
from gatewayfilter.classify.models.text_model import TEXT_MODEL_FILE, TextModel, save  # noqa: E402
from scripts.training.bounds import GROUPS  # noqa: E402
from scripts.training.inputs import HARMLESS, Sample, described, real, trap_pages  # noqa: E402
from scripts.training.report import report  # noqa: E402
from scripts.training.settled import Odds, unlearned, with_knots  # noqa: E402

DIVISIONS = 12


def main() -> None:
    """Settles and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write lists/words/text-model.npz")
    parser.add_argument("--keep", action="store_true", help="report on the model as it is, choose nothing")
    options = parser.parse_args()
    words = ROOT / "lists" / "words"
    model = TextModel.load(words / TEXT_MODEL_FILE)
    if model is None:
        parser.error(f"there is no {TEXT_MODEL_FILE} in {words}")
    classifier = load_classifier([words])
    samples = [*unlearned(chain(real(options.folder), described())), *trap_pages()]
    odds = Odds.read(samples, classifier, model)
    if not options.keep:
        model = replace(model, calibration=with_knots(model.calibration, odds.knots()))
    shape = (len(model.calibration.categories), -1)
    services = ImitatedServices.load(words.parent / SERVICES_FILE)
    for strictness, knots in zip(BLOCKED_FROM, model.calibration.knots, strict=True):
        knots_of = dict(zip(model.calibration.categories, knots.reshape(shape).round(1).tolist(), strict=True))
        print(f"\n{strictness}: {knots_of}", flush=True)
        judge = PageClassifier(classifier.lexicon, texts=model, strictness=strictness, services=services)
        report(samples, np.array([judge.classify_page(sample.page).harmful for sample in samples]))
    if not options.keep:
        print(f"\nstandard, chosen on one half and measured on the other, {DIVISIONS} divisions")
        halves(odds)
    if options.write:
        save(model, words / TEXT_MODEL_FILE)


def halves(odds: Odds) -> None:
    """Prints the mean of what knots that were chosen on a half of the pages block and find of the other half."""
    blocked = np.zeros(len(odds.samples))
    for seed in range(DIVISIONS):
        half = odds.half(seed)
        for seen in (half, ~half):
            blocked += odds.blocked(odds.knots(seen)) & ~seen
    of: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for sample, times in zip(odds.samples, blocked / DIVISIONS, strict=True):
        for name in _names(sample):
            of[name] += 1
            found[name] += times
    print("| | pages | blocked | |\n|---|---|---|---|")
    for name, count in of.items():
        print(f"| {name} | {count:,} | {found[name]:.1f} | {100 * found[name] / count:.2f} % |")


def _names(sample: Sample) -> list[str]:
    if sample.is_harmful:
        return [sample.origin]
    if sample.label != HARMLESS:
        return []
    groups = [f"**{name}**" for name, sets in GROUPS.items() if sample.origin in sets]
    return [*groups, f"{sample.origin}, harmless"]


if __name__ == "__main__":
    main()
