"""The keys of a column are those of the messages one by one."""

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

from gatewayfilter.scaleout.spark.partition_answers import keys_of  # noqa: E402
from gatewayfilter.scaleout.stream.worker.answers import Places  # noqa: E402


@pytest.mark.parametrize("wanted", [[0, 1, 2, 3, 4], [4, 0, 2], []])
def test_keys_are_those_of_places(wanted: list[int]) -> None:
    offsets = [0, 9, 255, 256, (1 << 63) - 1]
    places = Places([("one", 0), ("one", 1), ("two", 0), ("one", 0), ("two", 0)], offsets)
    found = keys_of(places, np.array(wanted, np.int64))
    assert found.to_pylist() == [places.key(row).decode() for row in wanted]
    found.validate(full=True)
