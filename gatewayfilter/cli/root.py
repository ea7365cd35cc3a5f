"""The `gatewayfilter` command: its sub-commands, and the exit code of each result of a command.

====  ===============================================================================
code  meaning
====  ===============================================================================
0     done
1     a negative answer: blocked, harmful, something named that is not there, something of many failed
2     bad input: one sentence on standard error
3     a fault of the program: one sentence; the traceback with `log.level` `debug`
130   interrupted
141   the reader of the output went away
====  ===============================================================================
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gatewayfilter import __version__
from gatewayfilter.cli.ui.command import FilterGroup, LateCommand
from gatewayfilter.errors import GatewayFilterError, MissingError
from gatewayfilter.program_name import as_callable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NEGATIVE = 1
BAD_INPUT = 2
FAULT = 3
INTERRUPTED = 130
READER_GONE = 141

_FILTER = "Filter"
_LISTS = "Lists"
_CLIENTS = "Clients"
_LEARN = "Learn"
_OPERATE = "Operate"

COMMANDS = {
    "run": LateCommand("filter.run_command:run", "Start the filter: proxy workers and learner.", _FILTER),
    "check": LateCommand("filter.check_command:check", "Show the verdict on a URL, and why.", _FILTER),
    "match": LateCommand("filter.match_command:match", "Decide many requests: JSON lines, logs, Parquet.", _FILTER),
    "list": LateCommand("lists.list_commands:list_group", "Your own entries: they outrank every list.", _LISTS),
    "source": LateCommand("sources.source_commands:source_group", "Subscriptions to lists of others.", _LISTS),
    "publish": LateCommand("sources.publish_command:publish", "Build the snapshot of all lists now and swap it in.", _LISTS),
    "client": LateCommand("policies.client_commands:client_group", "Devices and persons that policies apply to.", _CLIENTS),
    "group": LateCommand("policies.group_commands:group_group", "Groups of clients, each with a policy.", _CLIENTS),
    "policy": LateCommand("policies.policy_commands:policy_group", "What is blocked for whom.", _CLIENTS),
    "schedule": LateCommand("policies.schedule_commands:schedule_group", "What is blocked at which time.", _CLIENTS),
    "service": LateCommand("policies.service_commands:service_group", "Services that policies block by name.", _CLIENTS),
    "quota": LateCommand("policies.quota_commands:quota_group", "Minutes a day for services and categories.", _CLIENTS),
    "pause": LateCommand("policies.pause_commands:pause", "Stop filtering for a while.", _CLIENTS),
    "resume": LateCommand("policies.pause_commands:resume", "End a pause.", _CLIENTS),
    "request": LateCommand("requests.request_commands:request_group", "Requests of users to unblock pages.", _CLIENTS),
    "bypass": LateCommand("requests.bypass_commands:bypass_group", "Signed links that unblock a page for a while.", _CLIENTS),
    "notify": LateCommand("requests.notify_commands:notify_group", "Messages to you about requests and faults.", _CLIENTS),
    "crawl": LateCommand("learning.crawl_command:crawl", "Fetch, judge and learn pages now.", _LEARN),
    "crawler": LateCommand("learning.crawler_commands:crawler_group", "The crawler's modules apart, over Kafka.", _LEARN),
    "queue": LateCommand("learning.queue_commands:queue_group", "The queue of pages to fetch.", _LEARN),
    "classify": LateCommand("learning.classify_command:classify", "Judge a page or text without learning it.", _LEARN),
    "words": LateCommand("learning.words_commands:words_group", "The sensitive words that pages are judged by.", _LEARN),
    "rules": LateCommand(
        "learning.extraction_rule_commands:rules_group", "Where fields and links stand on the pages of a site.", _LEARN
    ),
    "learn": LateCommand(
        "learning.model_commands:learn_group", "A statistical model, trained on the pages that you reviewed.", _LEARN
    ),
    "review": LateCommand("review.review_commands:review_group", "Confirm or undo what the classifier judged harmful.", _LEARN),
    "fingerprints": LateCommand(
        "learning.fingerprint_commands:fingerprints_group", "Content that was judged, known again.", _LEARN
    ),
    "log": LateCommand("log.log_commands:log_group", "The log of decisions.", _OPERATE),
    "stream": LateCommand(
        "stream.stream_commands:stream_group", "Decide recorded traffic: a Kafka consumer group, or Spark.", _OPERATE
    ),
    "report": LateCommand("log.report_command:report", "What was blocked, for whom and why.", _OPERATE),
    "gateway": LateCommand("operate.gateway_commands:gateway_group", "This machine as the LAN's gateway.", _OPERATE),
    "setup": LateCommand("operate.setup_command:setup", "Choose lists and settings for a home, a school or an office.", _OPERATE),
    "status": LateCommand("operate.status_command:status", "Show the state of the filter on one screen.", _OPERATE),
    "doctor": LateCommand("operate.doctor_command:doctor", "Check the installation, and show how to fix each fault.", _OPERATE),
    "pinned-apps": LateCommand(
        "operate.pinned_app_commands:pinned_apps_group", "Apps that accept no certificate of the filter's.", _OPERATE
    ),
    "proxy-user": LateCommand("operate.proxy_user_commands:proxy_user_group", "The users of the proxy.", _OPERATE),
    "user": LateCommand("access.user_commands:user_group", "Accounts of the dashboard.", _OPERATE),
    "audit": LateCommand("access.audit_commands:audit_group", "Who changed what, and its undo.", _OPERATE),
    "ca": LateCommand("operate.ca_commands:ca_group", "The certificate authority for HTTPS.", _OPERATE),
    "backup": LateCommand("operate.backup_commands:backup", "Write everything into one file, while the filter runs.", _OPERATE),
    "restore": LateCommand("operate.backup_commands:restore", "Restore everything from a backup.", _OPERATE),
    "helper": LateCommand("helper.helper_commands:helper_group", "Decide for other proxies, such as squid.", _OPERATE),
    "metrics": LateCommand("operate.metrics_command:metrics", "Print all counters for Prometheus.", _OPERATE),
    "fleet": LateCommand("operate.fleet_commands:fleet_group", "A publisher of lists, and gateways that follow it.", _OPERATE),
    "config": LateCommand("operate.config_commands:config_group", "The settings.", _OPERATE),
    "db": LateCommand("operate.db_commands:db_group", "The database.", _OPERATE),
}
"""All commands, in the order of the help; tests hold the summaries against the commands' own."""

