"""`make bench`: runs the benchmarks named on the command line, or all of them, each in a process of its own."""

import subprocess
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Runs `bench_<name>.py` for each name; prints what there is for `--list`."""
    folder = Path(__file__).parent
    known = {path.stem.removeprefix("bench_"): path for path in sorted(folder.glob("bench_*.py"))}
    if names == ["--list"]:
        print("\n".join(known))
        return 0
    if unknown := [name for name in names if name not in known]:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names or known:
        print(f"\n## {name}\n", flush=True)
        failed |= subprocess.run([sys.executable, known[name]], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
