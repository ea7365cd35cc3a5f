"""A kernel in memory, with what can go wrong in a real one."""

from dataclasses import dataclass, field

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.nft import Kernel
from gatewayfilter.gateway.ruleset import TABLE


@dataclass
class FakeKernel(Kernel):
    """Keeps what was loaded; `fail_at` names the switch, or `load`, that is refused.

    Attributes:
        stopped_after: how many times `listens` finds the filter before it is gone.
    """

    table: str = ""
    switches: dict[str, str] = field(
        default_factory=lambda: {
            "net/ipv4/ip_forward": "0",
            "net/ipv6/conf/all/forwarding": "0",
            "net/ipv4/conf/all/send_redirects": "1",
            "net/ipv4/conf/lan0/send_redirects": "1",
            "net/ipv6/conf/wan0/accept_ra": "1",
        }
    )
    ports: dict[int, frozenset[int]] = field(default_factory=lambda: {8080: frozenset({4, 6})})
    fail_at: str = ""
    stopped_after: int = 1_000_000

    def load(self, ruleset: str, *, check_only: bool = False) -> None:
        if self.fail_at == "load" and not check_only and "chain" in ruleset:
            raise GatewayError("nft refuses the rules: as the test wants it")
        if check_only:
            return
        if ruleset.startswith(f"flush chain inet {TABLE}"):
            if not self.table:
                raise GatewayError("nft refuses the rules: no such table")
            self.table = self.table.partition("\n# changed")[0] + ("\n# changed: open" if "add rule" not in ruleset else "")
            return
        body = ruleset.partition(f"delete table inet {TABLE}\n")[2]
        self.table = body.strip()

    def listing(self) -> str:
        return self.table

    def counted(self) -> str:
        return self.table

    def has_table(self) -> bool:
        return bool(self.table)

    def interfaces(self) -> frozenset[str]:
        return frozenset({"lo", "lan0", "wan0"})

    def switch(self, name: str) -> str | None:
        return self.switches.get(name)

    def set_switch(self, name: str, value: str) -> None:
        if name == self.fail_at and value != "0":
            raise GatewayError(f"cannot set {name}")
        self.switches[name] = value

    def listens(self, port: int) -> frozenset[int]:
        self.stopped_after -= 1
        return self.ports.get(port, frozenset()) if self.stopped_after >= 0 else frozenset()
