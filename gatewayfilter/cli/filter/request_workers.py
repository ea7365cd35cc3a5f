"""What decides the lines of `match`, in its own process and in workers, by the format of the lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gatewayfilter.cli.filter.jsonl_requests import RequestLines
from gatewayfilter.cli.filter.traffic_requests import TrafficLines
from gatewayfilter.scaleout.stream.deciding import RecordDecider
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat

if TYPE_CHECKING:
    from gatewayfilter.cli.bulk.json_lines import BulkLines
    from gatewayfilter.engine.engine_image import EngineImage
    from gatewayfilter.engine.filter_engine import FilterEngine


def lines_of(engine: FilterEngine, form: TrafficFormat, *, apart: bool) -> BulkLines:
    """Returns what decides lines of a format.

    Args:
        engine: decides them.
        form: of the lines.
        apart: lines without a verdict are kept apart.
    """
    decider = RecordDecider.over(engine)
    return RequestLines(decider, apart=apart) if form is TrafficFormat.JSON else TrafficLines(decider, form, apart=apart)


@dataclass(frozen=True, slots=True)
class RequestWorker:
    """What a worker process decides by. Implements `line_workers.OpenLines`.

    Attributes:
        image: of the engine.
        form: of the lines.
        apart: lines without a verdict are kept apart.
    """

    preload: ClassVar[tuple[str, ...]] = ("gatewayfilter.cli.filter.request_workers", "gatewayfilter.engine.engine_image")
    image: EngineImage
    form: TrafficFormat = TrafficFormat.JSON
    apart: bool = False

    def open(self) -> BulkLines:
        """Returns what decides lines, over the mapped image."""
        return lines_of(self.image.open(), self.form, apart=self.apart)
