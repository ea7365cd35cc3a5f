"""Single sign-on: the authorization code flow of OpenID Connect [Core §3.1] with PKCE, from the button to the session."""

import base64
import hmac
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode

from gatewayfilter.settings import OidcSettings
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.dashboard_access import DashboardAccess
from gatewayfilter.use_cases.access.log_in import From, LogInResult
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from gatewayfilter.use_cases.sign_on.failures import SignOnError, SignOnReason
from gatewayfilter.use_cases.sign_on.flow import FLOW_S, Answer, Flow, FlowCookies
from gatewayfilter.use_cases.sign_on.people import People, person_of, values_of_claim
from gatewayfilter.use_cases.sign_on.provider import Provider, ProviderDirectory
from gatewayfilter.use_cases.sign_on.provider_http import ProviderHttp
from gatewayfilter.use_cases.sign_on.token_facts import ExpectedToken, TokenCheck

_log = logging.getLogger(__name__)

_MOST_USED: Final = 10_000
_MOST_AT_ONCE: Final = 3
"""Log-ins that wait for the provider at once: others of the dashboard's threads serve pages meanwhile."""
_THROTTLED: Final = "single sign-on"
_LONGEST_CODE: Final = 4_096
_LONGEST_SECRET: Final = 4_096


class SingleSignOn:
    """Logs people in by a provider. Threads may share one.

    Args:
        settings: of single sign-on, with an issuer.
        key: of the dashboard.
        store: the database.
        access: accounts and sessions.
        check: verifies ID tokens.
        clock: Unix seconds.
    """

    def __init__(
        self,
        settings: OidcSettings,
        key: bytes,
        store: Store,
        access: DashboardAccess,
        check: TokenCheck,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._key = key
        self._access = access
        self._check = check
        self._clock = clock
        self._http = ProviderHttp(settings.issuer, settings.ca)
        self._directory = ProviderDirectory(settings.issuer, self._http)
        self._people = People(settings, store, access.accounts, access.trail)
        self._throttle = LogInThrottle()
        self._slots = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._lock = threading.Lock()
        self._used: OrderedDict[str, float] = OrderedDict()

    def begin(self, target: str, redirect_uri: str) -> tuple[str, str]:
        """Begins a log-in. Returns the address at the provider to send the browser to, and the value of its cookie.

        Args:
            target: the path of the dashboard to open afterwards.
            redirect_uri: where the provider sends the browser back to.

        Raises:
            SignOnError: the provider cannot be reached.
        """
        provider = self._directory.held()
        if provider is None:
            with self._slot():
                provider = self._directory.provider()
        cookies = self._cookies(redirect_uri)
        flow, cookie = cookies.begin(self._clock(), target)
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(("openid", *(scope for scope in self._settings.scopes if scope != "openid"))),
            "state": flow.state,
            "nonce": cookies.nonce(flow),
            "code_challenge": cookies.challenge(flow),
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in provider.authorization_url else "?"
        return f"{provider.authorization_url}{joint}{urlencode(query, quote_via=quote)}", cookie

    def complete(self, answer: Answer, cookie: str, redirect_uri: str, source: From) -> tuple[LogInResult, str]:
        """Completes a log-in. Returns its session, and the path of the dashboard to open.

        Args:
            answer: of the provider, by the browser.
            cookie: of `begin`.
            redirect_uri: as for `begin`.
            source: where the browser is.

        Raises:
            SignOnError: nobody is logged in.
        """
        cookies = self._cookies(redirect_uri)
        flow = cookies.read(cookie, self._clock())
        if flow is None or not hmac.compare_digest(answer.state.encode(), flow.state.encode()):
            raise SignOnError(SignOnReason.STATE, "the answer belongs to no log-in of this browser")
        self._use_once(flow)
        if self._throttle.begin(_THROTTLED, source.network, known=True) > 0:
            raise SignOnError(SignOnReason.WAIT, "too many failures")
        with self._slot():
            claims = self._claims(answer, flow, cookies, redirect_uri)
        account = self._people.account_of(person_of(claims, self._settings.claim), source)
        self._throttle.succeeded(_THROTTLED, source.network, known=True)
        return self._access.log_in.open(account, source), flow.target

    def _claims(self, answer: Answer, flow: Flow, cookies: FlowCookies, redirect_uri: str) -> dict[str, Any]:
        provider = self._directory.provider()
        if answer.issuer != self._settings.issuer and (answer.issuer or provider.names_issuer):
            raise SignOnError(SignOnReason.ISSUER, f"the answer is of the issuer {answer.issuer[:200]!r}")
        if answer.error:
            raise SignOnError(SignOnReason.CANCELLED, f"the provider answers {answer.error[:100]!r}")
        if not 0 < len(answer.code) <= _LONGEST_CODE:
            raise SignOnError(SignOnReason.CODE, "the answer has no code")
        token, access_token = self._tokens(provider, answer.code, cookies.verifier(flow), redirect_uri)
        claims = self._checked(token, cookies.nonce(flow), flow.begun_at)
        if (
            self._settings.maps_roles
            and provider.userinfo_url
            and access_token
            and not values_of_claim(claims, self._settings.claim)
        ):
            claims = self._with_userinfo(claims, provider, access_token)
        return claims

    def _tokens(self, provider: Provider, code: str, verifier: str, redirect_uri: str) -> tuple[str, str]:
        """Exchanges the code for an ID token and an access token, which may be missing."""
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
        client, secret, authorization = self._settings.client_id, self._secret(), ""
        if secret and not provider.by_form:  # both parts are encoded first (RFC 6749 §2.3.1)
            pair = f"{quote_plus(client)}:{quote_plus(secret)}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields |= {"client_id": client} | ({"client_secret": secret} if secret else {})
        status, found = self._http.post(provider.token_url, fields, authorization)
        if status != 200:
            raise SignOnError(SignOnReason.CODE, f"the provider answers HTTP {status}, {str(found.get('error', ''))[:100]!r}")
        token, access_token = found.get("id_token"), found.get("access_token")
        if not isinstance(token, str) or not token.isascii():
            raise SignOnError(SignOnReason.TOKEN, "the provider sends no ID token")
        usable = isinstance(access_token, str) and access_token.isascii() and access_token.isprintable()
        return token, str(access_token) if usable else ""

    def _checked(self, token: str, nonce: str, begun_at: float) -> dict[str, Any]:
        expected = ExpectedToken(self._settings.issuer, self._settings.client_id, nonce, begun_at)
        checked = self._check(token, self._directory.keys(), expected)
        if checked.reason is SignOnReason.KEY and (keys := self._directory.newer_keys()) is not None:
            checked = self._check(token, keys, expected)
        if checked.reason is not None:
            raise SignOnError(checked.reason, checked.detail)
        return checked.claims

    def _with_userinfo(self, claims: dict[str, Any], provider: Provider, access_token: str) -> dict[str, Any]:
        """Returns the claims with those that the provider tells on request, of the same person [Core §5.3.2]."""
        told = self._http.get(provider.userinfo_url, f"Bearer {access_token}")
        if told.get("sub") != claims["sub"]:
            raise SignOnError(SignOnReason.TOKEN, "the provider tells of another person")
        return told | claims

    def _secret(self) -> str:
        """Returns the dashboard's secret, `""` for a public client."""
        if (file := self._settings.client_secret_file) is None:
            return self._settings.client_secret.get_secret_value()
        try:
            with file.open(encoding="utf-8") as opened:
                return opened.readline(_LONGEST_SECRET).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SignOnError(SignOnReason.SECRET, f"cannot read web.oidc.client_secret_file {file}") from error

    def _cookies(self, redirect_uri: str) -> FlowCookies:
        return FlowCookies(self._key, f"{self._settings.issuer} {self._settings.client_id} {redirect_uri}")

    def _use_once(self, flow: Flow) -> None:
        now = self._clock()
        with self._lock:
            while self._used and (next(iter(self._used.values())) < now - FLOW_S or len(self._used) >= _MOST_USED):
                self._used.popitem(last=False)
            if flow.state in self._used:
                raise SignOnError(SignOnReason.REPLAYED, "the answer was used before")
            self._used[flow.state] = now

    def _slot(self) -> "_Slot":
        return _Slot(self._slots)


class _Slot:
    """A place among those that wait for the provider; refused at once when all are taken."""

    def __init__(self, slots: threading.Semaphore) -> None:
        self._slots = slots

    def __enter__(self) -> None:
        if not self._slots.acquire(blocking=False):
            raise SignOnError(SignOnReason.BUSY, "the provider is slow, and other log-ins wait for it")

    def __exit__(self, *_: object) -> None:
        self._slots.release()
