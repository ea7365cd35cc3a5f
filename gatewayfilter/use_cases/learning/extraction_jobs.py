"""Work on extraction rules for a child process: arguments and results are plain values, so that the parent loads no parser.

Each function takes the settings first, and raises what its use case in `extraction_rules` does.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.rule_form import FieldRow, LinkRow, RuleForm, form_of, url_expressions
from gatewayfilter.extraction.rules import parse_rule
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.learning import extraction_rules as use_case


def list_rules(settings: Settings) -> list[dict[str, Any]]:
    """Returns the rules in use, in the order in which they are tried."""
    return [asdict(row) for row in use_case.list_rules(settings)]


def show_rule(settings: Settings, name: str, version: int = 0) -> dict[str, Any]:
    """Returns a rule with its text, as the rows of a form, and with its versions."""
    found = use_case.show_rule(settings, name, version)
    return asdict(found.summary) | {
        "source": found.rule.source,
        "form": asdict(form_of(found.rule)),
        "current": found.current,
        "history": [asdict(state) for state in found.history],
    }


def save_rule(settings: Settings, name: str, source: str, based_on: int | None) -> dict[str, Any]:
    """Puts a rule to use. Returns its change as `name`, `before` and `after`."""
    return _change(use_case.save_rule(settings, use_case.checked_rule(name, source), based_on))


def restore_rule(settings: Settings, name: str, version: int, based_on: int | None) -> dict[str, Any]:
    """Puts an earlier version to use again. Returns its change."""
    return _change(use_case.restore_rule(settings, name, version, based_on))


def remove_rule(settings: Settings, name: str, based_on: int | None) -> dict[str, Any]:
    """Takes a rule out of use. Returns its change."""
    return _change(use_case.remove_rule(settings, name, based_on))


def take_back(settings: Settings, changed: Sequence[tuple[str, int, int]]) -> None:
    """Takes changes of rules back."""
    use_case.take_back(settings, changed)


def form_of_source(settings: Settings, source: str) -> dict[str, Any]:
    """Returns a rule as the rows of a form.

    Raises:
        ClassifyError: it cannot be used.
    """
    del settings
    return asdict(form_of(parse_rule(source, "rule")))


def source_of_form(settings: Settings, form: dict[str, Any]) -> str:
    """Returns the rows of a form as TOML.

    Raises:
        ClassifyError: two fields have one name.
    """
    del settings
    return read_form(form).source()


def suggested_urls(settings: Settings, url: str) -> list[str]:
    """Returns expressions for the site, the folder and the page of an address, the widest first; none for what is no address."""
    del settings
    try:
        return list(url_expressions(parse_loose_url(url).text))
    except (ClassifyError, ValueError):
        return []


def read_form(form: dict[str, Any]) -> RuleForm:
    """Returns a form from plain values."""
    return RuleForm(
        form["urls"],
        form["comment"],
        tuple(FieldRow(**row) for row in form["fields"]),
        tuple(LinkRow(**row) for row in form["links"]),
    )


def _change(change: use_case.RuleChange) -> dict[str, Any]:
    return {"name": change.name, "before": change.before, "after": change.after}
