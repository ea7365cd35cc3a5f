"""The arithmetic of both models and the edges of their files: n-grams, windows, readings, bytes and what is refused."""

import os
import zipfile
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatewayfilter.classify.models import text_model
from gatewayfilter.classify.models.linear_model import BITS, MAX_CHARACTERS, LinearModel, features
from gatewayfilter.classify.models.model_file import Arrays, load_model
from gatewayfilter.classify.models.text_model import (
    MAX_TERM,
    MOST_PARTS,
    MOST_TERMS,
    WINDOW,
    TextModel,
    distinct_terms,
    of_windows,
    packed,
    plain_distinct_terms,
    save,
    terms_of,
    windows_of,
)
from gatewayfilter.classify.models.text_reading import LEAST_OF_BOTH, LEAST_OWN, NOTHING_READ, Reading
from gatewayfilter.errors import ClassifyError
from tests.case_tables import all_cases
from tests.classify.models.text_models import NAMES, calibration, trees

WEIGHTS = np.zeros(1 << BITS, np.float32)
NUMBERS = np.array([1.0, BITS, -0.5, 9.0, 4.0, 0.9, 7.0])


# --- the linear model -------------------------------------------------------------------------------------------------


def test_ngrams_of_one_to_four_characters_are_counted() -> None:
    found = features("abca")
    assert found.indices.tolist() == [21239, 26240, 69901, 73650, 75942, 82028, 85321, 128887, 207037]
    twice = found.indices.tolist().index(69901)  # "a"
    assert found.values[twice] == pytest.approx((2 / 10) ** 0.5)
    assert np.delete(found.values, twice).tolist() == pytest.approx([0.1**0.5] * 8)
    assert [len(features("abcdef"[:count]).indices) for count in range(7)] == [0, 1, 3, 6, 10, 14, 18]
    assert [found.indices.dtype.name, features("").indices.dtype.name] == ["uint32"] * 2
    assert [found.values.dtype.name, features("").values.dtype.name] == ["float32"] * 2
    long = "ab" * (MAX_CHARACTERS // 2)
    assert features(f"{long}c").indices.tolist() == features(long).indices.tolist()
    assert features(f"{long[:-1]}c").indices.tolist() != features(long).indices.tolist()
    assert len(features("a\ud800").indices) == 3


def test_a_model_weighs_what_a_text_holds() -> None:
    weights = WEIGHTS.copy()
    weights[features("ab").indices] = 1.0, 2.0, 4.0
    model = LinearModel(weights, -0.5, 2, 1, 0.9, 0.0)
    assert model.logit("ab") == pytest.approx(7 / 3**0.5 - 0.5)
    assert model.probability(" AB ") == pytest.approx(1 / (1 + exp(0.5 - 7 / 3**0.5)))
    for bias, logit in ((99.0, 30.0), (-99.0, -30.0)):
        assert LinearModel(WEIGHTS, bias, 2, 1, 0.9, 0.0).probability("") == 1 / (1 + exp(-logit))


def test_a_model_is_written_whole_into_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    model = LinearModel(WEIGHTS, -0.5, 9, 4, 0.9, 7.0)
    path = tmp_path / "a" / "b" / "model.npz"
    model.save(path)
    model.save(path)
    assert synced == [path.stat().st_size] * 2
    assert [each.name for each in path.parent.iterdir()] == ["model.npz"]
    assert path.parent.stat().st_mode & 0o777 == 0o700
    again = LinearModel.load(path)
    assert again is not None
    assert (again.bias, again.examples, again.harmful, again.auc, again.trained_at) == (-0.5, 9, 4, 0.9, 7.0)
    with pytest.raises(ClassifyError, match=r"^cannot write the model .*x\.npz: File exists$"):
        model.save(path / "x.npz")


@pytest.mark.parametrize(
    ("weights", "numbers", "said"),
    [
        (WEIGHTS, NUMBERS.astype(np.float32), "its numbers are damaged"),
        (WEIGHTS, np.append(NUMBERS, 0.0), "its numbers are damaged"),
        (WEIGHTS, np.append(NUMBERS[:-1], np.nan), "its numbers are damaged"),
        (WEIGHTS, np.append([2.0], NUMBERS[1:]), "it is of another version"),
        (WEIGHTS, np.array([1.0, BITS + 1, *NUMBERS[2:]]), "it is of another version"),
        (np.append(WEIGHTS, np.float32(0)), NUMBERS, "its weights are damaged"),
        (WEIGHTS.astype(np.float64), NUMBERS, "its weights are damaged"),
        (np.append(WEIGHTS[1:], np.float32(np.inf)), NUMBERS, "its weights are damaged"),
        (WEIGHTS, NUMBERS, ""),
    ],
)
def test_what_is_wrong_with_a_linear_model_is_named(tmp_path: Path, weights: Any, numbers: Any, said: str) -> None:
    path = tmp_path / "model.npz"
    np.savez_compressed(path, weights=weights, numbers=numbers)
    if not said:
        assert isinstance(LinearModel.load(path), LinearModel)
        return
    with pytest.raises(ClassifyError, match=rf"is no model of this program \({said}\): train it anew, or "):
        LinearModel.load(path)


# --- files of models --------------------------------------------------------------------------------------------------


def test_files_of_models_are_bounded_and_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez_compressed(path, a=np.zeros(20_000, np.uint8))
    packed_size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(item.file_size for item in archive.infolist())

    def size(arrays: Arrays) -> int:
        return len(arrays["a"])

    assert load_model(path, unpacked, size) == 20_000
    with pytest.raises(ClassifyError, match=r"is no model of this program \(it is too large\)$"):
        load_model(path, unpacked - 1, size)
    np.savez(path, a=np.zeros(100, np.uint8))
    with zipfile.ZipFile(path) as archive:
        assert sum(item.file_size for item in archive.infolist()) < path.stat().st_size
    assert load_model(path, path.stat().st_size, size) == 100
    with pytest.raises(ClassifyError, match=r"File is not a zip file\)!$"):
        load_model(path, path.stat().st_size - 1, size, "!")
    np.savez(path, a=np.array([{}], dtype=object))
    with pytest.raises(ClassifyError, match="pickle"):
        load_model(path, 8_000_000, size)
    assert load_model(tmp_path / "none", 9, size) is None
    with pytest.raises(ClassifyError, match=r"^cannot read the model .*: Not a directory$"):
        load_model(path / "x", 9, size)
    assert packed_size < unpacked


# --- the text model ---------------------------------------------------------------------------------------------------


@all_cases(
    ("own", "harmful", "confirms"),
    [
        (LEAST_OWN, -9.0, True), (LEAST_OWN - 0.01, -9.0, False), (-1.5, LEAST_OF_BOTH + 1.5, True),
        (-1.5, LEAST_OF_BOTH + 1.49, False), (0.0, 0.0, True),
    ],
)  # fmt: skip
def test_what_confirms_a_category(own: float, harmful: float, *, confirms: bool) -> None:
    reading = NOTHING_READ._replace(top=harmful, own_top=own, mean=0.25, own_mean=0.5)
    assert reading.confirms is confirms
    assert reading.total == 0.75


def test_the_most_harmful_third_of_windows() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0, 0.0]
    found = [of_windows(np.array(values[:count]))[1] for count in range(1, 7)]
    assert found == [5.0, 5.0, 5.0, 5.0, 4.5, 4.5]
    assert of_windows(np.array(values)) == [2.5, 4.5, 5.0]


