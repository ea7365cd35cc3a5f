"""Our matcher compiled with mypyc, as a peer of itself: what would compiled wheels gain?

The package is copied aside, its inner modules are compiled there, and the copy answers lines like peers/peer.mjs.
docs/decisions/0005-no-compiled-wheels.md has the result.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

MODULES = ("matcher", "index/rule_index", "index/compiled_rule", "index/pattern")
_SETUP = """from mypyc.build import mypycify
from setuptools import setup

setup(name="compiled", packages=[], ext_modules=mypycify({files!r}, opt_level="3"))
"""


@contextmanager
def compiled_peer(blob: Path) -> Iterator[list[str] | str]:
    """Yields the command that runs the compiled engine over a compiled form, or why there is none."""
    missing = [name for name in ("mypyc", "setuptools") if find_spec(name) is None]
    if missing or shutil.which("cc") is None:
        yield f"{', '.join(missing) or 'a C compiler'} is not installed"
        return
    root = Path(__file__).resolve().parents[2]
    with TemporaryDirectory() as folder:
        shutil.copytree(root / "gatewayfilter", Path(folder) / "gatewayfilter")
        files = [f"gatewayfilter/engine/adblock/{name}.py" for name in MODULES]
        options = ["--ignore-missing-imports", "--follow-imports=silent", *files]
        (Path(folder) / "setup.py").write_text(_SETUP.format(files=options), encoding="utf-8")
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"mypyc failed: {done.stdout[-300:]}"
        else:
            yield [sys.executable, __file__, folder, str(blob)]


def _serve(folder: str, blob: str) -> None:
    sys.path.insert(0, folder)
    from adblock_engines import Ours, cpu_seconds, read_requests  # noqa: PLC0415  # after the path is set

    from gatewayfilter.engine.adblock import matcher  # noqa: PLC0415

    if not str(matcher.__file__).startswith(folder) or str(matcher.__file__).endswith(".py"):
        raise SystemExit(f"this is not the compiled matcher: {matcher.__file__}")
    raw = read_requests()
    made: list[Ours] = []
    load_s = cpu_seconds(lambda: made.append(Ours(Path(blob).read_bytes(), raw)))
    print(json.dumps({"load_s": load_s}), flush=True)
    answers = {"round": lambda: {"cpu_s": made[0].round()}, "verdicts": made[0].verdicts}
    for line in sys.stdin:
        print(json.dumps(answers[line.strip()]()), flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
