"""The keys of a column are those of the messages one by one."""

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

from gatewayfilter.scaleout.spark.partition_answers import keys_of  # noqa: E402
from gatewayfilter.scaleout.stream.worker.answers import Places  # noqa: E402

pytestmark = pytest.mark.services


@pytest.mark.parametrize("wanted", [None, [0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [4, 0, 2], []])
@pytest.mark.parametrize("partitions", [[("one", 0), ("one", 1), ("two", 0), ("one", 0), ("two", 0)], [("one", 0)] * 5])
def test_keys_are_those_of_places(wanted: list[int] | None, partitions: list[tuple[str, int]]) -> None:
    offsets = [0, 9, 255, 256, (1 << 63) - 1]
    places = Places(partitions, offsets)
    found = keys_of(places, None if wanted is None else np.array(wanted, np.int64))
    assert found.to_pylist() == [places.key(row).decode() for row in (range(5) if wanted is None else wanted)]
    found.validate(full=True)
