"""Files of the text model: damaged ones, and ones that hold no model."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatewayfilter.classify.models.calibration import (
    INPUTS,
)
from gatewayfilter.classify.models.decision_trees import INNER, LEAVES
from gatewayfilter.classify.models.text_model import (
    BITS,
    TEXT_MODEL_FILE,
    TextModel,
    save,
)
from gatewayfilter.errors import ClassifyError
from tests.classify.models.text_models import NAMES, STEPS, calibration, made, trees

RARITY = np.tile(np.array([0, 255], np.uint8), 1 << BITS - 1)
"""Every second term is known."""


def arrays(**changed: Any) -> dict[str, Any]:
    right: dict[str, Any] = {
        "version": np.array([4, BITS]),
        "weights": np.zeros((1 + len(NAMES), len(RARITY) // 2), np.int8),
        "rarity": RARITY,
        "numbers": np.array([[0.1] * 3, [0.0] * 3]),
        **calibration().arrays(),
    }
    return {name: value for name, value in (right | changed).items() if value is not None}


@pytest.mark.parametrize(
    "changed",
    [
        {"version": np.array([1, BITS])},
        {"version": None},
        {"weights": np.zeros(7, np.int8)},
        {"weights": np.zeros((len(NAMES), len(RARITY) // 2), np.int8)},
        {"weights": np.zeros((1 + len(NAMES), len(RARITY)), np.int8)},  # more than there are known terms
        {"weights": np.zeros((1 + len(NAMES), len(RARITY) // 2), np.float32)},
        {"weights": np.array([{}, 1], dtype=object)},  # would be unpickled
        {"rarity": RARITY.astype(np.int8)},
        {"rarity": np.zeros(1 << BITS, np.uint8)},
        {"rarity": RARITY[: 1 << 19]},
        {"numbers": np.array([[np.nan] * 3, [0.0] * 3])},
        {"numbers": np.array([0.1, 0.0])},
        {"categories": np.array(["drugs", "drugs"])},
        {"categories": np.array([1, 2])},
        {"categories": np.array(["drugs"])},
        {"start": np.zeros(2)},
        {"start": np.array([np.nan])},
        {"inputs": None},
        {"inputs": np.array(0, np.int16)},
        {"inputs": np.zeros((0, INNER), np.int16)},
        {"inputs": np.full((len(STEPS), INNER), len(INPUTS), np.int16)},  # no such input
        {"inputs": np.full((len(STEPS), INNER), -1, np.int16)},
        {"inputs": np.zeros((len(STEPS), INNER), np.int32)},
        {"limits": np.zeros((len(STEPS), LEAVES), np.float32)},
        {"limits": np.full((len(STEPS), INNER), np.nan, np.float32)},
        {"leaves": np.zeros((7, LEAVES), np.float32)},
        {"leaves": np.full((len(STEPS), LEAVES), np.inf, np.float32)},
        {"knots": np.zeros((3, 8))},  # not ascending
        {"knots": np.zeros((2, 8))},
        {"passages": np.zeros(3)},
        {"passages": np.full(8, np.inf)},
        {"drugs_start": np.array([0.0])},  # trees of a category that lack all else
        {f"drugs_{name}": array[:1] if name == "limits" else array for name, array in trees().arrays().items()},
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    np.savez_compressed(tmp_path / TEXT_MODEL_FILE, **arrays(**changed))
    with pytest.raises(ClassifyError, match="is no model of this program"):
        TextModel.load(tmp_path / TEXT_MODEL_FILE)


def test_a_right_model_is_taken_and_none_is_none(tmp_path: Path) -> None:
    assert TextModel.load(tmp_path / TEXT_MODEL_FILE) is None
    told = np.arange(3 * (len(RARITY) // 2)).reshape(3, -1).astype(np.int8)
    np.savez_compressed(tmp_path / TEXT_MODEL_FILE, **arrays(weights=told))
    model = TextModel.load(tmp_path / TEXT_MODEL_FILE)
    assert model is not None
    assert (model.weights[:, 1::2] == told).all()
    assert not model.weights[:, ::2].any()


def test_the_same_model_is_the_same_file(tmp_path: Path) -> None:
    model = made(tmp_path, offer=1.0)
    save(model, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / TEXT_MODEL_FILE).read_bytes()


def test_a_file_never_holds_objects(tmp_path: Path) -> None:
    model = replace(made(tmp_path, offer=1.0), calibration=calibration(passages=np.array([None], object)))
    with pytest.raises(ValueError, match="allow_pickle"):
        save(model, tmp_path / "objects.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", bytes(20_000_000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TEXT_MODEL_FILE).write_bytes(content)
    with pytest.raises(ClassifyError):
        TextModel.load(tmp_path / TEXT_MODEL_FILE)


def test_a_file_with_any_byte_damaged_is_refused_or_read(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays())
    path, good = tmp_path / TEXT_MODEL_FILE, content.getvalue()
    refused = 0
    for index in range(0, len(good), 31):
        path.write_bytes(good[:index] + bytes([good[index] ^ 0x55]) + good[index + 1 :])
        try:
            TextModel.load(path)
        except ClassifyError:
            refused += 1
    assert refused > len(good) // 62


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays(weights=np.zeros(60_000_000, np.int8)))
    (tmp_path / TEXT_MODEL_FILE).write_bytes(content.getvalue())
    with pytest.raises(ClassifyError, match="too large"):
        TextModel.load(tmp_path / TEXT_MODEL_FILE)
