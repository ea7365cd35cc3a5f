"""Pages, errors and static files as they are answered."""

import json
import zlib
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.testclient import TestClient

from gatewayfilter.errors import ClassifyError, ConfigError, ConflictError, MissingError, StoreError
from gatewayfilter.web import api
from gatewayfilter.web import app as app_module
from gatewayfilter.web.access.gate import MAX_BODY
from gatewayfilter.web.access.identity import Identity, Role
from gatewayfilter.web.api.system import session as session_api
from gatewayfilter.web.app import create_app
from gatewayfilter.web.errors import answer, problem
from gatewayfilter.web.rendering import pages as pages_module
from gatewayfilter.web.rendering.assets import Assets
from gatewayfilter.web.rendering.pages import Pages, gettext, is_partial, language_of, pages_of_process, render

ADMIN = Identity("ada", Role.ADMIN, "csrf")


@pytest.fixture(scope="module")
def pages() -> Pages:
    return pages_of_process()


class Services:
    """What pages ask for."""

    zone, zone_name = UTC, "UTC"
    clock = staticmethod(lambda: 0.0)

    def __init__(self, *, away: bool = False, accounts: bool = True) -> None:
        self._away = away
        self.access = SimpleNamespace(has_accounts=lambda: accounts)

    def waiting(self) -> dict[str, int]:
        if self._away:
            raise StoreError("away")
        return {"requests": 2, "review": 0}


def request(
    pages: Pages,
    path: str = "/rules",
    query: str = "",
    method: str = "GET",
    who: Identity | None = ADMIN,
    services: Any = None,
    **fields: str,
) -> Request:
    state = SimpleNamespace(pages=pages, services=services or Services(), tls=False)
    headers = [(name.replace("_", "-").encode(), text.encode()) for name, text in fields.items()]
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": headers,
        "query_string": query.encode(),
        "client": ("a", 1),
        "server": ("a", 1),
        "scheme": "http",
        "app": SimpleNamespace(state=state),
        "state": {"identity": who},
    }
    return Request(scope)


def body(response: Any) -> str:
    return bytes(response.body).decode()


def test_a_page_has_language_theme_and_place_of_its_request(pages: Pages) -> None:
    def shown(one: Request, **more: Any) -> str:
        return pages.fragment(one, "system/error.html", detail="there is no rule 7", **more)

    plain = shown(request(pages, query="a=b"))
    assert 'lang="en' in plain
    assert "there is no rule 7" in plain
    chinese = shown(request(pages, accept_language="zh"))
    assert 'lang="zh' in chinese
    assert "没有规则 7" in chinese
    for cookie, theme in (("theme=dark", "dark"), ("theme=light", "light"), ("theme=pink", "")):
        assert (f'data-theme="{theme}"' in shown(request(pages, cookie=cookie))) is bool(theme)
    assert "/rules?a=b" in shown(request(pages, query="a=b", who=None))
    assert "/rules?a=b" not in shown(request(pages, query="a=b", who=None, method="POST"))
    removed = pages.fragment(request(pages, accept_language="zh"), "learning/_word_removed.html", phrase="there is no rule 7")
    assert "there is no rule 7<" in removed  # a word of people, which looks like a sentence of the program
    assert 'href="/users"' in plain
    assert 'href="/users"' not in shown(request(pages, who=Identity("v", Role.VIEWER)))
    assert 'href="/log"' not in shown(request(pages, who=None))
    assert ">2<" in plain
    assert ">2<" not in shown(request(pages, services=Services(away=True)))
    assert pages.formats(request(pages)) is pages.formats(request(pages))
    assert pages.formats(request(pages)) is not pages.formats(request(pages, accept_language="zh"))
    assert (pages.told("zh", "there is no rule 7"), pages.told("en", "x")) == ("没有规则 7", "x")
    assert gettext(request(pages), "Added %(name)s.", name="a") == "Added a."
    assert gettext(request(pages), "100%") == "100%"


