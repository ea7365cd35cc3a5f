"""What Markdown pages say against what there is: links, anchors, files, commands, options, settings, TOML."""

import re
from pathlib import Path

import click
import pytest

from gatewayfilter.classify import Lexicon, read_rule_file
from gatewayfilter.cli.root import ALIASES, main
from gatewayfilter.config import ENV_PREFIX, known_keys, load
from gatewayfilter.errors import ConfigError
from gatewayfilter.settings.renamed import RENAMED_SETTINGS
from gatewayfilter.sources import load_services
from tests.case_tables import all_cases
from tests.docs.markdown_pages import PAGES, ROOT, MarkdownPage, read_page

KNOWN_KEYS = dict(known_keys())
FOLDERS = "addons|deploy|docs|gatewayfilter|lists|requirements|scripts|tests"
PATH = re.compile(rf"(?:{FOLDERS})/[\w./*-]*|\.ci/run|[A-Z]+\.md|pyproject\.toml|Makefile")
COMMAND = re.compile(r"(?<![\w./-])(?:\.venv/bin/)?gatewayfilter((?: +[a-z][a-z-]*)+)([^|;<>&#(]*)")
SECTIONS = sorted({key.partition(".")[0] for key in KNOWN_KEYS if "." in key})
SETTING = re.compile(rf"(?:{'|'.join(SECTIONS)})\.[a-z_]+\b(?:\.[a-z_]+\b)?")
VARIABLE = re.compile(rf"\b{ENV_PREFIX}[A-Z_]+\b")
NO_SETTINGS = {
    "GATEWAYFILTER_CONFIG",
    "GATEWAYFILTER_BACKUP_PASSPHRASE",
    "GATEWAYFILTER_PYTHON",
    "GATEWAYFILTER_ADBLOCK_SCANNER",
    "GATEWAYFILTER_PURE",
    "GATEWAYFILTER_TEST_DATA",
    "GATEWAYFILTER_TEST_SCREENSHOTS",
    "GATEWAYFILTER_TEST_SEED",
    "GATEWAYFILTER_SECTION__KEY",
    "GATEWAYFILTER_COMPLETE",
}

ABOUT_OLD_NAMES = {"CHANGELOG.md", "configuration.md"}
"""Pages that may name settings as earlier releases called them."""

every_page = all_cases("page", PAGES.values())


def broken_links(page: MarkdownPage) -> list[str]:
    broken = []
    for link in page.links:
        target, _, anchor = link.partition("#")
        path = (page.path.parent / target).resolve()
        if not path.exists():
            broken.append(link)
        elif anchor and (path.suffix == ".md" or not target):
            broken += [link] if anchor not in (read_page(path) if target else page).anchors else []
    return broken


def missing_paths(page: MarkdownPage) -> list[str]:
    named = [span for span in page.spans if PATH.fullmatch(span) and not span.startswith("lists/words/<")]
    return [span for span in named if not any(ROOT.glob(span.rstrip("/")))]


def wrong_commands(page: MarkdownPage) -> list[str]:
    wrong = []
    for line in page.code:
        for match in COMMAND.finditer(line):
            command, why = _walk(match[1].split())
            why = why or _unknown_option(command, match[2])
            if why and (page.path.name != "CHANGELOG.md" or not set(match[1].split()) & set(ALIASES)):
                wrong.append(f"{match[0].strip()}: {why}")
    return wrong


def _walk(words: list[str]) -> tuple[click.Command, str]:
    command: click.Command = main
    for word in words:
        if not isinstance(command, click.Group):
            return command, ""  # the rest are arguments
        found = command.get_command(click.Context(command), word)
        if found is None:
            return command, f"{word!r} is no command"
        command = found
    return command, ""


def _unknown_option(command: click.Command, rest: str) -> str:
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    unknown = [word for word in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest) if word not in known]
    return f"{unknown[0]!r} is no option" if unknown else ""


def unknown_settings(page: MarkdownPage) -> list[str]:
    unknown = [
        span
        for span in page.spans
        if (match := SETTING.match(span)) and not span.endswith((".py", ".json")) and match[0] not in KNOWN_KEYS
    ]
    names = {name for name in VARIABLE.findall(page.text) if name not in NO_SETTINGS}
    unknown += [name for name in names if name.removeprefix(ENV_PREFIX).lower().replace("__", ".") not in KNOWN_KEYS]
    return [name for name in unknown if name not in RENAMED_SETTINGS or page.path.name not in ABOUT_OLD_NAMES]


