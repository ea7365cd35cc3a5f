"""The build hook: compiled modules where there is a compiler, Python and one clear sentence where there is none."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hatch_build
from gatewayfilter import compiled
from hatch_build import NotBuiltError, NoToolsError, build_in_place, compile_module, module_file, sentences, sources

ROOT = Path(__file__).parents[1]
TINY = "def answer(int n):\n    cdef int[4] row\n    row[n & 3] = n\n    return row[n & 3] + 1\n"
SOURCE = Path("gatewayfilter/_tiny.pyx")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "gatewayfilter").mkdir()
    (tmp_path / SOURCE).write_text(TINY, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def needs_compiler(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("first")
    (folder / "gatewayfilter").mkdir()
    (folder / SOURCE).write_text("x = 1\n", encoding="utf-8")
    try:
        hatch_build.look_for_tools()
        compile_module(folder, SOURCE, folder / module_file(SOURCE))
    except NotBuiltError as error:
        pytest.skip(str(error))


def test_the_modules_that_are_known_are_those_that_are_built() -> None:
    assert sorted(".".join(source.with_suffix("").parts) for source in sources(ROOT)) == sorted(compiled.MODULES)
    assert all((ROOT / source).with_suffix(".pyi").exists() for source in sources(ROOT))


@pytest.mark.slow
@pytest.mark.usefixtures("needs_compiler")
def test_what_is_built_works_is_kept_and_is_built_again_when_its_source_changes(checkout: Path) -> None:
    assert build_in_place(checkout) == {}
    built = checkout / "gatewayfilter" / module_file(SOURCE)
    code = "import sys; sys.path.insert(0, 'gatewayfilter'); import _tiny; print(_tiny.answer(41))"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=checkout, text=True) == "42\n"
    first = built.stat()
    assert build_in_place(checkout) == {}
    assert built.stat() == first
    os.utime(checkout / SOURCE, (first.st_mtime + 5, first.st_mtime + 5))
    assert build_in_place(checkout) == {}
    assert built.stat().st_ino != first.st_ino
    assert sorted(path.name for path in built.parent.iterdir()) == sorted([SOURCE.name, built.name])


@pytest.mark.slow
@pytest.mark.usefixtures("needs_compiler")
def test_the_same_source_gives_the_same_bytes(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(checkout / "gatewayfilter", other / "gatewayfilter")
    for folder in (checkout, other):
        compile_module(folder, SOURCE, folder / "out.so")
    assert (checkout / "out.so").read_bytes() == (other / "out.so").read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("needs_compiler")
@pytest.mark.parametrize(
    ("text", "environ", "said"),
    [
        (TINY, {"CC": "no-such-compiler-here"}, "no-such-compiler-here was not found (Debian"),
        (TINY, {"CFLAGS": "-include no_such_header.h"}, "the C compiler failed: "),
        ("def answer(:\n", {}, "Cython failed: gatewayfilter/_tiny.pyx:1:11: "),
    ],
)
def test_what_cannot_be_built_is_one_sentence_and_leaves_nothing(
    text: str, environ: dict[str, str], said: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / SOURCE).write_text(text, encoding="utf-8")
    built = checkout / "gatewayfilter" / module_file(SOURCE)
    built.write_bytes(b"of an older source")
    os.utime(built, (1, 1))
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    (complaint,) = sentences(build_in_place(checkout))
    assert complaint.startswith(f"Not compiled, Python does the same more slowly: {SOURCE}: ")
    assert said in complaint
    assert "\n" not in complaint
    assert [path.name for path in built.parent.iterdir()] == [SOURCE.name]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo in x.c; echo x.c:3:4: error: no Python.h; echo stopped; exit 1", "x.c:3:4: error: no Python.h"),
        ("echo one; echo two; exit 3", "two"),
        ("exit 1", "it said nothing"),
    ],
)
def test_what_a_compiler_says_becomes_one_line(script: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError) as raised:
        hatch_build._run(["/bin/sh", "-c", script], tmp_path, "the C compiler")
    assert str(raised.value) == f"the C compiler failed: {said}"


@pytest.mark.parametrize("missing", ["compiler", "headers", "Cython"])
def test_without_tools_nothing_is_tried_and_one_line_says_so(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "some-compiler"
    compiler.write_text("#!/bin/sh\n", encoding="utf-8")
    compiler.chmod(0o755)
    (tmp_path / "Python.h").touch()
    monkeypatch.setenv("CC", "no-such-compiler-here -m64" if missing == "compiler" else str(compiler))
    monkeypatch.setattr(hatch_build, "find_spec", lambda _: None if missing == "Cython" else object())
    include = str(tmp_path / "nowhere" if missing == "headers" else tmp_path)
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": include})
    monkeypatch.setattr(hatch_build, "compile_module", lambda *_: pytest.fail("it tried"))
    failed = hatch_build.compile_modules(tmp_path, {Path("a.pyx"): tmp_path / "a.so", Path("b.pyx"): tmp_path / "b.so"})
    assert all(isinstance(error, NoToolsError) for error in failed.values())
    (complaint,) = sentences(failed)
    said = {
        "compiler": "no-such-compiler-here was not found",
        "headers": "Python's headers were not found",
        "Cython": "Cython is not",
    }
    assert complaint.startswith(f"Not compiled, Python does the same more slowly: a.pyx, b.pyx: {said[missing]}")


@pytest.mark.parametrize(("error", "code"), [(NoToolsError("none"), 1), (NotBuiltError("a fault"), 0), (None, 0)])
def test_make_looks_again_where_there_were_no_tools(
    error: NotBuiltError | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GATEWAYFILTER_PURE", raising=False)
    monkeypatch.setattr(hatch_build, "build_in_place", lambda _: {SOURCE: error} if error else {})
    assert hatch_build.main() == code
    assert capsys.readouterr().err.count("\n") == (error is not None)


def test_a_folder_that_may_not_be_written(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "gatewayfilter")

    monkeypatch.setattr(hatch_build, "look_for_tools", lambda: None)
    monkeypatch.setattr(hatch_build, "compile_module", refuse)
    (complaint,) = sentences(build_in_place(checkout))
    assert "Permission denied" in complaint


def test_a_compiler_that_hangs_is_given_up(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = checkout / "cc"
    compiler.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setattr(hatch_build, "TIMEOUT_S", 0.05)
    with pytest.raises(NotBuiltError, match="timed out"):
        hatch_build._run([str(compiler)], checkout, "the C compiler")


@pytest.mark.parametrize("value", ["1", "yes"])
def test_nothing_is_compiled_where_python_is_asked_for(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_PURE", value)
    monkeypatch.setattr(hatch_build, "build_in_place", lambda _: pytest.fail("it compiled"))
    assert hatch_build.main() == 0


class TestLoading:
    """`compiled.load`: a module, or None and why."""

    @pytest.fixture
    def name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.delenv("GATEWAYFILTER_PURE", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        package = tmp_path / f"package_of_{tmp_path.name}"
        package.mkdir()
        (package / "__init__.py").touch()
        return f"{package.name}._twin"

    def built(self, tmp_path: Path, name: str, suffix: str) -> Path:
        return tmp_path / (name.replace(".", "/") + suffix)

    def test_what_is_there_is_loaded(self, name: str, tmp_path: Path) -> None:
        self.built(tmp_path, name, ".py").write_text("answer = 42\n", encoding="utf-8")
        module = compiled.load(name)
        assert module is not None
        assert (compiled.why_not(name), module.answer) == ("", 42)

    @pytest.mark.parametrize("value", ["1", "true"])
    def test_the_environment_forbids_it(self, value: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.built(tmp_path, name, ".py").touch()
        monkeypatch.setenv("GATEWAYFILTER_PURE", value)
        assert compiled.load(name) is None
        assert compiled.why_not(name) == "GATEWAYFILTER_PURE is set"
        monkeypatch.setenv("GATEWAYFILTER_PURE", "0")
        assert compiled.load(name) is not None

    def test_what_is_not_built(self, name: str) -> None:
        assert (compiled.load(name), compiled.why_not(name)) == (None, "not built")

    def test_what_no_linker_takes(self, name: str, tmp_path: Path) -> None:
        self.built(tmp_path, name, str(Path(module_file(Path("x.pyx"))).name[1:])).write_bytes(b"\x7fELF no more")
        assert compiled.load(name) is None
        assert compiled.why_not(name).startswith("not loadable: ")

    def test_what_is_older_than_its_source(self, name: str, tmp_path: Path) -> None:
        built = self.built(tmp_path, name, ".py")
        built.touch()
        source = self.built(tmp_path, name, ".pyx")
        source.touch()
        os.utime(source, (built.stat().st_mtime + 5, built.stat().st_mtime + 5))
        assert (compiled.load(name), compiled.why_not(name)) == (None, "older than its source")


@pytest.mark.slow
@pytest.mark.timeout(600)  # on a busy machine
@pytest.mark.parametrize("pure", ["", "1"])
@pytest.mark.usefixtures("needs_compiler")
def test_wheels(pure: str, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyc")
    for name in ("gatewayfilter", "addons", "lists"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    environ = {**os.environ, "GATEWAYFILTER_PURE": pure, "CFLAGS": "-O0"}  # what is in the wheel does not depend on it
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=tmp_path, env=environ, check=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if Path(name).suffix in {".so", ".pyx"}}
    assert names == (set() if pure else {str(source.parent / module_file(source)) for source in sources(ROOT)})
    assert wheel.name.endswith("-py3-none-any.whl") is bool(pure)
    assert not list((tmp_path / "gatewayfilter").rglob("*.so"))


@pytest.mark.parametrize("variable", ["CC", "CFLAGS", "LDFLAGS"])
def test_an_environment_that_cannot_be_read_ends_no_install(
    variable: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hatch_build, "_run", lambda *_: None)
    monkeypatch.setattr(hatch_build, "look_for_tools", hatch_build._compiler)
    monkeypatch.setenv(variable, "'")
    assert str(build_in_place(checkout)[SOURCE]).startswith(f"{variable} cannot be read")


def test_blanks_name_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", " ")
    assert hatch_build._compiler()


def test_a_module_that_fails_while_it_is_loaded_is_not_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_another_version.py").write_text("import re\nre.NO_LONGER_THERE\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("GATEWAYFILTER_PURE", raising=False)
    assert "NO_LONGER_THERE" in compiled.why_not("of_another_version")
    assert compiled.load("of_another_version") is None