ALIASES = {"pass-through": "pinned-apps"}
"""Commands of earlier releases by the name that they had."""


class _Root(FilterGroup):
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002  click's signature
        **extra: Any,
    ) -> NoReturn:
        """Runs a command line and exits the process with its code."""
        del standalone_mode
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        _keep_current_folder_out()
        _calculate_in_one_thread()
        code = run_to_exit_code(lambda: super(_Root, self).main(args, prog_name, complete_var, standalone_mode=False, **extra))
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command and sees to it that its output has left."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            return READER_GONE
        return result


def _calculate_in_one_thread() -> None:
    """Keeps numpy's BLAS from starting a thread a core in each process, which spin for 50 ms: sums here are short."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _keep_current_folder_out() -> None:
    """Keeps child Python processes from importing from the current folder, unless this process does so itself.

    They begin with `-c` or `-m`, for which Python puts that folder first: who can write to it could run code in the filter.
    """
    with contextlib.suppress(OSError):  # the current folder was deleted
        if not {"", str(Path.cwd())}.intersection(sys.path):
            os.environ["PYTHONSAFEPATH"] = "1"


def run_to_exit_code(command: Callable[[], object]) -> int:
    """Runs a command to its end, prints an error as one sentence, and returns the exit code."""
    try:
        result = command()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return BAD_INPUT
    except click.ClickException as error:
        return _complain(_usage_sentence(error), BAD_INPUT)
    except MissingError as error:
        return _complain(str(error), NEGATIVE)
    except GatewayFilterError as error:
        return _complain(str(error), BAD_INPUT)
    except click.Abort:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the outermost loop: every fault ends in one sentence
        return _fault(error)
    return result if isinstance(result, int) else 0


_CLICK_NUMBERS = re.compile(r"is not a valid integer(?: range)?$")


def _usage_sentence(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    message = _CLICK_NUMBERS.sub("is no whole number", message)
    message = f"{message[:1].lower()}{message[1:]}"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message} (see '{error.ctx.command_path} --help')"
    return message


def _fault(error: Exception) -> int:
    if os.environ.get("GATEWAYFILTER_LOG__LEVEL", "").lower() == "debug":
        traceback.print_exception(error)
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return _complain(f"a fault of the program, {what}; GATEWAYFILTER_LOG__LEVEL=debug shows where", FAULT)


def _complain(sentence: str, code: int) -> int:
    click.echo(f"gatewayfilter: {as_callable(' '.join(sentence.split()))}", err=True)
    return code


def _drop_output() -> None:
    """Points standard output at nothing, so that the interpreter's own flush at exit stays quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@click.group(
    "gatewayfilter",
    cls=_Root,
    late=COMMANDS,
    aliases=ALIASES,
    examples=(
        "gatewayfilter run",
        "gatewayfilter check https://example.com/",
        "gatewayfilter source add easylist",
        "gatewayfilter list add --block ads.example.com",
    ),
    epilog='Shell completion: eval "$(_GATEWAYFILTER_COMPLETE=bash_source gatewayfilter)" (zsh_source, fish_source).',
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="gatewayfilter", message="%(prog)s %(version)s")
def main() -> None:
    """An HTTP and HTTPS filter for a network's way out that explains each decision and learns unknown pages."""
