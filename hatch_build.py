"""Compiles each `*.pyx` of the package; where that fails, the install succeeds and Python does the work.

hatchling runs it as a build hook: an editable install gets the modules beside their sources, a wheel gets them and the
platform's tag. `python hatch_build.py` does the same for the checkout and says what it could not build; the Makefile runs it
when a source has changed. `GATEWAYFILTER_PURE=1` builds nothing and gives a wheel for any platform.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DIRECTIVES = ("boundscheck=True", "wraparound=False", "initializedcheck=True", "cdivision=False", "language_level=3")
"""Memory safety is not for sale: what is read comes from strangers."""
# No debug symbols and no FMA: the same source gives the same bytes, and the same sums as Python, wherever it is built.
CFLAGS = ("-O3", "-g0", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-DNDEBUG")
HARDENING = ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now")
TIMEOUT_S = 120
_MEND = "Debian, Ubuntu: apt-get install gcc libc6-dev python3-dev"
_PLACE = re.compile(r":\d+:\d+: ")
"""In the line of a compiler's complaint that says where and what."""


class NotBuiltError(Exception):
    """Why a module could not be compiled, in words for the person who installs."""


class NoToolsError(NotBuiltError):
    """There is nothing to compile with: it is worth looking again the next time."""


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
        targets = {source: Path(self._folder.name) / module_file(source) for source in sources(root)}
        failed = compile_modules(root, targets)
        for complaint in sentences(failed):
            self.app.display_warning(complaint)
        for source, target in targets.items():
            if source not in failed:
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


def build_in_place(root: Path) -> dict[Path, NotBuiltError]:
    """Compiles what is older than its source, beside it; returns why what could not be."""
    targets = {source: root / source.parent / module_file(source) for source in sources(root)}
    hook = Path(__file__).stat().st_mtime
    old = {
        source: target
        for source, target in targets.items()
        if not target.exists() or target.stat().st_mtime < max((root / source).stat().st_mtime, hook)
    }
    failed = compile_modules(root, old)
    for source in failed:
        with contextlib.suppress(OSError):
            targets[source].unlink()
    return failed


def sentences(failed: dict[Path, NotBuiltError]) -> list[str]:
    """Returns what to tell of the modules that could not be built: a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for source, error in failed.items():
        by_reason.setdefault(str(error), []).append(str(source))
    return [
        f"Not compiled, Python does the same more slowly: {', '.join(names)}: {reason}" for reason, names in by_reason.items()
    ]


def compile_modules(root: Path, targets: dict[Path, Path]) -> dict[Path, NotBuiltError]:
    """Compiles sources into module files, as many at once as there are processors; returns why what could not be."""
    if not targets:
        return {}
    try:
        look_for_tools()
    except NotBuiltError as error:
        return dict.fromkeys(targets, error)
    failed = {}

    def compile_one(source: Path) -> None:
        try:
            compile_module(root, source, targets[source])
        except NotBuiltError as error:
            failed[source] = error
        except OSError as error:  # a folder that may not be written
            failed[source] = NotBuiltError(str(error))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, targets))
    return failed


def look_for_tools() -> None:
    """Looks for what compiling needs, since Cython alone takes seconds.

    Raises:
        NoToolsError: something is not there.
    """
    if find_spec("Cython") is None:
        raise NoToolsError("Cython is not installed")
    if shutil.which(_compiler()[0]) is None:
        raise NoToolsError(f"{_compiler()[0]} was not found ({_MEND})")
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        raise NoToolsError(f"Python's headers were not found ({_MEND})")


def _compiler() -> list[str]:
    return _words_of("CC") or shlex.split(str(sysconfig.get_config_var("CC") or "cc"))


def _words_of(variable: str) -> list[str]:
    """Returns what the environment gives to compilers in a variable."""
    try:
        return shlex.split(os.environ.get(variable, ""))
    except ValueError as error:
        raise NotBuiltError(f"{variable} cannot be read: {error}") from error


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
        flags = [*CFLAGS, *HARDENING, *_words_of("CFLAGS")]
        include = [f"-I{sysconfig.get_paths()[key]}" for key in ("include", "platinclude")]
        linking = ["-shared", *_words_of("LDFLAGS")]
        _run(
            [*_compiler(), *flags, *include, f"-ffile-prefix-map={folder}=.", str(c_file), "-o", str(built), *linking],
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
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuiltError(f"{who} failed: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise NotBuiltError(f"{who} failed: {next(filter(_PLACE.search, said), said[-1]).strip()}")


def main() -> int:
    """Compiles in place what has changed, and says what could not be; returns 1 where it is worth trying again."""
    if is_pure():
        return 0
    failed = build_in_place(Path(__file__).resolve().parent)
    for complaint in sentences(failed):
        sys.stderr.write(f"{complaint}\n")
    return int(any(isinstance(error, NoToolsError) for error in failed.values()))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