def test_formats_are_small_where_pages_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(pages_module, "Formats", lambda language, zone, *, small: made.append((language, zone, small)))
    own = Pages(Assets())
    own.formats(request(own, accept_language="zh"))
    own.keep_small(tmp_path)
    own.formats(request(own))
    assert made == [("zh", UTC, False), ("en", UTC, True)]


def test_the_language_is_of_the_account_the_cookie_or_the_browser(pages: Pages) -> None:
    own = Identity("a", Role.VIEWER, language="zh")
    assert language_of(request(pages, who=own, cookie="language=en", accept_language="en")) == "zh"
    assert language_of(request(pages, who=ADMIN, cookie="language=zh", accept_language="en")) == "zh"
    assert language_of(request(pages, who=None, accept_language="zh")) == "zh"
    assert language_of(request(pages, who=None)) == "en"
    for fields, partial in (
        ({"hx_request": "true"}, True),
        ({"hx_request": "true", "hx_boosted": "true"}, False),
        ({"hx_request": "1"}, False),
    ):
        assert is_partial(request(pages, **cast("dict[str, Any]", fields))) is partial


def test_what_waits_is_told_with_parts_that_answer_a_change(pages: Pages) -> None:
    name = "gatewayfilter-waiting"
    part = {"hx_request": "true"}

    def told(**options: Any) -> Any:
        return pages.page(request(pages, **options), "components/_problem.html", 418, detail="x")

    assert (told(method="POST", **part).status_code, json.loads(told(method="POST", **part).headers[name])) == (
        418,
        {"requests": 2, "review": 0},
    )
    for options in (part, {"method": "POST"}, {"method": "POST", "who": None, **part}):
        assert name not in told(**options).headers
    assert told(method="POST", services=Services(away=True), **part).headers[name] == "{}"
    assert render(request(pages), "components/_problem.html", 418, detail="x").status_code == 418


