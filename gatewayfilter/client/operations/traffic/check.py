"""The API of check. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class CheckModel(TypedDict):
    """What is in force for a URL."""

    url: str
    client: str
    verdict: VerdictModel
    answers: list[AnswerModel]
    unread: bool
    policies: list[str]
    values: list[ValueModel]
    schedules: list[str]
    quotas: list[dict[str, Any]]
    classification: str


class VerdictModel(TypedDict):
    """A verdict."""

    action: str
    reason: str
    list: str
    rule: str
    line: int
    category: str
    detail: str
    unknown: bool


class AnswerModel(TypedDict):
    """The answer of one decider."""

    decider: str
    answer: str
    explanation: str
    verdict: VerdictModel | None


class ValueModel(TypedDict):
    """A value of a policy that is in force."""

    key: str
    value: str
    origin: str
    policy: str


class CheckApi:
    """Operations of check."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def check_url(
        self,
        *,
        url: str | None = None,
        source: str | None = None,
        type: Literal[
            "document",
            "subdocument",
            "stylesheet",
            "script",
            "image",
            "font",
            "media",
            "object",
            "xmlhttprequest",
            "ping",
            "websocket",
            "other",
        ]
        | None = None,
        method: str | None = None,
        client: str | None = None,
        at: str | None = None,
    ) -> Answer[CheckModel]:
        """Returns the verdict on a URL, every decider's answer in order, and the policy in force. Nothing is fetched."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/check",
                query={"url": url, "source": source, "type": type, "method": method, "client": client, "at": at},
            )
        )
