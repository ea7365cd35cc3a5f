"""Conditions on log records as options, and as the words of a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from gatewayfilter.cli.ui.dates import past_option, read_moment
from gatewayfilter.errors import MissingError, PolicyError
from gatewayfilter.model import LogQuery, Reason
from gatewayfilter.renamed_codes import current_code
from gatewayfilter.urls import canonical_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gatewayfilter.use_cases.traffic.log_clients import LogClients

_ACTIONS: Final = {"blocked": "block", "allowed": "allow"}
_SENTENCE: Final = "write for example: blocked ads for kim-tablet on example.com since today"

_OPTIONS: Final = (
    click.option("--since", metavar="TIME", callback=past_option, help="From then on: today, yesterday, 7d, 12h, 2030-01-31."),
    click.option("--until", metavar="TIME", callback=past_option, help="Before then, as --since."),
    click.option("--client", metavar="NAME|IP", help="Of this client: its name, an address, or user:NAME."),
    click.option("--group", metavar="NAME", help="Of the clients of this group."),
    click.option("--user", metavar="NAME", help="Of this user of the proxy."),
    click.option("--action", type=click.Choice(["allow", "block"]), help="Only these."),
    click.option("--category", metavar="NAME", default="", help="Of this category."),
    click.option("--reason", metavar="CODE", default="", help="With this reason, such as adblock."),
    click.option("--list", "source_list", metavar="NAME", default="", help="Decided by this list."),
    click.option("--host", metavar="HOST", default="", help="Of this host and those below it."),
)


def filter_options[Command: Callable[..., object]](command: Command) -> Command:
    """Adds the options that `query_of` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def query_of(  # noqa: PLR0913  one for each option
    clients: LogClients,
    *,
    text: str = "",
    since: float | None = None,
    until: float | None = None,
    client: str | None = None,
    group: str | None = None,
    user: str | None = None,
    action: str | None = None,
    category: str = "",
    reason: str = "",
    source_list: str = "",
    host: str = "",
) -> LogQuery:
    """Returns the query for these options.

    Raises:
        click.BadParameter: a client, group, reason or host is none.
    """
    if reason and current_code(reason) not in set(Reason):
        raise click.BadParameter(f"{reason!r} is no reason; docs/reasons.md lists them")
    return LogQuery(
        text,
        since,
        until,
        clients_option(clients, client, group, user),
        action or "",
        current_code(reason),
        category,
        source_list,
        _host(host) if host else "",
    )


def clients_option(clients: LogClients, client: str | None, group: str | None, user: str | None) -> frozenset[str] | None:
    """Returns what is logged of the chosen clients, `None` for everybody.

    Raises:
        MissingError: there is no such client or group.
        click.BadParameter: a text is neither a name nor an address.
    """
    found: frozenset[str] | None = None
    try:
        for text, find in ((client, clients.named), (group, clients.group), (user, clients.user)):
            if text:
                found = find(text) if found is None else found & find(text)
    except MissingError:
        raise
    except PolicyError as error:
        raise click.BadParameter(str(error)) from error
    return found


def _host(text: str) -> str:
    try:
        return canonical_host(text.removeprefix("*.").removeprefix("."))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no host") from error


def words_to_options(words: Sequence[str]) -> dict[str, str]:
    """Reads the words of a sentence such as `blocked ads for kim on example.com since today` as options.

    Raises:
        click.BadParameter: a word has no meaning where it stands.
    """
    found: dict[str, str] = {}
    names = {"for": "client", "on": "host", "at": "host", "since": "since", "until": "until", "by": "source_list",
             "because": "reason", "in": "group", "containing": "text", "user": "user"}  # fmt: skip
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _ACTIONS:
            _set(found, "action", _ACTIONS[word])
        elif word in names:
            if not rest:
                raise click.BadParameter(f"something is missing after {word!r}; {_SENTENCE}")
            _set(found, names[word], rest.pop(0))
        elif word in {"requests", "decisions", "of", "and", "to", "the", "group", "client"}:
            continue
        elif word.isidentifier() or word.replace("-", "").isalnum():
            _set(found, "category", word)
        else:
            raise click.BadParameter(f"{word!r} is not understood; {_SENTENCE}")
    return found


def _set(found: dict[str, str], key: str, value: str) -> None:
    if key in found:
        raise click.BadParameter(f"two words for one condition: {found[key]!r} and {value!r}; {_SENTENCE}")
    found[key] = value


def merged(options: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Returns the options with what a sentence adds to them.

    Raises:
        click.BadParameter: the sentence is not understood, or contradicts an option.
    """
    for key, text in words_to_options(words).items():
        if options.get(key):
            raise click.BadParameter(f"{text!r} and --{key.replace('_', '-')} are two conditions for one thing")
        options[key] = read_moment(text, back=True) if key in {"since", "until"} else text
    return options
