"""Gateway up, down and status. `up` is a sequence of steps; when one fails, those before it are rolled back."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.nft import Kernel
from gatewayfilter.gateway.plan import GatewayPlan
from gatewayfilter.gateway.ruleset import close_way, digest, open_way, ruleset, tried_ruleset, unload
from gatewayfilter.gateway.runtime_state import RuntimeState, RuntimeStateFile

_FORWARD4: Final = "net/ipv4/ip_forward"
_FORWARD6: Final = "net/ipv6/conf/all/forwarding"
_POLL_S: Final = 0.1
_COUNTER: Final = re.compile(r"(?:(udp|tcp) dport (\S+|\{[^}]*\}) )counter packets (\d+) bytes \d+ (redirect|reject)")


class GatewayState(StrEnum):
    """The state of the kernel compared with the plan."""

    DOWN = "down"
    UP = "up"
    OPEN = "open"
    OUTDATED = "outdated"
    CHANGED = "changed"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """The status shown by `gateway status`.

    Attributes:
        state: `up` as planned; `open`: up, but web traffic bypasses the filter because no worker listens or answers; `outdated`:
            loaded from other settings; `changed`: the rules were changed since; `foreign`: the table is there, but
            `gateway up` did not load it (or not since the last restart); `down`.
        problems: one sentence each.
        listening: families (4, 6) in which the filter's port listens.
        forwarding: families that the kernel forwards.
        redirected: connections sent to the filter since the rules were loaded.
        quic_refused: datagrams of QUIC refused since.
        fail_open: whether traffic bypasses the filter while no worker listens or answers.
        watched: whether a watchdog runs, which opens the bypass.
    """

    state: GatewayState
    problems: tuple[str, ...]
    listening: tuple[int, ...]
    forwarding: tuple[int, ...]
    redirected: int
    quic_refused: int
    fail_open: bool
    watched: bool


class Gateway:
    """This machine as the LAN's gateway.

    Args:
        plan: the wanted state.
        kernel: that is configured.
        memory: runtime state, stored for `down` and `status`.
    """

    def __init__(self, plan: GatewayPlan, kernel: Kernel, memory: RuntimeStateFile) -> None:
        self._plan = plan
        self._kernel = kernel
        self._memory = memory

    def up(self, *, wait_s: float = 0.0, check: bool = True) -> bool:
        """Loads the rules and switches forwarding on. Idempotent.

        Args:
            wait_s: maximum wait for the filter's port.
            check: whether the filter must listen; if it does not, everything is rolled back.

        Returns:
            Whether anything was changed.

        Raises:
            GatewayError: one sentence; nothing has changed then.
        """
        with self._memory.changing():
            return self._up(wait_s, check=check)

    def _up(self, wait_s: float, *, check: bool) -> bool:
        plan, kernel = self._plan, self._kernel
        if missing := sorted(set(plan.lan) - kernel.interfaces()):
            raise GatewayError(f"there is no interface {', '.join(missing)}; there are {', '.join(sorted(kernel.interfaces()))}")
        before = self._memory.read()
        kernel.load(tried_ruleset(plan), check_only=True)
        if check:
            self._must_listen(wait_s)
        was_up = before is not None and self.status().state is GatewayState.UP and before.fail_open == plan.fail_open
        with ExitStack() as undo:
            switches = dict(before.switches) if before is not None else {}
            changed = self._switch_on(switches, undo)
            if not was_up:
                previous = kernel.listing()
                kernel.load(ruleset(plan))
                undo.callback(kernel.load, f"{unload()}{previous}")
                changed = True
            self._verify(check=check)
            self._memory.write(
                RuntimeState(
                    digest=digest(plan),
                    listing=kernel.listing(),
                    switches=switches,
                    fail_open=plan.fail_open,
                    quic_rejected=plan.reject_quic,
                    dot_rejected=plan.reject_dot,
                    lan=plan.lan,
                )
            )
            undo.pop_all()
        return changed

    def down(self) -> bool:
        """Removes the rules and restores the switches to their values before `up`. Returns whether anything was loaded."""
        return take_down(self._kernel, self._memory)

    def restore(self) -> bool:
        """Reloads the rules if they were removed without a `down`, as by `nft flush ruleset`. Returns whether it did.

        Raises:
            GatewayError: one sentence; nothing has changed then.
        """
        if self._kernel.has_table():
            return False
        with self._memory.changing():
            # Tested again under the lock: a concurrent `down` removes the table before the stored state.
            if self._memory.read() is None or self._kernel.has_table():
                return False
            return self._up(0, check=False)

    def open_way(self) -> None:
        """Lets web traffic bypass the filter."""
        self._set_way(open_way(), opened=True)

    def close_way(self) -> None:
        """Sends web traffic through the filter again."""
        self._set_way(close_way(self._plan), opened=False)

    def _set_way(self, rules: str, *, opened: bool) -> None:
        with self._memory.changing():
            memory = self._memory.read()
            if memory is None:
                raise GatewayError("the gateway is not up")
            self._kernel.load(rules)
            self._memory.write(replace(memory, opened=opened, listing=self._kernel.listing()))

    def status(self) -> GatewayStatus:
        """Compares the kernel with the plan."""
        kernel, plan = self._kernel, self._plan
        listing, memory = kernel.listing(), self._memory.read()
        state = self._state(listing, memory)
        counted = kernel.counted() if listing else ""
        listening = kernel.listens(plan.proxy_port)
        forwarding = tuple(family for family, name in ((4, _FORWARD4), (6, _FORWARD6)) if kernel.switch(name) == "1")
        redirected, refused = _counters(counted)
        return GatewayStatus(
            state=state,
            problems=(*self._problems(state, listening, forwarding), *self._unwatched(memory)),
            listening=tuple(sorted(listening)),
            forwarding=forwarding,
            redirected=redirected,
            quic_refused=refused,
            fail_open=memory.fail_open if memory is not None else False,
            watched=self._memory.is_watched(),
        )

    def _state(self, listing: str, memory: RuntimeState | None) -> GatewayState:
        if not listing:
            return GatewayState.DOWN
        if memory is None:
            return GatewayState.FOREIGN
        if listing != memory.listing:
            return GatewayState.CHANGED
        if memory.digest != digest(self._plan):
            return GatewayState.OUTDATED
        return GatewayState.OPEN if memory.opened else GatewayState.UP

    def _problems(self, state: GatewayState, listening: frozenset[int], forwarding: tuple[int, ...]) -> Iterator[str]:
        if state in {GatewayState.OUTDATED, GatewayState.CHANGED, GatewayState.FOREIGN}:
            yield f"{_WHY[state]}: gateway up loads what is wanted, gateway down removes it"
        if state is GatewayState.DOWN:
            return
        if not listening:
            what = "goes past the filter" if state is GatewayState.OPEN else "is refused"
            yield f"nothing listens on port {self._plan.proxy_port}, so web traffic {what}: start the filter"
        elif self._plan.ipv6 and 6 not in listening:
            yield "the filter listens for IPv4 alone, so IPv6 web traffic is refused"
        if 4 not in forwarding:
            yield "the kernel does not forward IPv4: gateway up switches it on"
        if 6 not in forwarding and self._kernel.switch(_FORWARD6) is not None:
            yield "the kernel does not forward IPv6: gateway up switches it on"

    def _unwatched(self, memory: RuntimeState | None) -> Iterator[str]:
        if memory is not None and memory.fail_open and not self._memory.is_watched():
            yield "fail-open is on, but no watchdog is running: gateway up --fail-open starts one"

    def _verify(self, *, check: bool) -> None:
        """Compares the kernel with the rules that were loaded."""
        if not self._kernel.has_table():
            raise GatewayError("the kernel lost the rules again; nothing was changed")
        for name, wanted in _switches(self._plan, self._kernel):
            if self._kernel.switch(name) not in {wanted, None}:
                raise GatewayError(f"{name.replace('/', '.')} does not stay {wanted}; nothing was changed")
        if check and not self._kernel.listens(self._plan.proxy_port):
            raise GatewayError(f"the filter stopped to listen on port {self._plan.proxy_port}; nothing was changed")

    def _switch_on(self, switches: dict[str, str], undo: ExitStack) -> bool:
        changed = False
        for name, wanted in _switches(self._plan, self._kernel):
            now = self._kernel.switch(name)
            if now is None or now == wanted:
                continue
            self._kernel.set_switch(name, wanted)
            undo.callback(self._kernel.set_switch, name, now)
            switches.setdefault(name, now)
            changed = True
        return changed

    def _must_listen(self, wait_s: float) -> None:
        port = self._plan.proxy_port
        if not _until(lambda: bool(self._kernel.listens(port)), wait_s):
            raise GatewayError(
                f"nothing listens on port {port}, so all web traffic of the LAN would be refused; nothing was changed. "
                "Start the filter first, give --wait, or --no-check to close the way regardless"
            )


_WHY: Final = {
    GatewayState.OUTDATED: "the rules were loaded from other settings",
    GatewayState.CHANGED: "the rules were changed since they were loaded",
    GatewayState.FOREIGN: "the rules were not loaded by gateway up",
}


def take_down(kernel: Kernel, memory: RuntimeStateFile) -> bool:
    """Removes the rules and restores the switches; like `Gateway.down`, without a plan."""
    with memory.changing():
        before = memory.read()
        was_there = kernel.has_table()
        kernel.load(unload())
        for name, value in (before.switches if before is not None else {}).items():
            if kernel.switch(name) not in {value, None}:
                kernel.set_switch(name, value)
        memory.forget()
        return was_there or before is not None


def _switches(plan: GatewayPlan, kernel: Kernel) -> Iterator[tuple[str, str]]:
    # A router ignores router advertisements unless accept_ra is 2: the uplink would lose its address.
    for interface in sorted(kernel.interfaces() - set(plan.lan) - {"lo"}):
        if kernel.switch(f"net/ipv6/conf/{interface}/accept_ra") == "1":
            yield f"net/ipv6/conf/{interface}/accept_ra", "2"
    yield _FORWARD4, "1"
    yield _FORWARD6, "1"
    # On a gateway with one interface the kernel would send ICMP redirects to devices, past the filter.
    yield "net/ipv4/conf/all/send_redirects", "0"
    for interface in plan.lan:
        yield f"net/ipv4/conf/{interface}/send_redirects", "0"


def _until(ask: Callable[[], bool], wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while not ask():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _counters(counted: str) -> tuple[int, int]:
    redirected = refused = 0
    for protocol, ports, packets, what in _COUNTER.findall(counted):
        if what == "redirect":
            redirected += int(packets)
        elif protocol == "udp" and "853" not in ports:
            refused += int(packets)
    return redirected, refused
