"""Sentences of the program in the language of the page."""

import ast
from pathlib import Path

import pytest

import gatewayfilter
from gatewayfilter.web.rendering.catalogs import translations
from gatewayfilter.web.rendering.message_texts import MessageTexts
from tests.web.web_fakes import VIEWER, dashboard

CHINESE = {"accept-language": "zh-CN"}


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("robots.txt does not allow it", "robots.txt 不允许"),
        ("answered with status 503", "应答状态码为 503"),
        ("http://a/ may not be crawled: port 25 may not be crawled", "http://a/ 不能抓取\uff1a不允许抓取端口 25"),
        ("there is no rule 7", "没有规则 7"),
        ("there is no rule 7 any more", "规则 7 已不存在"),
        ("query.limit: Input should be less than or equal to 500", "query.limit: 不能大于 500"),
        ("body.a: Field required; body.b: String should have at most 9 characters", "body.a: 必填; body.b: 最多 9 个字符"),
        ("path.x: Input should be 'a' or 'b'", "path.x: 应为以下之一\uff1a'a' or 'b'"),
        ("body.a: Field required; something else", "body.a: Field required; something else"),
        ("the rule is not valid TOML: Expected '='", "规则不是有效的 TOML\uff1aExpected '='"),
        ("fields.title: the regular expression has an unmatched '('", "fields.title: 正则表达式中有不配对的 '('"),
        ("unknown key 'csss' in fields.t; did you mean 'css'?", "fields.t 中有未知的键 'csss'\uff1b您是不是想写 'css'\uff1f"),
        (
            "a.txt holds no usable entry; line 2, 'x y': neither an object nor a text",
            "a.txt 中没有可用的条目\uff1b第 2 行 'x y'\uff1a既不是对象也不是文本",
        ),
        (
            "cannot use https://a.example/l: it is a web page, not a list",
            "无法使用 https://a.example/l\uff1a这是网页\uff0c不是名单",
        ),
        ("task 7 was blocked by ann already", "任务 7 已由 ann 处理\uff08blocked\uff09"),
        ("cannot read /srv/my lists/a: Permission denied", "无法读取 /srv/my lists/a\uff1aPermission denied"),
        ("x: y: z", "x: y: z"),
        ("%(count)s %s", "%(count)s %s"),
        ("", ""),
    ],
)
def test_sentences(english: str, chinese: str) -> None:
    found = MessageTexts("zh", translations("zh").gettext)(english)
    assert (found.text, found.is_english) == (chinese, english == chinese)
    assert MessageTexts("en", translations("en").gettext)(english).text == english


def raised(path: Path) -> list[str]:
    """Returns the sentences of the errors that a module raises, with `7` in every place."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            if isinstance(node.exc.func, ast.Name) and node.exc.func.id in {"AssertionError", "PermissionError"}:
                continue  # caught above, or nobody's to read
            said = node.exc.args[0]
            if isinstance(said, ast.JoinedStr):
                found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in said.values))
            elif isinstance(said, ast.Constant):
                found.append(str(said.value))
    return [sentence for sentence in found if sentence.strip(" :7")]


@pytest.mark.parametrize(
    "module",
    [
        "extraction/rules.py",
        "extraction/functions.py",
        "extraction/selectors.py",
        "safe_regex/cost_guard.py",
        "safe_regex/re2.py",
        "safe_regex/syntax.py",
        "sources/catalog.py",
        "sources/download/acquire.py",
        "sources/download/archives.py",
        "sources/download/http_download.py",
        "sources/download/includes.py",
        "sources/download/unpack.py",
        "sources/formats/detect.py",
        "sources/list_files.py",
        "sources/new_source.py",
        "sources/source_lock.py",
        "sources/subscriptions.py",
        "model/policy_values.py",
        "model/values/request_values.py",
        "model/values/weekdays.py",
        "model/services/service_values.py",
        "use_cases/access/accounts.py",
        "use_cases/access/tokens.py",
        "use_cases/backup/archive_reader.py",
        "use_cases/backup/archive_writer.py",
        "use_cases/backup/backing_up.py",
        "use_cases/backup/restore_plan.py",
        "use_cases/backup/restoring.py",
        "use_cases/backup/sealing.py",
        "use_cases/backup/settings_text.py",
        "use_cases/backup/transfers.py",
        "use_cases/lists/rule_transfer.py",
        "use_cases/lists/rule_tester.py",
        "use_cases/lists/patterns.py",
        "use_cases/operation/proxy_users.py",
        "use_cases/people/schedule_windows.py",
        "use_cases/setting_values.py",
        "use_cases/traffic/log_actions.py",
        "use_cases/traffic/log_filters.py",
        "web/pages/lists/rules.py",
    ],
)
def test_refusals_of_typed_input_are_translated(module: str) -> None:
    texts = MessageTexts("zh", translations("zh").gettext)
    sentences = raised(Path(gatewayfilter.__file__).parent / module)
    assert [sentence for sentence in sentences if texts(sentence).is_english] == []


def test_actions_have_names() -> None:
    texts = MessageTexts("zh", translations("zh").gettext)
    assert (texts.action("rule.added"), texts.action("x.y")) == ("添加规则", "x.y")


def test_errors_of_pages_and_of_the_api(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        assert "没有规则 7" in web.client.get("/rules/7", headers=CHINESE).text
        assert web.client.get("/api/v1/rules/7").json()["detail"] == "there is no rule 7"
        assert web.client.get("/api/v1/rules/7", headers=CHINESE).json()["detail"] == "没有规则 7"
        wrong = web.client.get("/api/v1/log?limit=x", headers=CHINESE).json()
        assert (wrong["detail"], wrong["errors"]) == (
            "query.limit: 应为整数",
            [{"field": "query.limit", "detail": "应为整数"}],
        )
        web.who.identity = VIEWER
        refused = web.client.post("/crawler/pause", headers=CHINESE)
        assert (refused.status_code, "此操作需要角色 admin" in refused.text) == (403, True)
