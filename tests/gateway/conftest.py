from pathlib import Path

import pytest

from gatewayfilter.gateway.runtime_state import RuntimeStateFile
from tests.gateway.gateway_fakes import FakeKernel


@pytest.fixture
def kernel() -> FakeKernel:
    return FakeKernel()


@pytest.fixture
def memory(tmp_path: Path) -> RuntimeStateFile:
    return RuntimeStateFile(tmp_path / "run")
