"""What was consumed is taken as it is while nothing was passed over; a batch that cannot be decompressed is passed over."""

from typing import Any, cast

import pytest

pytest.importorskip("confluent_kafka")

from gatewayfilter.scaleout.unreadable_batches import UnreadableBatches


class Fault:
    """An error of librdkafka, by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        raise SystemError("errors of librdkafka cannot be compared")

    __hash__ = object.__hash__


class Consumed:
    """A message, or a fault in its place."""

    def __init__(self, offset: int, fault: str = "") -> None:
        self._offset = offset
        self._fault = Fault(fault) if fault else None

    def error(self) -> Fault | None:
        return self._fault

    def topic(self) -> str:
        return "traffic"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return self._offset


class Seeker:
    """A consumer that notes where it is sent."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def seek(self, place: Any) -> None:
        self.offsets.append(place.offset)


def test_messages_are_told_from_faults_and_from_what_is_behind_them() -> None:
    seeker = Seeker()
    unreadable = UnreadableBatches(cast("Any", seeker))

    def are_messages(*consumed: Consumed) -> bool:
        return unreadable.are_messages(cast("Any", list(consumed)))

    assert are_messages()
    assert are_messages(Consumed(1), Consumed(2))
    assert not are_messages(Consumed(1), Consumed(2, "_PARTITION_EOF"))
    assert unreadable.passed(cast("Any", Consumed(2, "_PARTITION_EOF"))) is None
    assert are_messages(Consumed(1))
    assert unreadable.passed(cast("Any", Consumed(3, "_BAD_COMPRESSION"))) == 3
    assert not are_messages(Consumed(5))
    assert unreadable.passed(cast("Any", Consumed(3, "_BAD_COMPRESSION"))) == 4
    assert unreadable.passed(cast("Any", Consumed(5))) is None
    assert are_messages(Consumed(6))
    assert seeker.offsets == [4, 5]
