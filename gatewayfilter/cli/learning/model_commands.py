"""`gatewayfilter learn`: the statistical second opinion, trained on review decisions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.learning.learn_report import report
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say
from gatewayfilter.cli.ui.page_files import read_bytes
from gatewayfilter.errors import ClassifyError

if TYPE_CHECKING:
    from gatewayfilter.classify import LinearModel
    from gatewayfilter.classify.models.training import Example
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "learn",
    cls=FilterGroup,
    short_help="A statistical model, trained on the pages that you reviewed.",
    examples=("gatewayfilter learn train", "gatewayfilter learn status", "gatewayfilter learn report"),
)
def learn_group() -> None:
    """A statistical model as a second opinion, trained on approved and rejected pages.

    It is used only where the words are not clear, between half and one and a half times a category's limit. Off until trained.
    """


learn_group.add_command(report)


@learn_group.command(
    examples=(
        "gatewayfilter learn train",
        "gatewayfilter review export --examples > decided.jsonl && gatewayfilter learn train --from decided.jsonl",
    ),
    prints_data=True,
    recorded="model.trained",
)
@click.option(
    "--from",
    "files",
    multiple=True,
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help='JSON lines {"text": …, "label": category or ""} in place of the decided reviews; may be given again.',
)
@click.pass_obj
def train(invocation: Invocation, *, files: tuple[str, ...]) -> int:
    """Train on the decided reviews, measure by cross-validation, and put the model to use.

    Exit code 1, and the old model stays, when the new one is little better than chance.
    """
    from gatewayfilter.learn.own_model import USEFUL_AUC
    from gatewayfilter.use_cases.operation.second_opinion import summary, trained

    examples = [example for file in files for example in _read(file)] if files else None
    with invocation.store() as store:
        model, used = trained(invocation.settings(), store, examples, time.time())
    if invocation.json:
        print_json(summary(model, used=used))
    else:
        _show(model)
        if used:
            say("It is used from now on, where the words are not clear. A running filter applies it within a second.")
        else:
            say(f"gatewayfilter: that is little better than chance (at least {USEFUL_AUC} is needed): it is not used", err=True)
    return int(not used)


@learn_group.command(examples=("gatewayfilter learn status",), prints_data=True)
@click.pass_obj
def status(invocation: Invocation) -> int:
    """Show what the model was trained on and how well it does. Exit code 1 when there is none."""
    from gatewayfilter.classify import LinearModel
    from gatewayfilter.use_cases.operation.second_opinion import own_model, summary

    model = LinearModel.load(own_model(invocation.settings()).path)
    if invocation.json:
        print_json(summary(model, used=True))
    elif model:
        _show(model)
    else:
        say("There is no second opinion: nothing was trained.")
    return int(model is None)


@learn_group.command(examples=("gatewayfilter learn off",), prints_data=True, recorded="model.off")
@click.pass_obj
def off(invocation: Invocation) -> int:
    """Remove the model: pages are judged by words alone. Exit code 1 when there was none.

    None is trained by itself afterwards, until `learn train` is used again.
    """
    from gatewayfilter.use_cases.operation.second_opinion import remove

    removed = remove(invocation.settings())
    if invocation.json:
        print_json({"removed": removed})
    else:
        say("The second opinion is off." if removed else "There was no second opinion.")
    return int(not removed)


def _read(file: str) -> list[Example]:
    from gatewayfilter.classify.models.training import read_examples

    try:
        return read_examples(read_bytes(file).decode().splitlines(), file)
    except UnicodeDecodeError as error:
        raise ClassifyError(f"{file} is not UTF-8 text: byte {error.start}") from error


def _show(model: LinearModel) -> None:
    rows = [
        ("trained", show_day(model.trained_at)),
        ("on", f"{counted(model.examples, 'text')}, {model.harmful:,} of them harmful"),
        ("area under the curve", f"{model.auc:.3f} by cross-validation (0.5 is chance, 1 is perfect)"),
    ]
    print_table(("", ""), rows)
