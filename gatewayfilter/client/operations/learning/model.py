"""The API of model. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class OpinionModel(TypedDict):
    """The model."""

    used: bool
    examples: NotRequired[int]
    harmful: NotRequired[int]
    auc: NotRequired[float]
    trained_at: NotRequired[float]


class FalseBlocksModel(TypedDict):
    """False blocks that people found."""

    weeks: list[FalseBlockModel]
    lowered: list[LoweredModel]


class FalseBlockModel(TypedDict):
    """Decisions of a week in a category."""

    week: str
    category: str
    decided: int
    false_blocks: int
    rate: float | None
    reviewed: int


class LoweredModel(TypedDict):
    """A word that weighs less in second looks, by rejected pages."""

    category: str
    word: str
    factor: float
    rejected: int
    approved: int


class ModelApi:
    """Operations of model."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_model(self) -> Answer[OpinionModel]:
        """Returns what the model in use was trained on and how well it does."""
        return self._transport.send(Call("GET", "/api/v1/model"))

    def remove_model(self) -> Answer[bytes]:
        """Removes the model: pages are judged by words alone. None is trained by itself afterwards."""
        return self._transport.send(Call("DELETE", "/api/v1/model"))

    def train_model(self) -> Answer[OpinionModel]:
        """Trains on the decided reviews; `used` is false, and the old model stays, where that is little better than chance."""
        return self._transport.send(Call("POST", "/api/v1/model/train"))

    def get_false_blocks(self, *, weeks: int | None = None) -> Answer[FalseBlocksModel]:
        """Returns how many blocked pages people found harmless, and which words weigh less since."""
        return self._transport.send(Call("GET", "/api/v1/model/false-blocks", query={"weeks": weeks}))
