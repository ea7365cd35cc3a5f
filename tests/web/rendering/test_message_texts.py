"""Sentences of the program in the language of the page."""

from pathlib import Path

import pytest

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
        ("%(count)s %s", "%(count)s %s"),
        ("", ""),
    ],
)
def test_sentences(english: str, chinese: str) -> None:
    found = MessageTexts("zh", translations("zh").gettext)(english)
    assert (found.text, found.is_english) == (chinese, english == chinese)
    assert MessageTexts("en", translations("en").gettext)(english).text == english


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
