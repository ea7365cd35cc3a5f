"""The API's document, made once."""

import json
import zlib
from typing import Any

import pytest

from gatewayfilter.web.app import compressed_document


@pytest.fixture(scope="session")
def api_document() -> dict[str, Any]:
    """Returns the OpenAPI document that a dashboard serves."""
    found: dict[str, Any] = json.loads(zlib.decompress(compressed_document()))
    return found
