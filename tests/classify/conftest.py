"""Shared by the tests of the classifier."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.documents import text_density
from gatewayfilter.documents.html import markup
from gatewayfilter.settings import Strictness
from tests.classify.bundled_classifiers import bundled

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return Lexicon.load([ROOT / "lists" / "words"])


@pytest.fixture(scope="session")
def classifier(lexicon: Lexicon) -> PageClassifier:
    return PageClassifier(lexicon)


@pytest.fixture(scope="session")
def in_use() -> PageClassifier:
    """Words and text model, as they judge by default."""
    return bundled()


@pytest.fixture(scope="session")
def strict() -> PageClassifier:
    """Words and text model at the strictness that blocks most."""
    return bundled(Strictness.STRICT)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data, which is no part of the project."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no folder of real data: set GATEWAYFILTER_TEST_DATA")
    return folder


@pytest.fixture(scope="module", params=["compiled", "Python"])
def each_reading(request: pytest.FixtureRequest) -> Iterator[str]:
    """Has the tests of a module run with the compiled modules, and again with Python in their place."""
    if request.param == "compiled":
        if markup.compiled_reading() is None or text_density._compiled is None:
            pytest.skip("the compiled modules were not built")
        yield "compiled"
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(markup, "_reading", markup.PURE)
        patched.setattr(text_density, "_compiled", None)
        yield "Python"
