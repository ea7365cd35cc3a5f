"""Log records of decisions, cut to the privacy level. Clients, pages and lists choose their texts: each has a bound."""

import time
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from gatewayfilter.config import LogPrivacy
from gatewayfilter.interfaces import LogDetails
from gatewayfilter.model import LogRecord, Reason, Request, Verdict

_HASH_BYTES = 8
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
    """

    def __init__(
        self,
        write: Callable[[LogRecord], None],
        privacy: LogPrivacy = LogPrivacy.FULL,
        client_key: bytes | None = None,
        clock: Callable[[], float] = time.time,
        *,
        details: LogDetails | None = None,
    ) -> None:
        self._write = write
        self._privacy = privacy
        self._client_key = client_key
        self._clock = clock
        self._details = details

    def record(self, request: Request, verdict: Verdict, elapsed_us: int) -> None:
        """Records a decision."""
        privacy = self._privacy
        if self._details is not None and self._details.varies_log:
            privacy = self._privacy_of(request.client, request.user)
        if privacy is LogPrivacy.OFF:
            return
        url = request.url
        if privacy is LogPrivacy.FULL:
            shown = url.text
        elif privacy is LogPrivacy.NO_QUERY:
            shown = url.text.removesuffix(url.query)
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
            )
        )

    def record_unreadable(self, client: str, method: str, verdict: Verdict) -> None:
        """Records a request that has no URL: malformed, or lost to a failure of the filter."""
        privacy = self._privacy
        if self._details is not None and self._details.varies_log:
            privacy = self._privacy_of(client, "")
        if privacy is not LogPrivacy.OFF:
            self._write(
                LogRecord(
                    at=self._clock(),
                    client=self.client(client),
                    method=method[:_LONGEST_METHOD],
                    url="",
                    resource_type="other",
                    action=verdict.action.value,
                    reason=verdict.reason.value,
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

    def client(self, address: str) -> str:
        """Returns how a client's address is written down."""
        if self._client_key is None:
            return address
        return blake2b(address.encode(), digest_size=_HASH_BYTES, key=self._client_key).hexdigest()


def _cut(text: str, most: int) -> str:
    return f"{text[:most]}… ({len(text)} characters)"
