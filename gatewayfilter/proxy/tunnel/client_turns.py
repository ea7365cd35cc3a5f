"""Fair queueing of clients in a worker's event loop: which of the sockets that are ready are read in this turn.

With few sockets ready, all of them are read, and nothing here runs. With many, each client in turn gives one, until the time of a
turn is used up; the others stay in the kernel, whose epoll reports them again. Sockets of origins are always read: what they
answer was admitted before. So a client waits for as many others as there are, not for as many connections as one has.

Those that have waited longest come first. The order of epoll is no queue: a socket that is ready again before the next poll,
as one of an endless upload, keeps its place at the head, and so would a crowd of them.

How long the sockets that were left would take is the worker's backlog, by which the listener refuses new connections.
"""

from time import monotonic
from typing import Final

_READ: Final = 1
_GONE: Final = 8 | 16
CROWD: Final = 32
"""Sockets ready at once above which clients take turns: some 15 ms of work."""
_TURN_S: Final = 0.015
_FEWEST: Final = 4
_MOST: Final = 64
_USUAL_S: Final = 0.0005
_FEW: Final = 6
"""Sockets of one client that count for the others' wait."""
_WEIGHT: Final = 0.2

type Owner = tuple[str]
"""The client of one connection. Those of a client are equal, and not identical."""


class ClientTurns:
    """Selects the sockets of one event loop that are served next.

    Attributes:
        behind_s: how long it would take to serve all sockets of clients that are ready, in seconds; 0 while none waits.
        spread_s: the same with a few sockets of each client: what one client alone has ready makes no others wait.
    """

    __slots__ = ("_began", "_clients", "_each_s", "_owners", "_round", "_served", "_sockets", "behind_s", "spread_s")

    def __init__(self) -> None:
        self.behind_s = 0.0
        self.spread_s = 0.0
        self._round = 0
        self._clients: dict[Owner, int] = {}
        self._sockets: dict[int, int] = {}
        self._owners: dict[int, Owner] = {}
        self._each_s = _USUAL_S
        self._served = 0
        self._began = 0.0

    def own(self, descriptor: int, client: str) -> Owner:
        """Counts a socket as one of a client. Returns what ends that, with `disown`."""
        self._owners[descriptor] = owner = (client,)
        return owner

    def disown(self, descriptor: int, owner: Owner | None) -> None:
        """Ends what `own` began, unless the descriptor has become another connection's."""
        if owner is not None and self._owners.get(descriptor) is owner:
            del self._owners[descriptor]

    def take(self, happened: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns those of many ready sockets that are to be served now, in an order that is fair to clients."""
        now = monotonic()
        if self._served:
            self._each_s += _WEIGHT * ((now - self._began) / self._served - self._each_s)
        owners = self._owners
        taken: list[tuple[int, int]] = []
        waiting: dict[Owner, list[tuple[int, int]]] = {}
        for one in happened:
            if one[1] & _READ and not one[1] & _GONE and (client := owners.get(one[0])) is not None:
                waiting.setdefault(client, []).append(one)
            else:
                taken.append(one)
        room = min(max(int(_TURN_S / self._each_s), _FEWEST), _MOST)
        left = sum(map(len, waiting.values()))
        spread = sum(min(len(found), _FEW) for found in waiting.values()) - min(room, left)
        queue = self._queue(waiting)
        rank = 0
        while left and room:
            for client, found in [pair for pair in queue if len(pair[1]) > rank][:room]:
                one = found[rank]
                self._clients[client] = self._sockets[one[0]] = self._round + 1
                taken.append(one)
                left -= 1
                room -= 1
            rank += 1
        self._served = max(len(taken), 1)
        self._began = now
        self.behind_s = left * self._each_s
        self.spread_s = max(spread, 0) * self._each_s
        return taken

    def _queue(self, waiting: dict[Owner, list[tuple[int, int]]]) -> list[tuple[Owner, list[tuple[int, int]]]]:
        """Returns the clients with their ready sockets, both by the turn since which they wait."""
        self._round += 2  # what is new in a turn waits since before what is served in it
        new, clients, sockets = self._round, self._clients, self._sockets
        self._clients = by_client = {client: clients.get(client, new) for client in waiting}
        self._sockets = by_socket = {one[0]: sockets.get(one[0], new) for found in waiting.values() for one in found}
        for found in waiting.values():
            if len(found) > 1:
                found.sort(key=lambda one: by_socket[one[0]])
        return sorted(waiting.items(), key=lambda pair: by_client[pair[0]])

    def rest(self) -> None:
        """Notes that there is no crowd any more."""
        self.behind_s = self.spread_s = 0.0
        self._served = 0
        self._clients = {}
        self._sockets = {}
