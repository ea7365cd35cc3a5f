"""Trains the text model (`lists/words/text-model.npz`) and prints what it blocks and finds.

    train_text_model.py FOLDER [--write] [--jobs N]

FOLDER holds the real texts (scripts/training/inputs.py). Weights are learned from this project's samples and from the licensed
sets; the other sets choose the knots of the scale. Each page of the table was read by weights that its writer or set took no
part in. scripts/settle_text_model.py then settles the knots of `standard`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from gatewayfilter.classify.models.calibration import BLOCKED_FROM  # noqa: E402  after the path
from gatewayfilter.classify.models.text_model import TEXT_MODEL_FILE, packed, save  # noqa: E402
from scripts.training.bounds import MOST_BLOCKED  # noqa: E402
from scripts.training.calibrate import Calibrator  # noqa: E402
from scripts.training.folds import read_out_of_fold  # noqa: E402
from scripts.training.inputs import described, real, traps, written  # noqa: E402
from scripts.training.reading import Document, read_all  # noqa: E402
from scripts.training.report import report  # noqa: E402


def main() -> None:
    """Trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write lists/words/text-model.npz")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    words = ROOT / "lists" / "words"
    documents = read_all(chain(described(), traps(), written(), real(options.folder)), words, options.jobs)
    print(f"{len(documents):,} pages", flush=True)
    weights, readings = read_out_of_fold(documents, options.jobs)
    calibrator = Calibrator(documents, readings)
    calibration = calibrator.fit()
    for strictness, knots in zip(BLOCKED_FROM, calibration.knots, strict=True):
        print(f"\n{strictness}: {dict(zip(calibration.categories, knots.reshape(-1, 4).round(1).tolist(), strict=True))}")
        report(documents, calibrator.blocked(knots))
    halves(documents, calibrator)
    if options.write:
        model = packed(weights.weights.astype(np.float64), weights.rarity, weights.bias, calibration)
        save(model, words / TEXT_MODEL_FILE)


def halves(documents: Sequence[Document], calibrator: Calibrator) -> None:
    """Prints what knots that were chosen on one half of the real rows, by their number, block and find of the other."""
    row = np.array([int(d.source.rsplit(" ", 1)[1]) if d.half == "real" else -1 for d in documents])
    for kept in (0, 1):
        real = row >= 0
        knots = calibrator.knots(MOST_BLOCKED[1], ~real | (row % 2 != kept))
        print(f"\nstandard, chosen on the other half, rows with number % 2 = {kept}")
        report(
            [d for d, of_half in zip(documents, ~real | (row % 2 == kept), strict=True) if of_half],
            calibrator.blocked(knots)[~real | (row % 2 == kept)],
        )


if __name__ == "__main__":
    main()
