"""Fuzzes all readers of input, guided by coverage: `make fuzz ARGS="list -max_total_time=60"`, or each target for ten seconds.

Targets and what must hold of them: adblock_checks.py, input_checks.py. An input that fails is printed, in Base64 too, with what
libFuzzer and the engine said.
"""

import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tests.fuzz.adblock_checks import CHECKS, LINES, URLS
from tests.fuzz.input_checks import INPUT_CHECKS, SEEDS

_TEXT = frozenset({"list", "url"})
"""Targets that take text."""

_WORDS = (
    *("@@||", "||", "^", "*", "|", "$", ",", "=", "~", "domain=", "third-party", "important", "badfilter", "match-case", "to="),
    *(
        "denyallow=",
        "removeparam=",
        "redirect=",
        "csp=",
        "replace=/",
        "!#if ",
        "!#else",
        "!#endif",
        "#@#",
        "##",
        "#?#",
        "/^",
        "$/",
    ),
    *("(?:", "[^", "]+", "{2,}", "\\d", "\\w+", "http://", "https://", "wss://", "xn--", "%2e", "%00", "[::1]", "0.0.0.0 "),
)


def fuzz(name: str, arguments: list[str]) -> None:
    """Runs one target until libFuzzer ends the process."""
    import atheris  # noqa: PLC0415  # for the child alone

    for module in [module for module in sys.modules if module.startswith(("gatewayfilter", "tests.fuzz"))]:
        del sys.modules[module]  # to be imported again, with its branches counted
    with atheris.instrument_imports(include=["gatewayfilter"]):
        room = "input_checks" if name in INPUT_CHECKS else "adblock_checks"
        found = import_module(f"tests.fuzz.{room}")
        check = (found.INPUT_CHECKS if name in INPUT_CHECKS else found.CHECKS)[name]

    def once(data: bytes) -> None:
        check(data.decode(errors="surrogateescape" if len(data) % 7 == 0 else "replace") if name in _TEXT else data)

    atheris.Setup([sys.argv[0], *arguments], once)
    atheris.Fuzz()


def _prepare(folder: Path, name: str) -> list[str]:
    """Writes seeds and a dictionary; returns libFuzzer's arguments for them."""
    corpus = folder / name
    corpus.mkdir()
    seeds = {"list": LINES, "url": [f"{url}\nhttps://a.net/" for url in URLS]}.get(name, [*LINES, *URLS])
    for number, seed in enumerate(SEEDS.get(name) or [seed.encode() for seed in seeds]):
        (corpus / str(number)).write_bytes(seed)
    words = folder / "words"
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in _WORDS)
    words.write_text("".join(f'"{word}"\n' for word in escaped), encoding="utf-8")
    return [
        str(corpus),
        f"-dict={words}",
        f"-artifact_prefix={folder}/",
        "-max_len=400",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
    ]


def main(arguments: list[str]) -> int:
    """Runs the target that is named, or each for ten seconds; returns the exit code."""
    if arguments and arguments[0] == "--here":
        fuzz(arguments[1], arguments[2:])
        return 0
    names = [arguments.pop(0)] if arguments and not arguments[0].startswith("-") else [*CHECKS, *INPUT_CHECKS]
    failed = 0
    sys.stdout.write("| target | inputs | failures |\n|---|---|---|\n")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            more = arguments or ["-max_total_time=10"]
            command = [sys.executable, __file__, "--here", name, *_prepare(Path(folder), name), *more]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=Path(__file__).parents[2]
            )
        told = [line for line in done.stdout.splitlines() if line.startswith("stat::number_of_executed_units")]
        count = int(told[0].split()[-1]) if told else 0
        sys.stdout.write(f"| {name} | {count:,} | {'failed' if done.returncode else 'none'} |\n")
        sys.stdout.flush()
        if done.returncode:
            sys.stderr.write(done.stdout[-6_000:])
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
