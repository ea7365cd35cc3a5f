"""Measures the matching scheme of the paper (`PaperScheme`) beside the default one; prints Markdown, draws with --plots.

Source: [ad-traffic §2, Table 4]: k swept, hash table alone against hash table and automaton, growth with the size of the input.
Verdicts of all schemes are compared on the way. Times are CPU times.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from adblock_engines import PAIR, REQUESTS, compile_lists, cpu_seconds, read_requests, request_of

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.matcher import AdblockMatcher, request_bits
from gatewayfilter.model import Request
from tests.engine.adblock.paper_scheme import PAPER_K, PaperScheme

KS = range(4, 13)
SIZES = (250, 1_000, 4_000, 16_000, 64_000)
DEFAULT, ALONE, BOTH = "default", "hash table alone", "hash table + automaton"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=1_500, help="how many of the real requests the sweep of k takes")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="also draw the tables there (SVG)")
    options = parser.parse_args(argv)
    if not REQUESTS.is_file():
        print("no data: set GATEWAYFILTER_TEST_DATA to the folder with lists/ and requests/", file=sys.stderr)
        return 2
    raw = read_requests()
    requests = [request_of(case) for case in raw]
    blob = compile_lists(PAIR)
    sample = requests[:: max(1, len(requests) // options.requests)]
    swept = _sweep(blob, sample)
    grown = _grow(blob, requests)
    _print_naive(blob, sample[:10])
    if options.plots:
        _draw(options.plots, swept, grown)
    return 0


def _sweep(blob: bytes, requests: Sequence[Request]) -> dict[str, list[float]]:
    """Prints µs a request for each k; returns them."""
    default = AdblockMatcher(blob)
    expected = [default.match(request) is not None for request in requests]
    per = 1e6 / len(requests)
    found: dict[str, list[float]] = {DEFAULT: [], ALONE: [], BOTH: []}
    print(f"\n### k swept: EasyList + EasyPrivacy, {len(requests):,} real requests, warm, CPU µs/request\n")
    print("| k | hash table alone | hash table + automaton | gain | default | opening, s (alone / both) |")
    print("|---|---|---|---|---|---|")
    for k in KS:
        opening = []
        for name, use_automaton in ((ALONE, False), (BOTH, True)):
            made: list[PaperScheme] = []
            opening.append(
                cpu_seconds(lambda made=made, k=k, use=use_automaton: made.append(PaperScheme(blob, k, use_automaton=use)))
            )
            scheme = made.pop()
            if [scheme.match(request) is not None for request in requests] != expected:
                raise SystemExit(f"verdicts differ at k = {k}, {name}")
            found[name].append(
                min(cpu_seconds(lambda s=scheme: [s.match(request) for request in requests]) for _ in range(2)) * per
            )
        found[DEFAULT].append(min(cpu_seconds(lambda: [default.match(request) for request in requests]) for _ in range(3)) * per)
        alone, both, fast = found[ALONE][-1], found[BOTH][-1], found[DEFAULT][-1]
        print(f"| {k} | {alone:.1f} | {both:.1f} | {1 - both / alone:.0%} | {fast:.1f} | {opening[0]:.1f} / {opening[1]:.1f} |")
    return found


def _grow(blob: bytes, requests: Sequence[Request]) -> dict[str, list[float]]:
    """Prints CPU seconds after so many requests, opening included, nothing warm; returns them."""
    grown: dict[str, list[float]] = {}
    print(f"\n### Growth with the size of the input, k = {PAPER_K}, CPU s from the compiled form on, opening included\n")
    print("| requests | " + " | ".join(f"{size:,}" for size in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    for name in (DEFAULT, ALONE, BOTH):
        made: list[AdblockMatcher] = []

        def open_scheme(made: list[AdblockMatcher] = made, name: str = name) -> None:
            made.append(AdblockMatcher(blob) if name == DEFAULT else PaperScheme(blob, PAPER_K, use_automaton=name == BOTH))

        spent = cpu_seconds(open_scheme)
        stream = cycle(requests)
        grown[name] = []
        for before, size in zip((0, *SIZES), SIZES, strict=False):
            part = list(islice(stream, size - before))
            spent += cpu_seconds(lambda part=part, match=made[0].match: [match(request) for request in part])
            grown[name].append(spent)
        print(f"| {name} | " + " | ".join(f"{seconds:.2f}" for seconds in grown[name]) + " |")
    first, last = grown[ALONE], grown[BOTH]
    print("| gain of the automaton | " + " | ".join(f"{1 - b / a:.0%}" for a, b in zip(first, last, strict=True)) + " |")
    return grown


def _print_naive(blob: bytes, requests: Sequence[Request]) -> None:
    """Prints what trying every rule costs: the paper's "hard matching"."""
    table = AdblockMatcher(blob)._table  # noqa: SLF001  # every rule, without an index
    rules = [(table.masks[number], CompiledRule(table.rule(number)).matches) for number in range(len(table))]

    def run() -> None:
        for request in requests:
            bits, source = request_bits(request)
            lowered = request.url.text.lower()
            any(mask & bits and matches(request, lowered, source) for mask, matches in rules)

    print(f"\nTrying every one of the {len(rules):,} rules takes {cpu_seconds(run) / len(requests) * 1e3:.0f} ms a request.")


def _draw(folder: Path, swept: dict[str, list[float]], grown: dict[str, list[float]]) -> None:
    import matplotlib as mpl  # noqa: PLC0415  # takes a second, for --plots alone

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "adblock"  # the same figures make the same file
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plots = (
        ("adblock-paper-k", list(KS), swept, "length k of the keywords", "CPU µs/request", "linear"),
        ("adblock-paper-growth", list(SIZES), grown, "requests", "CPU s, opening included", "log"),
    )
    for name, xs, lines, x_label, y_label, x_scale in plots:
        figure, axes = plt.subplots(figsize=(6.4, 3.6))
        for label, ys in lines.items():
            axes.plot(xs, ys, marker="o", label=label)
        axes.set(xlabel=x_label, ylabel=y_label, xscale=x_scale, yscale="log")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
        figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
