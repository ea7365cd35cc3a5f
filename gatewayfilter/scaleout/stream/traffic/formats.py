"""The formats of recorded traffic, by name."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gatewayfilter.scaleout.stream.traffic.access_logs import CombinedReader, SquidReader
from gatewayfilter.scaleout.stream.traffic.lines import JsonReader
from gatewayfilter.scaleout.stream.traffic.probes import TsharkReader
from gatewayfilter.scaleout.stream.traffic.zeek import ZeekReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gatewayfilter.scaleout.stream.traffic.lines import LineReader


class TrafficFormat(StrEnum):
    """The format of a line of recorded traffic."""

    JSON = "jsonl"
    SQUID = "squid"
    COMBINED = "combined"
    ZEEK = "zeek"
    TSHARK = "tshark"


_READERS: Final[Mapping[TrafficFormat, Callable[[], LineReader]]] = {
    TrafficFormat.JSON: JsonReader,
    TrafficFormat.SQUID: SquidReader,
    TrafficFormat.COMBINED: CombinedReader,
    TrafficFormat.ZEEK: ZeekReader,
    TrafficFormat.TSHARK: TsharkReader,
}


def reader_of(name: TrafficFormat) -> LineReader:
    """Returns a reader of a format."""
    return _READERS[name]()
