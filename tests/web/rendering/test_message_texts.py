"""Sentences of the program in the language of the page."""

import ast
from functools import cache
from pathlib import Path

import pytest

import gatewayfilter
from gatewayfilter.web.rendering.catalogs import translations
from gatewayfilter.web.rendering.message_texts import MessageTexts
from tests.web.web_fakes import VIEWER, dashboard

CHINESE = {"accept-language": "zh-CN"}


@cache
def texts_in(language: str) -> MessageTexts:
    return MessageTexts(language, translations(language).gettext)


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
        (
            "setting 'crawl.workers' (file /etc/a b.toml): input should be less than or equal to 64",
            "设置 'crawl.workers'\uff08file /etc/a b.toml\uff09\uff1a不能大于 64",
        ),
        (
            "setting 'proxy.listen' (environment X): must be HOST:PORT, not 'x'",
            "设置 'proxy.listen'\uff08environment X\uff09\uff1a必须是 主机:端口\uff0c不能是 'x'",
        ),
        (
            "gambling.toml: limit: a weight must be above 0 and at most 1000",
            "gambling.toml: limit: 权重必须大于 0\uff0c且不超过 1000",
        ),
        ("unknown option 'x'", "未知选项 'x'"),
        ("/a/b.npz is no model of this program (it is cut off)", "/a/b.npz 不是本程序的模型 (it is cut off)"),
        ("x: y: z", "x: y: z"),
        ("%(count)s %s", "%(count)s %s"),
        ("", ""),
    ],
)
def test_sentences(english: str, chinese: str) -> None:
    found = texts_in("zh")(english)
    assert (found.text, found.is_english) == (chinese, english == chinese)
    assert texts_in("en")(english).text == english


ROOM = Path(gatewayfilter.__file__).parent
TOLD_ROOMS = (
    "addresses", "certificates", "classify/lexicon", "classify/models/model_file.py", "config.py", "content_encoding",
    "crawl/net", "documents/sandbox.py", "engine/adblock", "engine/state", "extraction", "fleet", "learn/review", "model",
    "notify", "safe_regex", "scaleout/redis/no_holds.py", "settings", "sources", "store", "urls.py", "use_cases", "web",
    "wiring",
)  # fmt: skip
"""What a page calls, directly or through what it calls: everything that these raise may stand on a page."""
UNTOLD = {
    "engine/adblock/compiler.py": "a fault of the program",
    "engine/adblock/index": "a fault of the program",
    "fleet/deltas": "blocks are fetched in place of a delta: the log has it",
    "sources/publish.py": "why lists are read again: the log has it",
    "store/backup/feed_steps.py": "names of columns",
    "store/backup/upgrade_copies.py": "the filter does not start",
    "store/repositories/traffic/log_timeline.py": "a fault of the program",
    "store/secret_key.py": "the filter does not start",
    "store/sql": "the filter does not start",
    "use_cases/backup/database_repair.py": "of commands alone",
}
"""What no page shows, with the reason."""
PARTS = {"task 7 7", "task 7 7: change its category, or undo that first", "task 7 7: undo that first, or add --overturn"}
"""Sentences whose places hold more of the sentence: a case above has it whole."""
NAMES = {"[$…]", "#%#", "##+js", ">>", ":matches-media()", ":matches-path()", ":7()", "##^responseheader()", "##^:7()"}
"""Parts of the syntax of Adblock rules that a proxy cannot apply: they are the same in every language."""


def sentences_of(path: Path) -> set[str]:
    """Returns the sentences of all errors that a module makes, with `7` in every place; those of each branch."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "HTTPException":  # its first argument is a status
            given = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "detail")]
        elif name.endswith("Error") and name not in {"AssertionError", "PermissionError"}:  # caught, or nobody's to read
            given = node.args[:1]
        else:
            continue
        for one in given:
            branches = [one.body, one.orelse] if isinstance(one, ast.IfExp) else [one]
            found |= {text for branch in branches if (text := _sentence(branch)).strip(" :7'")}
    return found


def _sentence(said: ast.expr) -> str:
    if isinstance(said, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in said.values)
    return str(said.value) if isinstance(said, ast.Constant) else ""


def modules(room: str) -> list[Path]:
    """Returns the modules of a room that pages show errors of."""
    place = ROOM / room
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    untold = tuple(str(ROOM / name) for name in UNTOLD)
    return [path for path in found if not str(path).startswith(untold)]


@pytest.mark.parametrize("room", TOLD_ROOMS)
def test_no_refusal_that_a_page_shows_is_untranslated(room: str) -> None:
    texts = texts_in("zh")
    found = modules(room)
    missing = {
        (path.relative_to(ROOM).as_posix(), sentence)
        for path in found
        for sentence in sentences_of(path)
        if sentence not in NAMES | PARTS and texts(sentence).is_english
    }
    assert found
    assert sorted(missing) == []


@pytest.mark.parametrize("name", UNTOLD)
def test_what_no_page_shows_is_there(name: str) -> None:
    assert (ROOM / name).exists()


def test_sentences_in_both_branches_are_found(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        "raise PolicyError(f'no {a}' if b else 'none')\nHTTPException(404, 'gone')\nHTTPException(404, detail='away')\n"
        "raise errors.UrlError('not this')\nraise AssertionError('no')\nfail('nor this')\n"
    )
    assert sentences_of(file) == {"no 7", "none", "gone", "away", "not this"}


def test_actions_have_names() -> None:
    texts = texts_in("zh")
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
        assert (refused.status_code, "此操作需要角色 管理员" in refused.text) == (403, True)


@pytest.mark.parametrize(
    ("action", "noted", "chinese"),
    [
        ("request.approved", "request 17", "申请 17"),
        ("request.denied", "request 17: not today", "申请 17\uff1anot today"),
        ("user.role", "role admin", "角色\uff1a管理员"),
        ("user.added", "role viewer, by single sign-on", "角色\uff1a查看者\uff0c通过单点登录"),
        ("user.added", "role king", "角色\uff1aking"),
        ("token.added", "account ann, scope read", "账户 ann\uff0c权限\uff1a查看"),
        ("change.undone", "17: rule.added", "17\uff1a添加规则"),
        ("review.rejected", "task 3, task 4: poker news", "任务 3, 4\uff1apoker news"),
        ("review.rejected", "task 3", "任务 3"),
        ("list.switched", "off", "关"),
        ("words.added", "off", "off"),
        ("client.added", "--address 10.0.0.7", "--address 10.0.0.7"),
    ],
)
def test_what_is_noted_of_a_change_is_in_the_language(action: str, noted: str, chinese: str) -> None:
    assert texts_in("zh").detail(noted, action) == chinese
    assert texts_in("en").detail(noted, action) == noted
