"""What of a decision leaves the proxy for the log."""

import time
from collections.abc import Callable
from hashlib import blake2b

from gatewayfilter.config import LogPrivacy
from gatewayfilter.model import LogRecord, Reason, Request, Verdict

_HASH_BYTES = 8


class DecisionRecorder:
    """Turns decisions into log records as the privacy level says, and hands them on.

    Args:
        write: takes a record; must neither wait nor raise.
        privacy: how much of the URL is kept; `off` records nothing.
        client_key: a secret of this state folder; when given, clients are recorded as a keyed BLAKE2b hash of their address,
            so that they can be told apart but not named.
        clock: Unix seconds.
    """

    def __init__(
        self,
        write: Callable[[LogRecord], None],
        privacy: LogPrivacy = LogPrivacy.FULL,
        client_key: bytes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._write = write
        self._privacy = privacy
        self._client_key = client_key
        self._clock = clock

    def record(self, request: Request, verdict: Verdict, elapsed_us: int) -> None:
        """Records a decision."""
        if self._privacy is LogPrivacy.OFF:
            return
        url = request.url
        if self._privacy is LogPrivacy.FULL:
            shown = url.text
        elif self._privacy is LogPrivacy.NO_QUERY:
            shown = url.text.removesuffix(url.query)
        else:
            shown = url.host
        self._write(
            LogRecord(  # by place, which takes half as long as by name
                self._clock(),
                self.client(request.client),
                request.method,
                shown,
                request.resource_type.value,
                verdict.action.value,
                verdict.reason.value,
                verdict.source_list,
                self._rule(verdict),
                verdict.category,
                elapsed_us,
            )
        )

    def record_unreadable(self, client: str, method: str, verdict: Verdict) -> None:
        """Records a request that has no URL: malformed, or lost to a failure of the filter."""
        if self._privacy is not LogPrivacy.OFF:
            self._write(
                LogRecord(
                    at=self._clock(),
                    client=self.client(client),
                    method=method[:20],
                    url="",
                    resource_type="other",
                    action=verdict.action.value,
                    reason=verdict.reason.value,
                )
            )

    def _rule(self, verdict: Verdict) -> str:
        # An entry for one URL would say what the URL column leaves out; an Adblock rule is the text of a public list.
        if self._privacy is LogPrivacy.FULL or verdict.reason in {Reason.ADBLOCK, Reason.ADBLOCK_EXCEPTION}:
            return verdict.rule
        return verdict.rule.partition("?" if self._privacy is LogPrivacy.NO_QUERY else "/")[0]

    def client(self, address: str) -> str:
        """Returns how a client's address is written down."""
        if self._client_key is None:
            return address
        return blake2b(address.encode(), digest_size=_HASH_BYTES, key=self._client_key).hexdigest()
