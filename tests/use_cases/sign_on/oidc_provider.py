"""A small OpenID Connect provider on loopback with real keys, which misbehaves on demand. `python -m` serves it as a process.

It checks what a provider has to check: the redirect address, the code's single use, PKCE and the client's secret.
"""

import base64
import hashlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CLIENT = "filter"
SECRET = "s3cret of+the client"
KEYS = {name: rsa.generate_private_key(public_exponent=65_537, key_size=2_048) for name in ("first", "second")}
CURVE = ec.generate_private_key(ec.SECP256R1())


class OidcProvider:
    """A provider.

    Attributes:
        person: claims of whoever logs in.
        userinfo: claims that it tells on request; empty for no such endpoint.
        change_claims: changes the claims of an ID token before it is signed.
        sign: makes the ID token of its claims.
        published: keys of the JWK set: `first`, `second`, `curve`.
        change_document: changes the discovery document.
        answers: path → what is written in place of the proper answer.
        requests: paths that were requested.
    """

    def __init__(self) -> None:
        self.address = ""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Makes all as it was, but for the address."""
        self.person: dict[str, Any] = {"sub": "248289761001", "preferred_username": "jane"}
        self.userinfo: dict[str, Any] = {}
        self.change_claims: Callable[[dict[str, Any]], dict[str, Any]] = dict
        self.sign: Callable[[dict[str, Any]], str] = rs256
        self.published = ["first"]
        self.change_document: Callable[[dict[str, Any]], dict[str, Any]] = dict
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def authorize(self, query: dict[str, str]) -> str:
        """Returns the address to which a browser is sent back, with a code."""
        assert query["client_id"] == CLIENT
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        assert "openid" in query["scope"].split()
        code = f"code-{len(self._codes)}"
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state'], 'iss': self.address})}"

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Returns the answer of the token endpoint."""
        query = self._codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        basic = base64.b64encode(f"{CLIENT}:s3cret+of%2Bthe+client".encode()).decode()
        if authorization != f"Basic {basic}":
            return 401, {"error": "invalid_client"}
        if (
            query is None
            or form["redirect_uri"] != query["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).decode().rstrip("=") != query["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": query["nonce"], **self.person}
        token = self.sign(self.change_claims(claims))
        return 200, {"id_token": token, "access_token": "opaque", "token_type": "Bearer"}

    def document(self) -> dict[str, Any]:
        """Returns the discovery document."""
        found = {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "authorization_response_iss_parameter_supported": True,
        }
        return self.change_document(found | ({"userinfo_endpoint": f"{self.address}/userinfo"} if self.userinfo else {}))

    def keys(self) -> dict[str, Any]:
        """Returns the JWK set."""
        return {"keys": [public_jwk(name) for name in self.published]}


def public_jwk(name: str) -> dict[str, Any]:
    """Returns a public key."""
    made: dict[str, Any] = (
        jwt.algorithms.ECAlgorithm.to_jwk(CURVE.public_key(), as_dict=True)
        if name == "curve"
        else jwt.algorithms.RSAAlgorithm.to_jwk(KEYS[name].public_key(), as_dict=True)
    )
    return made | {"kid": name, "use": "sig"}


def rs256(claims: dict[str, Any], kid: str = "first") -> str:
    """Signs claims."""
    return jwt.encode(claims, KEYS[kid], "RS256", {"kid": kid})


def es256(claims: dict[str, Any]) -> str:
    """Signs claims by an elliptic curve."""
    return jwt.encode(claims, CURVE, "ES256", {"kid": "curve"})


def unsigned(claims: dict[str, Any]) -> str:
    """Returns a token without a signature."""
    return jwt.encode(claims, "", "none", {"kid": "first"})


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if self._misbehaves(parts.path):
            return
        provider = self._provider
        if parts.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self.send_response(303)
            self.send_header("location", provider.authorize(query))
            self.end_headers()
        elif parts.path == "/.well-known/openid-configuration":
            self.send_json(200, provider.document())
        elif parts.path == "/keys":
            self.send_json(200, provider.keys())
        elif parts.path == "/userinfo":
            assert self.headers["authorization"] == "Bearer opaque"
            self.send_json(200, provider.userinfo)
        else:
            self.send_json(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self._misbehaves(self.path):
            return
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.send_json(*self._provider.exchange(form, self.headers.get("authorization", "")))

    def send_json(self, status: int, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Logs nothing."""

    @property
    def _provider(self) -> OidcProvider:
        assert isinstance(self.server, _Server)
        return self.server.provider

    def _misbehaves(self, path: str) -> bool:
        self._provider.requests.append(path)
        if (wrong := self._provider.answers.get(path)) is None:
            return False
        with suppress(OSError):  # the filter had enough
            wrong(self)
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, provider: OidcProvider, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.provider = provider
        provider.address = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running_provider() -> Iterator[OidcProvider]:
    """Serves a provider from a thread."""
    provider = OidcProvider()
    server = _Server(provider)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def serve() -> None:
    """Serves a provider as a process; writes its address to standard output."""
    provider = OidcProvider()
    provider.person["groups"] = sys.argv[1:]
    server = _Server(provider)
    sys.stdout.write(f"{provider.address}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    serve()
