"""Every command has an operation of the REST API that does the same, or docs/api.md names it among those that have none."""

import re
from pathlib import Path
from typing import Final

from fastapi.routing import APIRoute

from gatewayfilter.cli.root import main
from gatewayfilter.web import api
from tests.cli.cli_commands import leaves

DOCUMENT: Final = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
OPERATIONS: Final = {
    "audit list": "list_audit",
    "audit undo": "undo_change",
    "backup": "make_backup",
    "bypass add": "add_link",
    "bypass list": "list_links",
    "bypass revoke": "revoke_link",
    "ca export": "download_certificate",
    "ca renew": "renew_authority",
    "ca show": "get_authority",
    "check": "check_url",
    "classify": "test_words",
    "client add": "add_client",
    "client erase": "erase_client",
    "client list": "list_clients",
    "client remove": "remove_client",
    "client seen": "list_devices",
    "client set": "change_client",
    "config show": "list_settings",
    "crawl": "crawl_page",
    "doctor": "get_doctor",
    "fingerprints stats": "get_fingerprint_counts",
    "fleet follower add": "add_follower",
    "fleet follower list": "get_fleet",
    "fleet follower remove": "remove_follower",
    "fleet status": "get_fleet",
    "group add": "add_group",
    "group list": "list_groups",
    "group remove": "remove_group",
    "group rename": "change_group",
    "group set": "change_group",
    "learn off": "remove_model",
    "learn report": "get_false_blocks",
    "learn status": "get_model",
    "learn train": "train_model",
    "list add": "add_rules",
    "list disable": "switch_rules",
    "list enable": "switch_rules",
    "list export": "export_rules",
    "list groups": "list_rule_groups",
    "list import": "import_rules",
    "list remove": "remove_rule",
    "list search": "search_entries",
    "list show": "list_rules",
    "list stats": "get_entry_counts",
    "log export": "export_log",
    "log purge": "purge_log",
    "log search": "list_decisions",
    "log stats": "get_log_stats",
    "log tail": "watch_events",
    "metrics": "/metrics",
    "notify status": "list_notification_channels",
    "notify test": "send_test_notification",
    "pause": "start_pause",
    "pinned-apps list": "list_pinned_apps",
    "pinned-apps remove": "remove_pinned_app",
    "policy add": "add_policy",
    "policy list": "list_policies",
    "policy remove": "remove_policy",
    "policy set": "change_policy",
    "policy show": "get_policy",
    "proxy-user add": "put_proxy_user",
    "proxy-user list": "list_proxy_users",
    "proxy-user remove": "remove_proxy_user",
    "publish": "publish_lists",
    "queue add": "add_crawl_urls",
    "queue clear": "clear_crawl_queue",
    "queue pause": "pause_crawl_queue",
    "queue proxies": "check_crawl_proxies",
    "queue resume": "resume_crawl_queue",
    "queue retry": "retry_crawl_failures",
    "queue show": "list_crawl_urls",
    "queue stats": "get_crawl_queue",
    "queue tasks": "list_crawl_tasks",
    "quota add": "add_quota",
    "quota list": "list_quotas",
    "quota remove": "remove_quota",
    "quota set": "change_quota",
    "report": "get_report",
    "request approve": "approve_request",
    "request deny": "deny_request",
    "request link": "link_request",
    "request list": "list_requests",
    "restore": "restore_backup",
    "resume": "end_pause",
    "review approve": "decide_reviews",
    "review change": "decide_reviews",
    "review list": "list_reviews",
    "review log": "list_review_steps",
    "review phrases": "list_review_phrases",
    "review redo": "decide_reviews",
    "review reject": "decide_reviews",
    "review show": "get_review",
    "review stats": "get_review_stats",
    "review undo": "decide_reviews",
    "rules add": "put_extraction_rule",
    "rules history": "get_extraction_rule",
    "rules list": "list_extraction_rules",
    "rules remove": "remove_extraction_rule",
    "rules restore": "restore_extraction_rule",
    "rules show": "get_extraction_rule",
    "schedule add": "add_schedule",
    "schedule list": "list_schedules",
    "schedule remove": "remove_schedule",
    "service list": "list_services",
    "service show": "get_service",
    "source add": "add_lists",
    "source catalog": "get_catalogue",
    "source disable": "change_list",
    "source enable": "change_list",
    "source remove": "remove_list",
    "source status": "list_lists",
    "source update": "update_lists",
    "status": "get_status",
    "user add": "create_user",
    "user disable": "update_user",
    "user enable": "update_user",
    "user link": "update_user",
    "user list": "list_users",
    "user passwd": "update_user",
    "user remove": "delete_user",
    "user rename": "update_user",
    "user role": "update_user",
    "user token add": "create_token",
    "user token list": "list_tokens",
    "user token remove": "delete_token",
    "user unlink": "update_user",
    "words add": "add_words",
    "words export": "export_words",
    "words import": "import_words",
    "words remove": "remove_words",
    "words show": "list_words",
    "words test": "test_words",
}
"""Command → operation, or the path of a probe."""
_PROBES: Final = frozenset({"/metrics"})


def without_operation() -> list[str]:
    """Returns the commands that docs/api.md names, those with options or further words left out: they have one in part."""
    section = DOCUMENT.partition("## Which commands have no operation")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = [name for cell in cells if " for " not in cell for name in re.findall(r"`([^`]+)`", cell)]
    return [name for name in named if "--" not in name]


def test_each_command_has_an_operation_or_a_reason() -> None:
    exempt = without_operation()
    groups = tuple(name.removesuffix("…") for name in exempt if name.endswith("…"))
    left = [path for path in leaves(main) if path not in OPERATIONS and path not in exempt and not path.startswith(groups)]
    assert left == []


def test_no_command_stands_here_that_there_is_not() -> None:
    paths = leaves(main)
    gone = [name for name in without_operation() if not any(path.startswith(name.removesuffix("…")) for path in paths)]
    assert gone + [path for path in OPERATIONS if path not in paths] == []


def test_the_operations_are_there() -> None:
    known = {route.operation_id for router in api.routers() for route in router.routes if isinstance(route, APIRoute)}
    assert set(OPERATIONS.values()) - known == _PROBES
