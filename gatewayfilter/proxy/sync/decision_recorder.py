"""Log records of decisions, cut to the privacy level. Clients, pages and lists choose their texts: each has a bound."""

import time
from collections.abc import Callable
from typing import Final

from gatewayfilter.config import LogPrivacy
from gatewayfilter.interfaces import LogDetails
from gatewayfilter.model import LogRecord, Reason, Request, Verdict
from gatewayfilter.model.log_query import USER_PREFIX
from gatewayfilter.proxy.sync.client_key import hash_client
from gatewayfilter.proxy.sync.log_exclusions import LogExclusions

LONGEST_URL: Final = 1_800
"""Characters of a URL that are kept, with its length behind them. Two such records fit into one page of SQLite."""
_LONGEST_RULE: Final = 500
_LONGEST_NAME: Final = 100
_LONGEST_METHOD: Final = 20


class DecisionRecorder:
    """Makes log records of decisions at the privacy level, and passes them to the writer.

    Args:
        write: takes a record; must neither wait nor raise.
        privacy: how much of the URL is kept; `off` records nothing.
        client_key: a secret of this state folder; when given, clients are recorded as a keyed BLAKE2b hash of their address,
            so that they can be distinguished but not identified.
        clock: Unix seconds.
        details: of single clients, which outrank `privacy`; `None` for none.
        exclusions: the clients and hosts that are left out, `None` for none.
    """

    def __init__(
        self,
        write: Callable[[LogRecord], None],
        privacy: LogPrivacy = LogPrivacy.NO_QUERY,
        client_key: bytes | None = None,
        clock: Callable[[], float] = time.time,
        *,
        details: LogDetails | None = None,
        exclusions: LogExclusions | None = None,
    ) -> None:
        self._write = write
        self._privacy = privacy
        self._client_key = client_key
        self._clock = clock
        self._details = details
        self._exclusions = exclusions

    def record(self, request: Request, verdict: Verdict, elapsed_us: int) -> None:
        """Records a decision."""
        privacy = self._privacy
        if self._details is not None and self._details.varies_log:
            privacy = self._privacy_of(request.client, request.user)
        if privacy is LogPrivacy.OFF:
            return
        url = request.url
        left_out = self._exclusions
        if left_out is not None and (left_out.has_client(request.client, request.user) or left_out.has_host(url.host)):
            return
        if privacy is LogPrivacy.FULL:
            shown = url.text
        elif privacy is LogPrivacy.NO_QUERY:
            shown = url.text[: 1 - len(url.query)] if len(url.query) > 1 else url.text  # the mark shows that there was a query
        else:
            shown = url.host
        method = request.method
        self._write(
            LogRecord(  # by place, which takes half as long as by name
                self._clock(),
                request.client if self._client_key is None else self.client(request.client),
                method if len(method) <= _LONGEST_METHOD else method[:_LONGEST_METHOD],
                shown if len(shown) <= LONGEST_URL else _cut(shown, LONGEST_URL),
                request.resource_type._value_,  # `value` is a property of two calls
                verdict.action._value_,
                verdict.reason._value_,
                verdict.source_list[:_LONGEST_NAME],
                self._rule(verdict, privacy) if verdict.rule else "",
                verdict.category[:_LONGEST_NAME],
                elapsed_us,
                self._user(request.user) if request.user else "",
            )
        )

    def record_unreadable(self, client: str, method: str, verdict: Verdict, user: str = "") -> None:
        """Records a request that has no URL: malformed, lost to a failure of the filter, or of a client that may not log in.

        Args:
            client: its address.
            method: of the request.
            verdict: of the filter.
            user: name of an existing user; never what a client sent, which may be a password in the wrong field.
        """
        privacy = self._privacy
        if self._details is not None and self._details.varies_log:
            privacy = self._privacy_of(client, user)
        left_out = self._exclusions is not None and self._exclusions.has_client(client, user)
        if privacy is not LogPrivacy.OFF and not left_out:
            self._write(
                LogRecord(
                    at=self._clock(),
                    client=self.client(client),
                    method=method[:_LONGEST_METHOD],
                    url="",
                    resource_type="other",
                    action=verdict.action.value,
                    reason=verdict.reason.value,
                    user=self._user(user) if user else "",
                )
            )

    def _privacy_of(self, client: str, user: str) -> LogPrivacy:
        detail = self._details.log_detail(client, user) if self._details is not None else None
        return LogPrivacy(detail.value) if detail is not None else self._privacy

    def _rule(self, verdict: Verdict, privacy: LogPrivacy) -> str:
        rule = verdict.rule
        # An entry for one URL would hold what the URL column leaves out; an Adblock rule is the text of a public list.
        if privacy is not LogPrivacy.FULL and verdict.reason not in {Reason.ADBLOCK, Reason.ADBLOCK_EXCEPTION}:
            rule = rule.partition("?" if privacy is LogPrivacy.NO_QUERY else "/")[0]
        return rule if len(rule) <= _LONGEST_RULE else _cut(rule, _LONGEST_RULE)

    def _user(self, name: str) -> str:
        return name[:_LONGEST_NAME] if self._client_key is None else self.client(f"{USER_PREFIX}{name}")

    def client(self, address: str) -> str:
        """Returns how a client's address is written down."""
        if self._client_key is None:
            return address
        return hash_client(address, self._client_key)


def _cut(text: str, most: int) -> str:
    return f"{text[:most]}… ({len(text)} characters)"
