"""Recognition: judging the real pages with warm fingerprints against judging them without [page-dedup].

What is measured is what the learner does for a page before it writes its verdict: with fingerprints the identity of the body
and the look-up, in memory and (a learner that just started) in the database; without, the classification. Needs the folder of
real pages: GATEWAYFILTER_TEST_DATA, or ../shared/data beside the repository. CPU time, rounds interleaved, medians.
"""

import gzip
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gatewayfilter.classify import load_classifier
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ContentIds, Recognition
from gatewayfilter.store import Store

ROOT = Path(__file__).parents[2]
ROUNDS = 7
KEY = b"benchmark".ljust(32)


def cpu_ms(work: Callable[[Page], object], pages: Sequence[Page]) -> float:
    """Returns the CPU time of one pass over the pages, in milliseconds a page."""
    begun = time.process_time_ns()
    for page in pages:
        work(page)
    return (time.process_time_ns() - begun) / 1e6 / len(pages)


def main() -> None:
    """Measures and prints."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data") / "pages" / "html"
    bodies = [gzip.decompress(file.read_bytes()) for file in sorted(folder.glob("*.gz"))]
    if not bodies:
        print("no real pages found: set GATEWAYFILTER_TEST_DATA")
        return
    pages = [
        Page(f"http://{number}.example/", f"http://{number}.example/", 200, {"content-type": "text/html"}, body)
        for number, body in enumerate(bodies)
    ]
    classifier = load_classifier([ROOT / "lists" / "words"])
    with tempfile.TemporaryDirectory() as state:
        store = Store.open(f"sqlite:///{state}/bench.sqlite3")
        ids = ContentIds(KEY)
        warm = Recognition(store.fingerprints, ids, str)
        for page in pages:
            warm.record(ids.of_page(page.body), classifier.classify_page(page), page.url)
        without, known, started, single = [], [], [], []
        for _ in range(ROUNDS):
            without.append(cpu_ms(classifier.classify_page, pages))
            known.append(cpu_ms(warm.page, pages))
            started.append(cpu_ms(Recognition(store.fingerprints, ids, str).page, pages))
            single.append(cpu_ms(lambda page: store.fingerprints.find(ids.of_page(page.body), 0.0), pages))
        if any(warm.page(page)[1] is None for page in pages):
            raise AssertionError("a page was not known again")
        store.close()
    judged = statistics.median(without)
    print(f"{len(pages)} real pages, mean {statistics.mean(map(len, bodies)) / 1000:.0f} KB, median of {ROUNDS} rounds\n")
    print("| recognition | CPU ms a page | against judging |")
    print("|---|---|---|")
    for name, times in (
        ("judged, no fingerprints", without),
        ("warm fingerprints", known),
        ("a learner that just started: 16 from the database, the others read at once", started),
        ("each from the database (a command that looks at one page)", single),
    ):
        ms = statistics.median(times)
        print(f"| {name} | {ms:.3f} | {judged / ms:.0f}x |")


if __name__ == "__main__":
    main()
