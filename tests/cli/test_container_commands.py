"""The commands and settings of the compose file, the image and the chart: this program has each, and reads it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from gatewayfilter.cli.root import main
from gatewayfilter.config import load

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = YAML(typ="safe").load((DEPLOY / "container" / "compose.yaml").read_text(encoding="utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "gatewayfilter"}
TEMPLATES = {path.name: path.read_text(encoding="utf-8") for path in (DEPLOY / "helm" / "gatewayfilter" / "templates").glob("*")}
VALUES = YAML(typ="safe").load((DEPLOY / "helm" / "gatewayfilter" / "values.yaml").read_text(encoding="utf-8"))
_SETTING = re.compile(r"name: (GATEWAYFILTER_\w+)(?:, value: \"?([^\"}\n]+))?")
_IN_CHART = {"$brokers": "kafka:9092", "$values.topic": "traffic", "$values.output": "decisions", "$values.dead": "dead"}


def chart_commands() -> Iterator[list[str]]:
    """Yields the arguments of the chart's containers, templates filled in."""
    for text in TEMPLATES.values():
        for found in re.findall(r"args: \[(.+)\]", text):
            yield [word.strip(' "') for word in found.split(",")]
        for block in re.findall(r"args:\n((?: +(?:- .+|\{\{.+\}\})\n)+)", text):
            words = re.findall(r"^ +- (.+)$", block, re.MULTILINE)
            yield [re.sub(r"\{\{ (\S+) \}\}", lambda found: _IN_CHART[found[1]], word) for word in words]


COMMANDS = [service.get("command", ["run"]) for service in OURS.values()] + list(chart_commands())


def parse(words: list[str]) -> str:
    """Parses a command line without running it. Returns the command's name."""
    command: click.Command = main
    context, path = None, ""
    while isinstance(command, click.Group):
        context = command.make_context(command.name, words, parent=context)
        name, found, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        command, path = found, f"{path} {name}".strip()
    command.make_context(path, words, parent=context)
    return path


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_is_parsed(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "librdkafka.conf").touch()
    assert parse([word.replace("/etc/kafka", str(tmp_path)) for word in words]) in {"run", "publish", "stream worker"}


def test_the_chart_has_all_its_commands_here() -> None:
    assert sorted(words[0] for words in chart_commands()) == ["publish", "run", "run", "stream"]
    with pytest.raises(click.UsageError):
        parse(["stream", "worker", "--brokers=b:1", "--topic=t", "--no-such-option=1"])


def settings_of_containers() -> Iterator[tuple[str, dict[str, str]]]:
    """Yields what each container sets."""
    image = re.findall(r"(GATEWAYFILTER_\w+)=(\S+)", (DEPLOY / "container" / "Dockerfile").read_text(encoding="utf-8"))
    yield "image", dict(image)
    for name, service in OURS.items():
        set_by: dict[str, Any] = service.get("environment", {})
        yield name, dict(image) | {key: re.sub(r"\$\{\w+:-\}", "secret1", value) for key, value in set_by.items()}
    yield "chart, values", VALUES["settings"]
    for name, text in TEMPLATES.items():
        found = {key: value or _SECRETS[key] for key, value in _SETTING.findall(text)}
        if found:
            yield f"chart, {name}", found


_SECRETS = {
    "GATEWAYFILTER_STORE__URL": "postgresql+psycopg://gatewayfilter:secret1@postgres/gatewayfilter",
    "GATEWAYFILTER_CACHE__URL": "redis://:secret1@redis:6379",
    "GATEWAYFILTER_QUEUE__URL": "redis://:secret1@redis:6379",
}
"""What the secrets of the chart hold."""


@pytest.mark.parametrize(("name", "environment"), [pytest.param(*found, id=found[0]) for found in settings_of_containers()])
def test_each_setting_is_known_and_valid(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    assert environment, name
    load(environ={"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)} | environment)


def test_profiles_depend_on_services_that_there_are() -> None:
    for name, service in COMPOSE["services"].items():
        assert set(service.get("depends_on", {})) <= COMPOSE["services"].keys(), name
        named = {volume.partition(":")[0] for volume in service.get("volumes", ()) if not volume.startswith((".", "/"))}
        assert named <= COMPOSE["volumes"].keys(), name