@pytest.mark.parametrize(
    ("error", "told"),
    [(ClassifyError("there is no rule 7"), "没有规则 7"), (StoreError("away"), "away"), (KeyError("secret"), "程序")],
)
def test_a_fault_behind_the_frame_is_told_in_its_place(
    pages: Pages, error: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    def later() -> dict[str, Any]:
        raise error

    frame, rest = pages.parts(request(pages, accept_language="zh"), "lists/lists.html", later, active="lists")
    assert frame.count('<div class="toolbar">') == 1
    assert told in rest
    assert "secret" not in rest
    assert rest.rstrip().endswith("</html>")
    logged = [] if isinstance(error, ClassifyError) else ["WARNING"] if isinstance(error, StoreError) else ["ERROR"]
    assert [record.levelname for record in caplog.records] == logged


def test_a_long_page_is_sent_in_two_pieces_to_a_browser(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = request(pages, sec_fetch_mode="navigate")
    whole = pages.fragment(opened, "system/error.html", detail="x")
    rest = len(whole.partition('<div class="toolbar">')[2])
    for long, kind in ((rest, StreamingResponse), (rest + 1, HTMLResponse)):
        monkeypatch.setattr(pages_module, "LONG", long)
        shown = render(opened, "system/error.html", 418, detail="x")
        assert (type(shown), shown.status_code) == (kind, 418)
    assert type(render(request(pages), "system/error.html", 200, detail="x")) is HTMLResponse


def test_errors_are_problems_pages_or_lines(pages: Pages) -> None:
    api = answer(
        request(pages, "/api/v1/x", accept_language="zh"),
        404,
        "there is no rule 7",
        {"a": "b"},
        [{"field": "f", "detail": "Field required"}],
    )
    assert (api.status_code, api.headers["a"], api.headers["vary"], api.media_type) == (
        404,
        "b",
        "accept-language",
        "application/problem+json",
    )
    assert json.loads(body(api)) == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "没有规则 7",
        "errors": [{"field": "f", "detail": "必填"}],
    }
    assert json.loads(body(answer(request(pages, "/api/v1/x"), 404, "x"))).keys() == {"type", "title", "status", "detail"}
    assert problem(401, "x").headers["www-authenticate"] == "Bearer"
    assert problem(401, "x", {"www-authenticate": "own"}).headers["www-authenticate"] == "own"
    assert "www-authenticate" not in problem(403, "x").headers
    line = answer(request(pages, "/metrics"), 401, "log in first", {"a": "b"})
    assert (body(line), line.headers["www-authenticate"], line.headers["a"]) == ("log in first\n", "Bearer", "b")
    assert "www-authenticate" not in answer(request(pages, "/metrics"), 503, "x").headers
    nobody = {"who": None}
    for options, place in (
        ({"path": "/rules", "query": "q=a b"}, "/login?next=%2Frules%3Fq%3Da%20b"),
        ({"path": "/rules"}, "/login?next=%2Frules"),
        ({"path": "/"}, "/login"),
        ({"services": Services(accounts=False)}, "/setup"),
    ):
        found = answer(request(pages, **cast("dict[str, Any]", nobody | options)), 401, "log in first")
        assert (found.status_code, found.headers["location"]) == (303, place)
    for options in ({"method": "POST"}, {"hx_request": "true"}):
        found = answer(request(pages, **cast("dict[str, Any]", nobody | options)), 401, "log in first", {"a": "b"})
        assert (found.status_code, found.headers["a"], "log in first" in body(found)) == (401, "b", True)
        assert ("<html" in body(found)) is ("method" in options)
    assert answer(request(pages), 403, "x").status_code == 403


def test_what_handlers_raise_is_answered(pages: Pages) -> None:
    settings = SimpleNamespace(web=SimpleNamespace(listen="", names=[]))
    raised: list[Exception | None] = []

    class Failing:
        def identify(self, _: Request) -> Identity:
            if (error := raised[-1]) is not None:
                raise error
            return Identity("ada", Role.ADMIN)

    services = cast("Any", Services())
    services.settings, services.store = settings, None
    client = TestClient(create_app(services, Failing()), base_url="http://localhost", raise_server_exceptions=False)
    for error, status, detail, fields in (
        (StoreError("away"), 503, "away", {"retry-after": "5"}),
        (MissingError("none"), 404, "none", {}),
        (ConflictError("changed"), 409, "changed", {}),
        (ConfigError("bad"), 422, "bad", {}),
        (KeyError("secret"), 500, "a fault of the program; the log has it", {}),
    ):
        raised.append(error)
        found = client.get("/api/v1/rules")
        assert (found.status_code, found.json()["detail"]) == (status, detail)
        assert {name: found.headers[name] for name in fields} == fields
    raised.append(ConflictError("changed"))
    assert client.get("/api/v1/rules", headers={"if-match": '"1"'}).status_code == 412
    raised.append(None)
    found = client.post("/api/v1/session", json={f"field{'x' * 300}{n}": 1 for n in range(30)})
    assert (found.status_code, len(found.json()["errors"]), found.json()["detail"].count("; ")) == (422, 20, 2)
    assert max(len(one["field"]) for one in found.json()["errors"]) == 200
    assert client.get("/nothing").status_code == 404


def test_static_files_are_kept_for_ever_under_their_version(pages: Pages, tmp_path: Any) -> None:
    services = cast("Any", Services())
    services.settings, services.store = SimpleNamespace(web=SimpleNamespace(listen="127.0.0.1:1", names=[])), None
    client = TestClient(create_app(services, cast("Any", None)), base_url="http://localhost")
    version = pages.assets.version
    found = client.get(pages.assets.url("app.css"))
    assert (found.status_code, found.headers["cache-control"], found.headers["etag"], found.headers["content-type"][:8]) == (
        200, "public, max-age=31536000, immutable", f'"{version}"', "text/css",
    )  # fmt: skip
    other = client.get("/static/other/app.css")
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-cache")
    again = client.get("/static/other/app.css", headers={"if-none-match": f'"{version}"'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", f'"{version}"')
    assert client.get("/static/other/none").status_code == 404
    worker = client.get("/sw.js")
    assert (worker.status_code, worker.headers["cache-control"], worker.headers["content-type"][:15]) == (
        200,
        "no-cache",
        "text/javascript",
    )
    for name, content in (
        ("css/b.css", "b"),
        ("css/a.css", "a"),
        ("x.toml", "x"),
        ("x.png", "x"),
        ("x.bin", "x"),
        ("d/y.js", "yy"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    made = Assets(tmp_path)
    files = {name: made.find(name) for name in ("app.css", "css/a.css", "x.toml", "x.png", "x.bin", "d/y.js")}
    assert {name: one and (one.content, one.media_type) for name, one in files.items()} == {
        "app.css": (b"a\nb", "text/css"),
        "css/a.css": None,
        "x.toml": None,
        "x.png": (b"x", "image/png"),
        "x.bin": (b"x", "application/octet-stream"),
        "d/y.js": (b"yy", "text/javascript"),
    }
    assert (made.size, made.url("x.png"), len(made.version)) == (7, f"/static/{made.version}/x.png", 12)
    (tmp_path / "x.png").write_text("z")
    assert Assets(tmp_path).version != made.version
    with pytest.raises(KeyError):
        made.url("none")


def test_the_document_of_the_api_has_its_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "routers", lambda: iter([session_api.router]))
    packed = app_module.compressed_document()
    document = json.loads(zlib.decompress(packed))
    assert (document["info"]["title"], list(document["paths"])) == ("GatewayFilter", ["/api/v1/session"])
    assert {name for name in document["components"]["schemas"] if "Output" in name} == set()
    services = cast("Any", Services())
    services.settings, services.store = SimpleNamespace(web=SimpleNamespace(listen="", names=["named.example"])), None
    services.openapi_document = lambda: packed
    client = TestClient(create_app(services, cast("Any", None)), base_url="http://named.example")
    answer_ = client.get("/api/v1/openapi.json")
    assert (answer_.json()["info"]["title"], answer_.headers["content-type"]) == ("GatewayFilter", "application/json")
    for path in ("/openapi.json", "/docs", "/redoc"):
        assert client.get(path).status_code == 404
    assert client.get("/sw.js", headers={"host": "localhost"}).status_code == 200
    assert client.get("/sw.js", headers={"host": "other.example"}).status_code == 421


@pytest.mark.parametrize(("who", "status"), [(Role.ADMIN, 200), (Role.APPROVER, 413), (None, 413), (StoreError("away"), 413)])
def test_admins_alone_send_large_bodies(who: Any, status: int) -> None:
    class Sender:
        def identify(self, request: Request) -> Identity | None:
            assert request.app.state.tls is True
            if isinstance(who, Exception):
                raise who
            return Identity("a", who) if who is not None else None

    services = cast("Any", Services())
    services.settings, services.store = SimpleNamespace(web=SimpleNamespace(listen="", names=[])), None
    made = create_app(services, Sender(), tls=True)
    client = TestClient(made, base_url="https://localhost", raise_server_exceptions=False)
    for path in app_module.UPLOADS:
        answered = client.post(path, headers={"content-length": str(MAX_BODY + 1)}, content=b"")
        assert (answered.status_code == 413) is (status == 413)
    assert client.post("/rules", headers={"content-length": str(MAX_BODY + 1)}, content=b"").status_code == 413
    assert "strict-transport-security" in client.get("/sw.js").headers


def test_all_templates_are_compiled_for_each_language(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Environment, "list_templates", lambda _: ["components/icons.html", "components/_problem.html"])
    made = Pages(Assets())
    made.keep_small(tmp_path)
    made.compile_all()
    assert {path.name: len(list(path.iterdir())) for path in tmp_path.iterdir()} == {"en": 2, "zh": 2}
    assert tmp_path.joinpath("en").stat().st_mode & 0o777 == 0o700
