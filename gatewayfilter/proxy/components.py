"""The components of a proxy worker, as `gatewayfilter.wiring.proxy` joins them and `LeanMaster` runs them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.listener.services import ConnectionServices
from gatewayfilter.telemetry import Counters


@dataclass(frozen=True, slots=True)
class WorkerComponents:
    """What a proxy process runs.

    Attributes:
        addon: the filter.
        counters: shown in the status file.
        start, stop: begin and end what runs beside the event loop; `stop` writes out what is queued.
        facts: what the status file shows of the lists in use. Called once a second, in a thread.
        services: how connections are decided.
    """

    addon: GatewayAddon
    counters: Counters
    start: Callable[[], None]
    stop: Callable[[], None]
    facts: Callable[[], Mapping[str, object]]
    services: ConnectionServices = field(default_factory=ConnectionServices)
