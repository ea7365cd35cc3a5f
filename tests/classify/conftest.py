"""Shared by the tests of the classifier."""

import os
from pathlib import Path

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return Lexicon.load([ROOT / "lists" / "words"])


@pytest.fixture(scope="session")
def classifier(lexicon: Lexicon) -> PageClassifier:
    return PageClassifier(lexicon)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data, which is no part of the project."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no folder of real data: set GATEWAYFILTER_TEST_DATA")
    return folder
