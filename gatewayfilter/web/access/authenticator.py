"""Identification of requests: by the cookie of a session, or by a token of the API."""

from typing import Final

from fastapi import Request

from gatewayfilter.model import Via
from gatewayfilter.use_cases.access.dashboard_access import DashboardAccess
from gatewayfilter.web.access.cookies import session_cookie
from gatewayfilter.web.access.identity import Identity, Role

_BEARER: Final = "bearer "
_LONGEST: Final = 200
_API: Final = "/api/"
_TOKEN_PATHS: Final = ("/metrics",)


class AccountAuthenticator:
    """Identifies the accounts of the dashboard.

    Args:
        access: accounts, sessions and tokens.
    """

    def __init__(self, access: DashboardAccess) -> None:
        self._access = access

    def identify(self, request: Request) -> Identity | None:
        """Returns the identity of a token, else of a session; `None` for nobody.

        A token that is not good is nobody's, whatever cookie comes with it. Pages are not opened by tokens.
        """
        field = request.headers.get("authorization", "")
        if field[: len(_BEARER)].lower() == _BEARER:
            path = request.url.path
            return self._of_token(field[len(_BEARER) :].strip()) if path.startswith(_API) or path in _TOKEN_PATHS else None
        secret = session_cookie(request)
        return self._of_session(secret) if secret else None

    def _of_session(self, secret: str) -> Identity | None:
        found = self._access.sessions.find(secret)
        if found is None:
            return None
        account, session = found
        return Identity(
            account.name,
            Role[account.role.name],
            session.csrf,
            account.language,
            account_id=account.account_id,
            via_detail=session.network,
            session=session,
        )

    def _of_token(self, text: str) -> Identity | None:
        found = self._access.tokens.find(text[:_LONGEST])
        if found is None:
            return None
        account, token = found
        return Identity(
            account.name,
            Role[token.scope.within(account.role).name],
            language=account.language,
            account_id=account.account_id,
            via=Via.TOKEN,
            via_detail=token.name,
        )
