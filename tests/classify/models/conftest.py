import pytest

from gatewayfilter.classify.models.text_model import (
    TEXT_MODEL_FILE,
    TextModel,
)
from tests.classify.models.text_models import BUNDLED


@pytest.fixture(scope="module")
def bundled() -> TextModel:
    model = TextModel.load(BUNDLED / TEXT_MODEL_FILE)
    assert model is not None
    return model
