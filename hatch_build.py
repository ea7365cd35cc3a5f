"""Compiles each `*.pyx` of the package; where that fails, the install succeeds and Python does the work.

hatchling runs it as a build hook: an editable install gets the modules beside their sources, a wheel gets them and the
platform's tag. `python hatch_build.py` does the same for the checkout and says what it could not build; the Makefile runs it
when a source has changed. `GATEWAYFILTER_PURE=1` builds nothing and gives a wheel for any platform.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DIRECTIVES = ("boundscheck=True", "wraparound=False", "initializedcheck=True", "cdivision=False", "language_level=3")
"""Memory safety is not for sale: what is read comes from strangers."""
# No debug symbols and no FMA: the same source gives the same bytes, and the same sums as Python, wherever it is built.
CFLAGS = ("-O3", "-g0", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-DNDEBUG")
HARDENING = ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now")
TIMEOUT_S = 120
_PLACE = re.compile(r":\d+:\d+: ")
"""In the line of a compiler's complaint that says where and what."""


class NotBuiltError(Exception):
    """Why a module could not be compiled, in words for the person who installs."""


class CompiledModules(BuildHookInterface):  # type: ignore[type-arg]  # its parameter is the builder's configuration
    """Puts the compiled modules into what hatchling builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles; an editable install is told by its version."""
        if self.target_name != "wheel" or is_pure():
            return
        root = Path(self.root)
        if version == "editable":
            build_in_place(root)
            return
        self._folder = tempfile.TemporaryDirectory()
        for source in sources(root):
            target = Path(self._folder.name) / module_file(source)
            try:
                compile_module(root, source, target)
            except NotBuiltError as error:
                self.app.display_warning(sentence(source, error))
                continue
            build_data["force_include"][str(target)] = str(source.parent / target.name)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Takes the temporary folder away."""
        del version, build_data, artifact_path
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def is_pure() -> bool:
    """Tells whether nothing shall be compiled."""
    return os.environ.get("GATEWAYFILTER_PURE", "") not in {"", "0"}


def sources(root: Path) -> list[Path]:
    """Returns the Cython sources, relative to the checkout."""
    return sorted(path.relative_to(root) for path in (root / "gatewayfilter").rglob("*.pyx"))


def module_file(source: Path) -> str:
    """Returns the file name of the module that a source gives on this Python."""
    return source.stem + str(sysconfig.get_config_var("EXT_SUFFIX"))


def build_in_place(root: Path) -> list[str]:
    """Compiles what is older than its source, beside it; returns a sentence for each that could not be built."""
    complaints = []
    for source in sources(root):
        target = root / source.parent / module_file(source)
        if target.exists() and target.stat().st_mtime >= max((root / source).stat().st_mtime, Path(__file__).stat().st_mtime):
            continue
        try:
            compile_module(root, source, target)
        except NotBuiltError as error:
            target.unlink(missing_ok=True)
            complaints.append(sentence(source, error))
    return complaints


def sentence(source: Path, error: NotBuiltError) -> str:
    """Returns what to tell of a module that could not be built."""
    return f"{source} was not compiled, Python does its work more slowly: {error}"


def compile_module(root: Path, source: Path, target: Path) -> None:
    """Compiles a source into a module file, which appears whole or not at all.

    Raises:
        NotBuiltError: there is no Cython or no C compiler, or one of them failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        c_file, built = Path(folder) / f"{source.stem}.c", Path(folder) / target.name
        directives = [part for directive in DIRECTIVES for part in ("-X", directive)]
        name = ".".join(source.with_suffix("").parts)
        cython = [sys.executable, "-m", "cython", *directives, "--module-name", name, str(source), "-o", str(c_file)]
        _run(cython, root, "Cython")
        compiler = shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc"))
        flags = [*CFLAGS, *HARDENING, *shlex.split(os.environ.get("CFLAGS", ""))]
        include = [f"-I{sysconfig.get_paths()[key]}" for key in ("include", "platinclude")]
        linking = ["-shared", *shlex.split(os.environ.get("LDFLAGS", ""))]
        _run(
            [*compiler, *flags, *include, f"-ffile-prefix-map={folder}=.", str(c_file), "-o", str(built), *linking],
            root,
            "the C compiler",
        )
        # Replaced, never written over: running processes have the old one mapped.
        beside = target.with_name(f"{target.name}.{os.getpid()}")
        beside.write_bytes(built.read_bytes())
        beside.chmod(0o755)
        beside.replace(target)


def _run(command: list[str], root: Path, who: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603  Cython and the person's own compiler
            command, cwd=root, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise NotBuiltError(f"{command[0]} was not found (Debian, Ubuntu: apt-get install gcc libc6-dev python3-dev)") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuiltError(f"{who} failed: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise NotBuiltError(f"{who} failed: {next(filter(_PLACE.search, said), said[-1]).strip()}")


def main() -> int:
    """Compiles in place what has changed, and says what could not be."""
    root = Path(__file__).resolve().parent
    if is_pure():
        return 0
    complaints = build_in_place(root)
    for complaint in complaints:
        sys.stderr.write(f"{complaint}\n")
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
