"""Attacks the filter with a client that may send anything: `make attack ARGS="--minutes 10 --seed 7"`."""

import argparse
import sys

from tests.netns.netns_network import why_not
from tests.security.attack_netns import attack_transparent
from tests.security.attack_run import Plan, attack_explicit

_WAYS = ("explicit", "transparent")
_RULES = ("allow", "block")


def main() -> int:
    """Runs it. Returns 1 when something was found."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0, help="for all ways and rules together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--way", choices=_WAYS, action="append", help="default: both, where namespaces can be made")
    parser.add_argument("--unknown", choices=_RULES, action="append", help="proxy.unknown; default: both")
    parser.add_argument("--case", type=int, default=-1, help="only this case of the seed")
    given = parser.parse_args()
    ways, rules = given.way or list(_WAYS), given.unknown or list(_RULES)
    if "transparent" in ways and (reason := why_not()):
        print(f"no transparent way: {reason}")  # noqa: T201  a command
        ways.remove("transparent")
    first, most = (given.case, 1) if given.case >= 0 else (0, 10**9)
    found = 0
    for way in ways:
        for unknown in rules:
            plan = Plan(given.seed, given.minutes * 60 / len(ways) / len(rules), unknown, first, most)
            report = attack_explicit(plan) if way == "explicit" else attack_transparent(plan)
            print(f"== {way}, unknown = {unknown}: {report.text()}\n{dict(sorted(report.families.items()))}", flush=True)  # noqa: T201  a command
            found += len(report.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
