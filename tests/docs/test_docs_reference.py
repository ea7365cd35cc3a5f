"""Reference pages against the code: reasons, counters, facts of the status files, the architecture's names, deploy/."""

import ast
import re
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest

from gatewayfilter.cli.operate.gateway_commands import up as gateway_up
from gatewayfilter.config import Settings, known_keys
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.model import CERTAINTY_LEVELS, Action, CertaintyLevel, Reason
from gatewayfilter.proxy.pages.translations import CHINESE, ENGLISH
from gatewayfilter.store.sql.schema import METADATA
from gatewayfilter.telemetry import METRICS, StatusFile
from gatewayfilter.wiring.proxy import assemble_components
from tests.case_tables import all_cases
from tests.docs.markdown_pages import PAGES, ROOT

PACKAGE = ROOT / "gatewayfilter"
ARCHITECTURE = PAGES["ARCHITECTURE.md"]
REASONS = PAGES["docs/reasons.md"]
METRICS_PAGE = PAGES["docs/metrics.md"]
UNIT = ROOT / "deploy" / "systemd" / "gatewayfilter.service"
GATEWAY_UNIT = ROOT / "deploy" / "systemd" / "gatewayfilter-gateway.service"


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level."""
    level = heading.split(" ", 1)[0]
    return text.split(f"\n{heading}\n", 1)[1].split(f"\n{level} ", 1)[0]


@all_cases("reason", Reason)
def test_every_reason_has_its_row_and_section(reason: Reason) -> None:
    assert [f"[`{reason}`](#{reason})"] in [row[:1] for row in rows(REASONS.prose)]
    assert len(section(REASONS.text, f"## `{reason}`")) > 100


def test_no_section_is_about_a_reason_that_is_gone() -> None:
    assert re.findall(r"^## `(.+)`$", REASONS.text, re.MULTILINE) == [
        row[0].strip("[]`").partition("`")[0] for row in _reason_rows()
    ]
    assert {row[0].partition("(#")[2].rstrip(")") for row in _reason_rows()} == set(Reason)


def _reason_rows() -> list[list[str]]:
    return [row for row in rows(REASONS.prose) if row[0].startswith("[`")]


def test_reasons_that_block_have_a_sentence_on_the_block_page() -> None:
    blocking = {Reason(row[0].partition("(#")[2].rstrip(")")) for row in _reason_rows() if Action.BLOCK in row[1]}
    assert set(ENGLISH.why) == set(CHINESE.why) == blocking


@all_cases("name", METRICS)
def test_every_counter_has_its_row(name: str) -> None:
    assert [f"`{name}`", METRICS[name]] in [row[:2] for row in rows(METRICS_PAGE.prose)]


def test_no_row_is_about_a_counter_that_is_gone() -> None:
    counters = section(METRICS_PAGE.text, "## Counters")
    assert sorted(row[0].strip("`") for row in rows(counters) if row[0].startswith("`")) == sorted(METRICS)


def test_the_counters_of_the_learner_are_under_its_heading() -> None:
    learner = section(METRICS_PAGE.text, "### Of the learner")
    named = {row[0].strip("`") for row in rows(learner)} & set(METRICS)
    counted = {
        node.args[0].value
        for room in ("crawl", "learn", "notify", "processes", "scaleout")
        for path in (PACKAGE / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add"
        if node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value in METRICS
    }
    assert counted <= named
    assert {name for name in named - counted if not name.startswith("pages_")} == set()


def status_facts(tmp_path: Path) -> set[str]:
    """The facts that the processes write into run/*.json: keywords of their `write` calls, and what these always add."""
    StatusFile(tmp_path, "x").write()
    facts = set(re.findall(r'"(\w+)":', (tmp_path / "x.json").read_text()))
    engine = FilterEngine(Snapshot.from_bytes(SnapshotBuilder().build()))
    facts |= set(assemble_components(Settings(), engine, SnapshotFolder(tmp_path), None).facts())
    for path in ("processes/supervisor.py", "processes/learner.py", "proxy/worker.py"):
        for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "write":
                facts |= {keyword.arg for keyword in node.keywords if keyword.arg}
    return facts


def test_every_fact_of_the_status_files_has_its_row(tmp_path: Path) -> None:
    documented = {row[0].strip("`") for row in rows(section(METRICS_PAGE.text, "## Facts")) if row[0].startswith("`")}
    assert documented == status_facts(tmp_path)


def test_names_stand_in_the_files_that_the_architecture_names() -> None:
    wrong = []
    pairs = re.findall(r"`([A-Za-z_.]+)`\s*\(`(gatewayfilter/[\w/]+\.py)`", ARCHITECTURE.text)
    pairs += [(name, path) for path, name in re.findall(r"\(`(gatewayfilter/[\w/]+\.py)`, `(\w+)`\)", ARCHITECTURE.text)]
    pairs += re.findall(r"`([A-Z]\w+)`,\s+`(gatewayfilter/[\w/]+\.py)`\)", ARCHITECTURE.text)
    named = re.findall(r"^\| `(gatewayfilter/[\w/]+\.py)` \| `(\w+)`(?: and `(\w+)`)?", ARCHITECTURE.text, re.MULTILINE)
    pairs += [(name, path) for path, *names in named for name in names if name]
    for name, path in pairs:
        code = (ROOT / path).read_text(encoding="utf-8")
        wrong += [
            (part, path) for part in name.split(".") if not re.search(rf"\b(?:class|def) {part}\b|^{part}\b", code, re.MULTILINE)
        ]
    assert wrong == []
    assert len(pairs) > 20


def test_the_architecture_names_every_room_table_and_process() -> None:
    rooms = {f"gatewayfilter/{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    modules = {f"gatewayfilter/{path.name}" for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    named = set(ARCHITECTURE.spans)
    assert rooms | modules <= named
    assert set(METADATA.tables) <= named


def test_contributing_shows_the_layers_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(contract["layers"] for contract in project["tool"]["importlinter"]["contracts"] if contract["type"] == "layers")
    drawn = " > ".join(layers)
    assert drawn in PAGES["CONTRIBUTING.md"].text


def test_contributing_says_where_to_change_what_with_paths_that_exist() -> None:
    _, _, table = PAGES["CONTRIBUTING.md"].text.partition("## Where do I change …\n")
    rows = [line.split("|")[1:3] for line in table.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for what, where in rows:
        paths = re.findall(r"`([^`]+)`", where)
        assert paths, what
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_contributing_names_every_make_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)) - {"help", "env"}
    named = {span.split()[1] for span in PAGES["CONTRIBUTING.md"].spans if span.startswith("make ")}
    assert targets <= named
    assert named <= targets | {"help", "env"}


def test_the_unit_starts_what_there_is_with_settings_that_exist() -> None:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNIT, encoding="utf-8")
    service = unit["Service"]
    assert service["ExecStart"].endswith("/bin/gatewayfilter run")
    variables = re.findall(r"^Environment=(\w+)=", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    known = {f"GATEWAYFILTER_{key.upper().replace('.', '__')}" for key, _ in known_keys()} | {"GATEWAYFILTER_CONFIG"}
    assert set(variables) <= known
    # TLS callbacks are made in writable executable memory: with this option the unit would serve no HTTPS.
    assert "MemoryDenyWriteExecute" not in service


def test_the_gateways_unit_has_one_capability_and_an_option_that_exists() -> None:
    text = GATEWAY_UNIT.read_text(encoding="utf-8")
    assert re.findall(r"^CapabilityBoundingSet=(.*)$", text, re.MULTILINE) == ["CAP_NET_ADMIN"]
    (line,) = re.findall(r"^ExecStart=\S+/bin/gatewayfilter gateway up (.*)$", text, re.MULTILINE)
    assert set(line.split()) <= {name for option in gateway_up.params for name in option.opts}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", [UNIT, GATEWAY_UNIT], ids=lambda path: path.stem)
def test_systemd_understands_the_unit(tmp_path: Path, unit: Path) -> None:
    copy = tmp_path / unit.name
    text = unit.read_text(encoding="utf-8")
    copy.write_text(re.sub(r"^ExecStart=.*", f"ExecStart={shutil.which('true')}", text, flags=re.MULTILINE), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60, check=False)
    assert unit.name not in done.stderr  # what else it says is about the machine


@all_cases("level", CERTAINTY_LEVELS)
def test_every_level_of_certainty_is_explained_in_both_languages(level: CertaintyLevel) -> None:
    english = {row[0]: row[1] for row in rows(PAGES["docs/classification.md"].text) if len(row) == 2}
    chinese = {row[0]: row[1:] for row in rows(PAGES["docs/zh/classification.md"].text) if len(row) == 3}
    assert chinese[level.chinese][0] == level.word
    if level.least:
        assert re.findall(r"\d+", english[level.word])[0] == str(round(100 * level.least))
        assert f"{round(100 * level.least)}%" in chinese[level.chinese][1]
