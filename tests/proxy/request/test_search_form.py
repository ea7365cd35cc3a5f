"""Which bodies of requests are read as searches, how many bytes of them, and what is sent on."""

import gzip
from dataclasses import dataclass, field

from mitmproxy import http

from gatewayfilter.model import Action, Reason, Verdict
from gatewayfilter.proxy.request.search_form import MOST_BYTES, FormKind, form_kind, judge_body
from tests.case_tables import all_cases

FORM = "application/x-www-form-urlencoded"
BLOCKED = Verdict(Action.BLOCK, Reason.BLACKLIST)


@all_cases(
    ("declared", "kind"),
    [
        (FORM, FormKind.FORM),
        (f" {FORM.upper()} ; charset=utf-8", FormKind.FORM),
        ("", FormKind.FORM),
        ("application/json", FormKind.TEXT),
        ("text/plain;charset=UTF-8", FormKind.TEXT),
        ("multipart/form-data; boundary=x", FormKind.OTHER),
        ("image/png", FormKind.OTHER),
        ("Audio/ogg", FormKind.OTHER),
        ("video/mp4", FormKind.OTHER),
        ("application/octet-stream", FormKind.OTHER),
    ],
)
def test_what_a_body_is(declared: str, kind: FormKind) -> None:
    headers = {b"content-type": declared, b"content-length": "7"}
    assert form_kind(headers) == (kind, kind is not FormKind.OTHER)
    assert form_kind(headers | {b"transfer-encoding": "chunked"}) == (kind, False)


@all_cases(
    ("length", "readable"),
    [
        ("0", True),
        (str(MOST_BYTES), True),
        (str(MOST_BYTES + 1), False),
        ("000262144", True),
        ("0000262144", False),  # no length needs so many digits
        ("9" * 5000, False),
        ("", False),
        ("-1", False),
        ("1.5", False),
    ],
)
def test_a_body_is_read_where_its_length_is_known_and_bounded(length: str, *, readable: bool) -> None:
    assert form_kind({b"content-length": length})[1] is readable
    assert form_kind({})[1] is False


@dataclass
class Form:
    """Blocks a body with `casino`, and one that cannot be read."""

    parameters: tuple[tuple[str, str], ...] = (("safe", "active"),)
    judges: bool = True
    is_search: bool = False
    seen: list[bytes | None] = field(default_factory=list)

    def judge(self, body: bytes | None) -> Verdict | None:
        self.seen.append(body)
        return BLOCKED if body is None or b"casino" in body else None


def posted(body: bytes | None, **fields: str) -> http.Request:
    headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()]
    made = http.Request.make("POST", "http://search.example/", b"", headers)
    made.data.content = body
    return made


@all_cases(
    ("body", "encoding", "read", "blocked"),
    [
        (b"q=cats", "", b"q=cats", False),
        (b"q=casino", "", b"q=casino", True),
        (None, "", b"", False),
        (gzip.compress(b"q=casino", mtime=0), "gzip", b"q=casino", True),
        (gzip.compress(b"a" * MOST_BYTES, mtime=0), "gzip", b"a" * MOST_BYTES, False),
        (gzip.compress(b"a" * (MOST_BYTES + 1), mtime=0), "gzip", None, True),
        (b"q=cats", "gzip", None, True),
        (b"q=cats", "nonsense", b"q=cats", False),  # no coding: servers read what is there
    ],
)
def test_what_is_judged_is_what_a_server_reads(body: bytes | None, encoding: str, read: bytes | None, *, blocked: bool) -> None:
    form = Form()
    request = posted(body, content_type=FORM, **({"content_encoding": encoding} if encoding else {}))
    assert judge_body(request, form) == (BLOCKED if blocked else None)
    assert form.seen == [read]
    if blocked:
        assert request.data.content == body
    unjudged = Form(judges=False)
    assert judge_body(posted(body, content_type=FORM), unjudged) is None
    assert unjudged.seen == []


def test_enforced_parameters_go_into_a_form_and_nothing_else() -> None:
    packed = posted(gzip.compress(b"q=caf\xe9&safe=off"), content_type=f"{FORM}; charset=x", content_encoding="gzip")
    judge_body(packed, Form())
    assert packed.data.content == b"q=caf\xe9&safe=active"
    assert "content-encoding" not in packed.headers
    assert packed.headers["content-length"] == "18"
    for form, body, declared in (
        (Form(), b"q=cats&safe=off", "application/json"),
        (Form(), b"q=cats&safe=off", ""),
        (Form(), b"", FORM),
        (Form(parameters=()), b"q=cats&safe=off", FORM),
        (Form(), b"q=casino&safe=off", FORM),
    ):
        request = posted(body, content_type=declared)
        judge_body(request, form)
        assert request.data.content == body, (form, declared)
        assert request.headers.get("content-length", "0") == "0"