def test_terms_and_their_windows() -> None:
    assert terms_of("aa bb cc").places.tolist() == [637501, 254263, 33414, 306433, 309132, 179085]
    words = [f"w{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(2 * WINDOW)]
    for count, windows in ((WINDOW + WINDOW // 2, 2), (WINDOW + WINDOW // 2 - 1, 1), (1, 1), (0, 1)):
        assert terms_of(" ".join(words[:count])).count == windows
    terms = terms_of(" ".join(words))
    assert terms.windows.tolist() == [0] * WINDOW + [1] * WINDOW + [0] * WINDOW + [1] * (WINDOW - 1) + [0] * WINDOW + [1] * (
        WINDOW - 2
    )
    first, second = windows_of(terms)
    assert (len(first), len(second)) == (3 * WINDOW, 3 * WINDOW - 3)
    assert first.tolist() == sorted({*terms.places[terms.windows == 0].tolist()})
    assert second.max() < 1 << text_model.BITS
    text = f"{' '.join(words)} {words[0]} {words[1]}"
    plain, other = plain_distinct_terms(text), distinct_terms(text)
    assert (plain.words, plain.window_count) == (other.words, other.window_count) == (2 * WINDOW + 2, 2)
    assert sorted(zip(plain.windows.tolist(), plain.places.tolist(), strict=True)) == sorted(
        zip(other.windows.tolist(), other.places.tolist(), strict=True)
    )
    assert plain.is_first.sum() == other.is_first.sum() == len({*plain.places.tolist()})
    assert plain.is_first.sum() < len(plain.places)


def test_terms_are_shown_up_to_a_length() -> None:
    terms = terms_of(f"{'x' * MAX_TERM}y 字 z")
    assert [terms.shown(index) for index in range(3)] == ["x" * MAX_TERM, "字", "z"]
    assert terms.shown(3) == "x" * MAX_TERM
    assert terms.shown(4) == "字z"


def known(**words: tuple[float, float, int]) -> TextModel:
    """Returns a model of words, each with its weights of all categories and of the first, and its rarity."""
    weights, rarity = np.zeros((3, 1 << text_model.BITS), np.int8), np.zeros(1 << text_model.BITS, np.uint8)
    for word, (common, own, rare) in words.items():
        place = terms_of(word).places[0]
        weights[:2, place], rarity[place] = (common, own), rare
    return TextModel(weights, rarity, np.array([0.5, 0.25, 1.0]), np.array([0.1, -0.2, 0.0]), calibration())


def test_a_reading_is_a_sum_by_rarity() -> None:
    model = known(aa=(4, 8, 255), bb=(-2, 2, 51))
    length = (1 + 0.2**2) ** 0.5
    read = model.read("aa bb", NAMES[0])
    assert read[:4] == pytest.approx([2 * 0.5 / length + 0.1] * 4)
    assert read[4:] == pytest.approx([10 * 0.25 / length - 0.2] * 4)
    assert model.read("none", NAMES[0]) == pytest.approx([0.1] * 4 + [-0.2] * 4)
    windows = model.read(" ".join(["aa"] * WINDOW + ["bb"] * WINDOW), NAMES[0])
    assert windows[:4] == pytest.approx([(2.0 + 0.1 - 5.0 + 0.1) / 2, 2.1, 2.1, 1 / length + 0.1])


def test_of_a_long_text_the_first_parts_and_the_last_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_model, "MAX_CHARACTERS", 4)
    read: list[str] = []

    def reading(_: TextModel, text: str, category: str) -> Reading:
        assert category == NAMES[1]
        read.append(text)
        return NOTHING_READ._replace(mean=float(text.count("x")))

    monkeypatch.setattr(TextModel, "read", reading)
    model = known()
    for text, parts in (
        ("", [""]), ("abc", ["abc"]), ("abcd", ["abcd"]), ("abcde", ["abcd", "e"]),
        ("abcd" * MOST_PARTS, ["abcd"] * MOST_PARTS), ("abcd" * (MOST_PARTS - 1) + "a", ["abcd"] * (MOST_PARTS - 1) + ["a"]),
        ("abcd" * MOST_PARTS + "x", ["abcd"] * (MOST_PARTS - 1) + ["bcdx"]),
    ):  # fmt: skip
        read.clear()
        found = model.read_parts(text, NAMES[1])
        assert read == parts
        assert found.mean == text.count("x")
    assert model.read_parts("abcdxxabxxx", NAMES[1]).mean == 3


def test_the_terms_that_tell_most() -> None:
    assert MOST_TERMS == 3
    model = known(aa=(1, 0, 255), bb=(2, 0, 255), cc=(3, 0, 255), dd=(4, 0, 255), ee=(-9, 0, 255), ff=(0, 0, 255))
    assert model.telling("aa bb cc dd ee ff", NAMES[0], harmful=True) == ("bb", "cc", "dd")
    assert model.telling("dd dd ee ff", NAMES[0], harmful=True) == ("dd",)
    assert model.telling("dd cc ff ee", NAMES[0], harmful=False) == ("ee",)
    undecided = known(aa=(1, -2, 255), bb=(1, -1, 255))  # 0.5 - 0.5 and 0.5 - 0.25
    assert undecided.telling("aa bb", NAMES[0], harmful=True) == ("bb",)
    assert undecided.telling("aa bb", NAMES[0], harmful=False) == ()
    assert model.telling("ff", NAMES[0], harmful=True) == ()


def test_weights_are_kept_in_a_byte_each() -> None:
    weights = np.zeros((3, 1 << text_model.BITS))
    weights[0, :4] = 1.0, -0.5, 0.25, 0.1
    weights[1, :20_001] = 1.0
    weights[1, :2] = -50.0, 50.0  # two of 20,001 are cut off
    model = packed(weights, np.full(1 << text_model.BITS, 255, np.uint8), np.array([1.0, 2.0, 3.0]), calibration())
    largest = float(np.quantile([1.0, 0.5, 0.25, 0.1], 0.9999))
    assert model.scale == pytest.approx([largest / 127, 1 / 127, 1.0])
    assert model.weights[0, :5].tolist() == [127, -64, 32, 13, 0]
    assert model.weights[1, :3].tolist() == [-127, 127, 127]
    assert (model.weights.dtype.name, model.bias.tolist()) == ("int8", [1.0, 2.0, 3.0])
    assert not model.weights[2].any()


def test_a_model_is_written_in_small_and_by_name(tmp_path: Path) -> None:
    model = known(aa=(4, 8, 255), bb=(-2, 2, 51), cc=(3, 3, 1))
    save(model, tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        items = {item.filename: item for item in archive.infolist()}
    own = {f"{name}.npy" for name in calibration().arrays()}
    assert set(items) == own | {"version.npy", "weights.npy", "rarity.npy", "numbers.npy"}
    assert {item.compress_type for item in items.values()} == {zipfile.ZIP_DEFLATED}
    again = TextModel.load(tmp_path / "m.npz")
    assert again is not None
    assert (again.weights == model.weights).all()
    assert (again.scale.tolist(), again.bias.tolist()) == (model.scale.tolist(), model.bias.tolist())
    assert again.additive == frozenset()


def arrays_of(categories: int, **changed: Any) -> dict[str, Any]:
    """Returns the arrays of a model of one known word."""
    rarity = np.zeros(1 << text_model.BITS, np.uint8)
    rarity[7] = 255
    names = [f"c{number}" for number in range(categories)]
    knots = np.repeat([[0.0], [1.0], [2.0]], 4 * categories, axis=1)
    made: dict[str, Any] = {
        "version": np.array([4, text_model.BITS]), "weights": np.ones((1 + categories, 1), np.int8), "rarity": rarity,
        "numbers": np.ones((2, 1 + categories)), "categories": np.array(names), "knots": knots, "passages": knots[0],
        **trees().arrays(),
    }  # fmt: skip
    return made | changed


@all_cases(
    ("arrays", "said"),
    [
        (arrays_of(6), ""),
        (arrays_of(7), "its weights are damaged"),  # more than is held in memory
        (arrays_of(2, version=np.array([4, text_model.BITS, 0])), "it is of another version"),
        (arrays_of(2, version=np.array([4, text_model.BITS + 1])), "it is of another version"),
        (arrays_of(2, rarity=np.zeros((1 << text_model.BITS, 1), np.uint8)), "its weights are damaged"),
        (arrays_of(2, rarity=arrays_of(2)["rarity"].astype(np.uint16)), "its weights are damaged"),
        (arrays_of(2, weights=np.ones((2, 1), np.int8)), "its weights are damaged"),
        (arrays_of(2, weights=np.ones((3, 1), np.int16)), "its weights are damaged"),
        (arrays_of(2, numbers=np.ones((2, 4))), "its weights are damaged"),
        (arrays_of(2, numbers=np.ones((2, 3), np.float32)), "its weights are damaged"),
        (arrays_of(2, numbers=np.full((2, 3), np.inf)), "its weights are damaged"),
    ],
)
def test_what_is_wrong_with_a_text_model_is_named(arrays: dict[str, Any], said: str) -> None:
    if said:
        with pytest.raises(ValueError, match=said):
            TextModel._checked(arrays)
        return
    model = TextModel._checked(arrays)
    assert model.weights.shape == (7, 1 << text_model.BITS)
    assert np.flatnonzero(model.weights[0]).tolist() == [7]
