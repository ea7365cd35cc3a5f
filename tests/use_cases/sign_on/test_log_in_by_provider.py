"""Single sign-on from the button to the session, by the use case alone; and people who get an account."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme

from gatewayfilter.config import Settings
from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Role
from gatewayfilter.settings import OidcSettings
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access import throttle
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.dashboard_access import DashboardAccess
from gatewayfilter.use_cases.access.log_in import From, LogInStatus
from gatewayfilter.use_cases.sign_on import single_sign_on as module
from gatewayfilter.use_cases.sign_on.failures import SignOnError
from gatewayfilter.use_cases.sign_on.flow import FLOW_S, Answer, FlowCookies
from gatewayfilter.use_cases.sign_on.id_token import checked_token
from gatewayfilter.use_cases.sign_on.people import People, Person, person_of, values_of_claim
from gatewayfilter.use_cases.sign_on.provider import ProviderDirectory
from gatewayfilter.use_cases.sign_on.provider_http import LARGEST, ProviderHttp
from gatewayfilter.use_cases.sign_on.single_sign_on import SingleSignOn
from tests.use_cases.sign_on.oidc_provider import CLIENT, SECRET, OidcProvider

REDIRECT = "http://127.0.0.1:8081/login/oidc/callback"
HOME = From("192.0.2.1", "Firefox")
KEY = b"k" * 32


@pytest.fixture
def open_one(provider: OidcProvider, settings: Settings, store: Store) -> Callable[..., SingleSignOn]:
    access = DashboardAccess(settings, store, lambda _: None)

    def make(**values: object) -> SingleSignOn:
        given = {"issuer": provider.address, "client_id": CLIENT, "client_secret": SECRET, **values}
        return SingleSignOn(OidcSettings.model_validate(given), KEY, store, access, checked_token)

    return make


def linked(store: Store, provider: OidcProvider) -> Account:
    return Accounts(store).add("ada", Role.ADMIN, None, external_id=f"{provider.address} {provider.person['sub']}")


def at_provider(sign_on: SingleSignOn, target: str = "/lists") -> tuple[Answer, str]:
    """Presses the button. Returns what the provider sends the browser back with, and the cookie."""
    address, cookie = sign_on.begin(target, REDIRECT)
    parts = urlsplit(address)
    with closing(HTTPConnection(parts.netloc)) as browser:
        browser.request("GET", f"{parts.path}?{parts.query}")
        back = urlsplit(browser.getresponse().headers["location"])
    query = {name: values[0] for name, values in parse_qs(back.query).items()}
    return Answer(query["state"], query["code"], "", query["iss"]), cookie


def refused(sign_on: SingleSignOn, change: Callable[[Answer], Answer] = lambda answer: answer, source: From = HOME) -> str:
    answer, cookie = at_provider(sign_on)
    with pytest.raises(SignOnError) as caught:
        sign_on.complete(change(answer), cookie, REDIRECT, source)
    return caught.value.reason.value


def test_a_person_with_an_account_is_logged_in(
    open_one: Callable[..., SingleSignOn], store: Store, provider: OidcProvider
) -> None:
    ada = linked(store, provider)
    sign_on = open_one(scopes=("profile", "openid", "groups"))
    address, _ = sign_on.begin("/", REDIRECT)
    query = parse_qs(urlsplit(address).query)
    assert (query["scope"], query["redirect_uri"], query["response_type"]) == (["openid profile groups"], [REDIRECT], ["code"])
    answer, cookie = at_provider(sign_on)
    result, target = sign_on.complete(answer, cookie, REDIRECT, HOME)
    assert (result.status, target) == (LogInStatus.DONE, "/lists")
    assert result.account is not None
    assert (result.account.account_id, bool(result.secret)) == (ada.account_id, True)
    assert provider.requests.count("/.well-known/openid-configuration") == 1
    with pytest.raises(SignOnError) as caught:
        sign_on.complete(answer, cookie, REDIRECT, HOME)
    assert caught.value.reason.value == "replayed"


def test_a_provider_with_a_query_in_its_address(open_one: Callable[..., SingleSignOn], provider: OidcProvider) -> None:
    provider.change_document = lambda document: document | {"authorization_endpoint": f"{provider.address}/authorize?tenant=1"}
    address, _ = open_one().begin("/", REDIRECT)
    assert address.startswith(f"{provider.address}/authorize?tenant=1&response_type=code&")


def test_answers_that_log_nobody_in(
    open_one: Callable[..., SingleSignOn], provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "_OF_ACCOUNT", throttle._Limit(free=2, longest_s=60.0))  # nobody waits for other networks
    sign_on = open_one()
    for number, (changes, reason) in enumerate(
        (
            ({"state": "other"}, "state"),
            ({"issuer": "https://evil.example"}, "issuer"),
            ({"issuer": ""}, "issuer"),
            ({"error": "access_denied"}, "cancelled"),
            ({"code": ""}, "code"),
            ({"code": "x" * 4_097}, "code"),
        )
    ):
        source = From(f"192.0.2.{number}")
        assert refused(sign_on, partial(replace, **changes), source) == reason
    assert "/token" not in provider.requests
    assert refused(sign_on, lambda answer: replace(answer, code="x" * 4_096)) == "code"
    assert provider.requests.count("/token") == 1


def test_a_provider_that_does_not_name_itself_need_not(
    open_one: Callable[..., SingleSignOn], store: Store, provider: OidcProvider
) -> None:
    linked(store, provider)
    provider.change_document = lambda document: document | {"authorization_response_iss_parameter_supported": False}
    sign_on = open_one()
    answer, cookie = at_provider(sign_on)
    assert sign_on.complete(replace(answer, issuer=""), cookie, REDIRECT, HOME)[0].status is LogInStatus.DONE
    assert refused(sign_on, lambda answer: replace(answer, issuer="https://evil.example")) == "issuer"


def _json(content: bytes) -> Callable[[Any], None]:
    return lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(content), content))


def test_a_provider_without_an_id_token(open_one: Callable[..., SingleSignOn], provider: OidcProvider) -> None:
    sign_on = open_one()
    for content in (b"{}", b'{"id_token": 5}', '{"id_token": "\u00e9"}'.encode(), b'{"id_token": null}'):
        provider.answers["/token"] = _json(content)
        answer, cookie = at_provider(sign_on)
        with pytest.raises(SignOnError, match="the provider sends no ID token"):
            sign_on.complete(answer, cookie, REDIRECT, HOME)


def test_a_wrong_secret_is_told_by_the_provider(
    open_one: Callable[..., SingleSignOn], tmp_path: Path, store: Store, provider: OidcProvider
) -> None:
    sign_on = open_one(client_secret="wrong")
    answer, cookie = at_provider(sign_on)
    with pytest.raises(SignOnError, match="HTTP 401, 'invalid_client'"):
        sign_on.complete(answer, cookie, REDIRECT, HOME)
    linked(store, provider)
    (tmp_path / "secret").write_text(f"  {SECRET} \nmore\n")
    sign_on = open_one(client_secret="", client_secret_file=tmp_path / "secret")
    answer, cookie = at_provider(sign_on)
    assert sign_on.complete(answer, cookie, REDIRECT, HOME)[0].status is LogInStatus.DONE
    (tmp_path / "secret").unlink()
    assert refused(sign_on) == "secret"


def test_the_claim_that_decides_may_be_told_on_request(
    open_one: Callable[..., SingleSignOn], store: Store, provider: OidcProvider
) -> None:
    sign_on = open_one(admin_values=("staff",), viewer_values=("pupils",), new_accounts=True)
    assert refused(sign_on) == "role"
    provider.userinfo |= {"sub": provider.person["sub"], "groups": ["pupils"]}
    sign_on = open_one(admin_values=("staff",), viewer_values=("pupils",), new_accounts=True)
    answer, cookie = at_provider(sign_on)
    account = sign_on.complete(answer, cookie, REDIRECT, HOME)[0].account
    assert account is not None
    assert (account.name, account.role) == ("jane", Role.VIEWER)
    assert [entry.action for entry in store.audit.page()] == ["user.added"]
    provider.userinfo["sub"] = "another"
    assert refused(sign_on) == "token"
    provider.change_claims = lambda claims: claims | {"groups": "staff"}
    provider.requests.clear()
    answer, cookie = at_provider(sign_on)
    account = sign_on.complete(answer, cookie, REDIRECT, HOME)[0].account
    assert account is not None
    assert (account.role, "/userinfo" in provider.requests) == (Role.ADMIN, False)


def test_few_log_ins_wait_for_a_slow_provider(open_one: Callable[..., SingleSignOn], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 1)
    sign_on = open_one()
    with sign_on._slot(), pytest.raises(SignOnError, match="other log-ins wait"):
        sign_on.begin("/", REDIRECT)
    sign_on.begin("/", REDIRECT)
    with sign_on._slot():
        sign_on.begin("/", REDIRECT)  # the document is held by now


def test_failures_are_delayed(open_one: Callable[..., SingleSignOn]) -> None:
    sign_on = open_one()
    reasons = [refused(sign_on) for _ in range(6)]
    assert reasons == ["unknown"] * 4 + ["wait"] * 2


def test_answers_that_were_used_are_forgotten_in_time(
    open_one: Callable[..., SingleSignOn], monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_on = open_one()
    now = [1_000.0]
    monkeypatch.setattr(sign_on, "_clock", lambda: now[0])
    cookies = FlowCookies(KEY, "x")
    first, second = (cookies.begin(now[0], "/")[0] for _ in range(2))
    sign_on._use_once(first)
    now[0] += FLOW_S
    with pytest.raises(SignOnError, match="used before"):
        sign_on._use_once(first)
    now[0] += 1
    sign_on._use_once(second)
    assert list(sign_on._used) == [second.state]
    monkeypatch.setattr(module, "_MOST_USED", 1)
    sign_on._use_once(first)
    assert list(sign_on._used) == [first.state]


def test_a_log_in_is_kept_in_the_browser_for_ten_minutes() -> None:
    cookies = FlowCookies(KEY, "client")
    flow, cookie = cookies.begin(1_000.7, "/lists?x=\u00e9")
    assert (flow.begun_at, flow.target, len(flow.state) >= 32) == (1_000.0, "/lists?x=\u00e9", True)
    assert cookies.read(cookie, 1_000.0) == cookies.read(cookie, 1_000.0 + FLOW_S) == flow
    assert cookies.read(cookie, 1_000.5 + FLOW_S) is cookies.read(cookie, 999.9) is None
    for wrong in ("", "a.b", f"{cookie}x", f"\u00e9{cookie}", cookie.replace("1000", "1001"), "x" * 5_000):
        assert cookies.read(wrong, 1_000.0) is None
    assert FlowCookies(KEY, "other").read(cookie, 1_000.0) is None
    assert FlowCookies(b"o" * 32, "client").read(cookie, 1_000.0) is None
    assert cookies.begin(0.0, "/" + "x" * 1_124)[0].target == "/" + "x" * 1_124
    assert cookies.begin(0.0, "/" + "x" * 1_125)[0].target == "/"
    assert len({cookies.nonce(flow), cookies.verifier(flow), cookies.challenge(flow)}) == 3
    assert "=" not in cookies.challenge(flow)


@pytest.mark.parametrize(
    ("claims", "claim", "values"),
    [
        ({"groups": "a"}, "groups", {"a"}),
        ({"groups": ["a", 5, "b"]}, "groups", {"a", "b"}),
        ({"groups": {"a": 1}}, "groups", set()),
        ({"realm": {"roles": ["a"]}}, "realm.roles", {"a"}),
        ({"realm.roles": ["a"], "realm": {"roles": ["b"]}}, "realm.roles", {"a"}),
        ({"realm": ["roles"]}, "realm.roles", set()),
        ({}, "groups", set()),
        ({"groups": [str(number) for number in range(3_000)]}, "groups", {str(number) for number in range(2_000)}),
    ],
)
def test_values_of_a_claim(claims: dict[str, Any], claim: str, values: set[str]) -> None:
    assert values_of_claim(claims, claim) == values


def test_names_of_a_person() -> None:
    claims = {"sub": "7", "email": "kim@x.example", "name": 5, "preferred_username": "kim"}
    assert person_of(claims, "groups") == Person("7", ("kim", "kim@x.example", "7"), frozenset())


class TestPeople:
    """Accounts of people, without a provider."""

    @pytest.fixture
    def people(self, store: Store) -> Callable[..., People]:
        def make(**values: object) -> People:
            settings = OidcSettings.model_validate({"issuer": "https://id.example", "client_id": "c", **values})
            return People(settings, store, Accounts(store), AuditTrail(store))

        return make

    def test_names_that_are_taken_get_a_number(self, people: Callable[..., People], store: Store) -> None:
        found = people(viewer_values=("v",), new_accounts=True)
        Accounts(store).add("kim", Role.ADMIN, None)
        names = [found.account_of(Person(str(number), ("kim",), frozenset({"v"})), HOME).name for number in range(3)]
        assert names == ["kim-2", "kim-3", "kim-4"]
        assert found.account_of(Person("x", ("", "--", "a b/c"), frozenset({"v"})), HOME).name == "a-b-c"
        assert found.account_of(Person("y", (), frozenset({"v"})), HOME).name == "user"
        assert len(found.account_of(Person("z", ("z" * 100,), frozenset({"v"})), HOME).name) == 60
        detail = store.audit.page()[0].detail
        assert detail == "role viewer, by single sign-on"

    def test_the_number_of_namesakes_is_bounded(self, people: Callable[..., People], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gatewayfilter.use_cases.sign_on.people._MOST_NAMESAKES", 3)
        found = people(viewer_values=("v",), new_accounts=True)
        for number in range(2):
            found.account_of(Person(str(number), ("kim",), frozenset({"v"})), HOME)
        with pytest.raises(SignOnError, match="3 accounts named kim already"):
            found.account_of(Person("7", ("kim",), frozenset({"v"})), HOME)

    def test_the_highest_role_counts_and_changes_with_the_provider(self, people: Callable[..., People], store: Store) -> None:
        found = people(admin_values=("a",), approver_values=("b",), viewer_values=("v",), new_accounts=True)
        Accounts(store).add("root", Role.ADMIN, None)
        kim = Person("7", ("kim",), frozenset({"v", "b"}))
        assert found.account_of(kim, HOME).role is Role.APPROVER
        assert found.account_of(replace(kim, values=frozenset({"a", "v"})), HOME).role is Role.ADMIN
        assert found.account_of(replace(kim, values=frozenset({"v"})), HOME).role is Role.VIEWER
        assert found.account_of(replace(kim, values=frozenset({"v"})), HOME).role is Role.VIEWER
        assert [entry.detail for entry in store.audit.page()] == [
            "role viewer, given by the provider",
            "role admin, given by the provider",
            "role approver, by single sign-on",
        ]
        with pytest.raises(SignOnError) as caught:
            found.account_of(replace(kim, values=frozenset()), HOME)
        assert caught.value.reason.value == "role"

    def test_the_last_admin_stays_one(self, people: Callable[..., People], store: Store) -> None:
        found = people(admin_values=("a",), viewer_values=("v",), new_accounts=True)
        assert found.account_of(Person("7", ("kim",), frozenset({"a"})), HOME).role is Role.ADMIN
        assert found.account_of(Person("7", ("kim",), frozenset({"v"})), HOME).role is Role.ADMIN
        assert len(store.audit.page()) == 1

    @pytest.mark.parametrize(
        ("values", "given", "reason"),
        [
            ({}, "", "unknown"),
            ({"viewer_values": ("v",)}, "v", "unknown"),
            ({"viewer_values": ("v",)}, "", "unknown"),
            ({"viewer_values": ("v",), "new_accounts": True}, "x", "role"),
        ],
    )
    def test_who_gets_no_account(self, values: dict[str, object], given: str, reason: str, people: Callable[..., People]) -> None:
        with pytest.raises(SignOnError) as caught:
            people(**values).account_of(Person("7", ("kim",), frozenset({given})), HOME)
        assert caught.value.reason.value == reason

    def test_without_roles_of_the_provider_an_account_keeps_its_own(self, people: Callable[..., People], store: Store) -> None:
        account = Accounts(store).add("kim", Role.APPROVER, None, external_id="https://id.example 7")
        assert people().account_of(Person("7", ("kim",), frozenset({"a"})), HOME) == account
        Accounts(store).set_disabled(account, disabled=True)
        with pytest.raises(SignOnError) as caught:
            people().account_of(Person("7", ("kim",), frozenset()), HOME)
        assert caught.value.reason.value == "disabled"

    def test_of_two_log_ins_at_once_both_have_the_account(
        self, people: Callable[..., People], store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = people(viewer_values=("v",), new_accounts=True)
        add = Accounts.add

        def add_twice(self: Accounts, name: str, role: Role, password: str | None, **named: Any) -> Account:
            add(self, f"{name}-first", role, password, **named)
            raise AccountError("there is one already")

        monkeypatch.setattr(Accounts, "add", add_twice)
        assert found.account_of(Person("7", ("kim",), frozenset({"v"})), HOME).name == "kim-first"
        assert store.audit.page() == []

        def refuse(*_: object, **__: object) -> Account:
            raise AccountError("there are too many accounts")

        monkeypatch.setattr(Accounts, "add", refuse)
        with pytest.raises(SignOnError, match="too many accounts"):
            found.account_of(Person("8", ("lee",), frozenset({"v"})), HOME)


def test_the_largest_answer_is_read(provider: OidcProvider) -> None:
    http = ProviderHttp(provider.address)
    content = b'{"a": "%s"}' % (b"x" * (LARGEST - 9))
    assert len(content) == LARGEST
    provider.answers["/x"] = _json(content)
    assert len(http.get(f"{provider.address}/x")["a"]) == LARGEST - 9
    provider.answers["/x"] = _json(content + b" ")
    with pytest.raises(SignOnError, match="more than 262,144 bytes"):
        http.get(f"{provider.address}/x")


def test_the_first_address_that_takes_a_connection_is_used(provider: OidcProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        dead = unused.getsockname()
    live = ("127.0.0.1", urlsplit(provider.address).port)
    found: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, 1, 6, "", address) for address in found])
    http = ProviderHttp(provider.address)
    for addresses in ([dead, dead, live], [live, dead]):
        found[:] = addresses
        assert "keys" in http.get(f"{provider.address}/keys")
    found[:] = [dead, dead]
    with pytest.raises(SignOnError, match="Connection refused"):
        http.get(f"{provider.address}/keys")
    found[:] = [("10.0.0.1", 80)]
    with pytest.raises(SignOnError, match=r"other\.example is another host than the issuer's, and not public"):
        ProviderHttp("https://id.example").get("https://other.example/keys")


def test_a_provider_with_tls_is_who_its_certificate_names(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(3):
                with suppress(OSError), context.wrap_socket(listener.accept()[0], server_side=True) as connection:
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n" + b'{"a": 1}')

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        trusting = ProviderHttp(f"https://localhost:{port}", tmp_path / "authority.pem")
        assert trusting.get(f"https://localhost:{port}/x") == {"a": 1}
        with pytest.raises(SignOnError, match="its certificate is refused: "):
            trusting.get(f"https://127.0.0.1:{port}/x")
        with pytest.raises(SignOnError, match="its certificate is refused: "):
            ProviderHttp(f"https://localhost:{port}").get(f"https://localhost:{port}/x")
        thread.join(5)
    with pytest.raises(SignOnError, match="Connection refused"):
        trusting.get(f"https://localhost:{port}/x")


def test_a_provider_that_failed_is_asked_again_after_some_seconds(provider: OidcProvider) -> None:
    now = [1_000.0]
    found = ProviderDirectory(provider.address, ProviderHttp(provider.address), lambda: now[0])
    provider.answers["/keys"] = _json(b"[]")
    with pytest.raises(SignOnError):
        found.provider()
    provider.answers.clear()
    waited = 0
    while True:
        try:
            found.provider()
            break
        except SignOnError:
            now[0] += 1
            waited += 1
    assert waited == 5
