"""The provider of single sign-on: its discovery document and its keys [OpenID Connect Discovery §4], held for an hour."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gatewayfilter.use_cases.sign_on.failures import SignOnError, SignOnReason
from gatewayfilter.use_cases.sign_on.provider_http import ProviderHttp

_HELD_S: Final = 3_600.0
_RETRY_S: Final = 5.0
"""After a failure the provider is left alone for so long."""
_NEW_KEYS_S: Final = 60.0
"""Keys are fetched again for an unknown identifier at most so often: anybody can make one up."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What a discovery document tells.

    Attributes:
        authorization_url, token_url, keys_url: endpoints; `userinfo_url` is `""` for none.
        by_form: whether the dashboard's secret is sent in the form instead of a header field.
        names_issuer: whether answers to browsers name the issuer (RFC 9207).
    """

    authorization_url: str
    token_url: str
    keys_url: str
    userinfo_url: str
    by_form: bool
    names_issuer: bool


@dataclass(frozen=True, slots=True)
class _Held:
    provider: Provider
    keys: str
    fetched_at: float
    keys_at: float


class ProviderDirectory:
    """Fetches what the provider publishes. Threads may share one.

    Args:
        issuer: of the settings.
        http: fetches.
        clock: seconds, never going back.
    """

    def __init__(self, issuer: str, http: ProviderHttp, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._http = http
        self._clock = clock
        self._lock = threading.Lock()
        self._held: _Held | None = None
        self._failure: SignOnError | None = None
        self._failed_at = 0.0

    def held(self) -> Provider | None:
        """Returns the provider's endpoints where they need not be fetched, else `None`. It waits for nothing."""
        held = self._held
        return held.provider if held is not None and self._clock() - held.fetched_at < _HELD_S else None

    def provider(self) -> Provider:
        """Returns the provider's endpoints.

        Raises:
            SignOnError: they cannot be fetched, or are of another issuer.
        """
        return self._current().provider

    def keys(self) -> str:
        """Returns the provider's JWK set as JSON.

        Raises:
            SignOnError: it cannot be fetched.
        """
        return self._current().keys

    def newer_keys(self) -> str | None:
        """Returns the JWK set fetched again, for a key that it lacks; `None` when it was fetched within the last minute.

        Raises:
            SignOnError: it cannot be fetched.
        """
        with self._lock:
            held = self._held
            now = self._clock()
            if held is None or now - held.keys_at < _NEW_KEYS_S:
                return None
            self._held = _Held(held.provider, held.keys, held.fetched_at, now)  # counts even when it fails
            keys = self._fetched_keys(held.provider.keys_url)
            self._held = _Held(held.provider, keys, held.fetched_at, now)
            return keys

    def _current(self) -> _Held:
        with self._lock:
            now = self._clock()
            if self._held is not None and now - self._held.fetched_at < _HELD_S:
                return self._held
            if self._failure is not None and now - self._failed_at < _RETRY_S:
                raise SignOnError(self._failure.reason, self._failure.detail)
            try:
                provider = self._discovered()
                self._held = _Held(provider, self._fetched_keys(provider.keys_url), now, now - _NEW_KEYS_S)
            except SignOnError as error:
                self._failure, self._failed_at = error, self._clock()
                raise
            return self._held

    def _discovered(self) -> Provider:
        found = self._http.get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != self._issuer:
            raise SignOnError(SignOnReason.ISSUER, f"the discovery document is of the issuer {str(found.get('issuer'))[:200]!r}")
        methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        userinfo = found.get("userinfo_endpoint") or ""
        return Provider(
            authorization_url=self._http.check_url(found.get("authorization_endpoint")),
            token_url=self._http.check_url(found.get("token_endpoint")),
            keys_url=self._http.check_url(found.get("jwks_uri")),
            userinfo_url=self._http.check_url(userinfo) if userinfo else "",
            by_form=isinstance(methods, list) and "client_secret_basic" not in methods,
            names_issuer=found.get("authorization_response_iss_parameter_supported") is True,
        )

    def _fetched_keys(self, url: str) -> str:
        found: dict[str, Any] = self._http.get(url)
        return json.dumps({"keys": found.get("keys")})