def check_toml(content: str, folder: Path) -> None:
    file = folder / "page.toml"
    file.write_text(content, encoding="utf-8")
    if content.lstrip().startswith("category ="):
        Lexicon.load([folder])
    elif content.lstrip().startswith("urls ="):
        read_rule_file(file)
    elif "\nname_zh = " in content:
        load_services(file)
    else:
        load(file=file, environ={})


@every_page
def test_links_lead_somewhere(page: MarkdownPage) -> None:
    assert broken_links(page) == []


@every_page
def test_files_that_are_named_exist(page: MarkdownPage) -> None:
    assert missing_paths(page) == []


@every_page
def test_commands_and_their_options_exist(page: MarkdownPage) -> None:
    assert wrong_commands(page) == []


@every_page
def test_settings_that_are_named_exist(page: MarkdownPage) -> None:
    assert unknown_settings(page) == []


@pytest.mark.parametrize(
    "content",
    [pytest.param(content, id=page.name) for page in PAGES.values() for language, content in page.fences if language == "toml"],
)
def test_toml_is_understood(content: str, tmp_path: Path) -> None:
    check_toml(content, tmp_path)


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[str] = set()
    waiting = ["README.md"]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in PAGES:
            continue
        reached.add(name)
        page = PAGES[name]
        targets = [(page.path.parent / link.partition("#")[0]).resolve() for link in page.links]
        waiting += [target.relative_to(ROOT).as_posix() for target in targets if target.is_relative_to(ROOT)]
    assert sorted(set(PAGES) - reached) == []


@pytest.mark.parametrize("name", ["README.md", "deployment.md"])
def test_the_chinese_page_shows_commands_that_the_english_one_shows(name: str) -> None:
    def commands(page: MarkdownPage) -> set[str]:
        return {line.partition(" #")[0].strip() for _, content in page.fences for line in content.splitlines()} - {""}

    english = commands(PAGES[name if name == "README.md" else f"docs/{name}"])
    chinese = commands(PAGES[f"docs/zh/{name}"])
    assert sorted(chinese - english) == []
    assert name != "README.md" or english == chinese


@all_cases(
    ("check", "text", "expected"),
    [
        (broken_links, "[a](none.md) [b](markdown_pages.py) [c](#here)\n# Here\n", ["none.md"]),
        (broken_links, "[c](#there)\n# Here\n", ["#there"]),
        (
            missing_paths,
            "`gatewayfilter/urls.py` `gatewayfilter/none.py` `docs/` `NONE.md`",
            ["gatewayfilter/none.py", "NONE.md"],
        ),
        (wrong_commands, "`gatewayfilter lsit add x`", ["gatewayfilter lsit add x: 'lsit' is no command"]),
        (wrong_commands, "```sh\ngatewayfilter list ad x  # c\n```\n", ["gatewayfilter list ad x: 'ad' is no command"]),
        (wrong_commands, "`gatewayfilter log tail --none | cat`", ["gatewayfilter log tail --none: '--none' is no option"]),
        (wrong_commands, "`gatewayfilter check URL` `systemctl start gatewayfilter` `gatewayfilter log tail -f`", []),
        (unknown_settings, "`proxy.on_error` `proxy.onerror` GATEWAYFILTER_LOG__LEVEL", ["proxy.onerror"]),
        (unknown_settings, "GATEWAYFILTER_LOG__LEVLE", ["GATEWAYFILTER_LOG__LEVLE"]),
    ],
)
def test_the_checks_find_what_is_wrong(check: object, text: str, expected: list[str]) -> None:
    assert callable(check)
    assert check(MarkdownPage(Path(__file__), text)) == expected


def test_the_toml_check_finds_what_is_wrong(tmp_path: Path) -> None:
    check_toml("[proxy]\nworkers = 2\n", tmp_path)
    with pytest.raises(ConfigError, match=r"did you mean 'proxy\.workers'"):
        check_toml("[proxy]\nwrokers = 2\n", tmp_path)
