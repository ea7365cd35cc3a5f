"""One try of a hostile client, as a value: what it sends, in which pieces, over which way. It can be printed and made smaller."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.security.lenient_reading import tokens


@dataclass(frozen=True, slots=True)
class Flight:
    """Bytes that are sent before the client listens.

    Attributes:
        data: all of them.
        cuts: where a segment ends; the client waits a little at each.
    """

    data: bytes
    cuts: tuple[int, ...] = ()

    def pieces(self) -> list[bytes]:
        """Returns the segments."""
        places = [0, *sorted({cut for cut in self.cuts if 0 < cut < len(self.data)}), len(self.data)]
        return [self.data[begin:end] for begin, end in pairwise(places)]


@dataclass(frozen=True, slots=True)
class Handshake:
    """The TLS that a client speaks inside the connection.

    Attributes:
        sni: the name it asks for, `""` for none.
        alpn: the protocols it offers.
        record_size: its ClientHello is cut into TLS records of so many bytes, 0 for one record.
        cuts: where segments of the ClientHello end.
    """

    sni: str = ""
    alpn: tuple[str, ...] = ("http/1.1",)
    record_size: int = 0
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One connection of a hostile client.

    Attributes:
        family: what is tried.
        secure: whether it goes to the origin's TLS port where the way has no CONNECT.
        connect: a CONNECT head to begin with, `b""` for none.
        handshakes: TLS inside, and TLS in that.
        flights: what is sent then.
    """

    family: str
    flights: tuple[Flight, ...]
    connect: Flight = Flight(b"")
    handshakes: tuple[Handshake, ...] = ()
    secure: bool = False

    def marks(self) -> set[str]:
        """Returns the marks that its requests carry."""
        return set(tokens(b"".join(flight.data for flight in (self.connect, *self.flights))))

    def describe(self) -> str:
        """Returns it in a form that can be read and sent again."""
        lines = [f"family {self.family}, {'TLS' if self.secure else 'plain'} port"]
        if self.connect.data:
            lines.append(f"  connect {_short(self.connect)}")
        lines += [f"  {shake}" for shake in self.handshakes]
        lines += [f"  send {_short(flight)}" for flight in self.flights]
        return "\n".join(lines)

    def simpler(self) -> Iterator["Case"]:
        """Yields cases with one thing less, the largest cuts first."""
        for index in range(len(self.flights)):
            if len(self.flights) > 1:
                yield replace(self, flights=self.flights[:index] + self.flights[index + 1 :])
        for index, flight in enumerate(self.flights):
            for smaller in _simpler_flight(flight):
                yield replace(self, flights=(*self.flights[:index], smaller, *self.flights[index + 1 :]))
        for smaller in _simpler_flight(self.connect):
            if smaller.data:
                yield replace(self, connect=smaller)
        for index, shake in enumerate(self.handshakes):
            for less in ({"record_size": 0}, {"cuts": ()}, {"alpn": ("http/1.1",)}):
                changed = replace(shake, **less)
                if changed != shake:
                    yield replace(self, handshakes=(*self.handshakes[:index], changed, *self.handshakes[index + 1 :]))


def _simpler_flight(flight: Flight) -> Iterator[Flight]:
    if flight.cuts:
        yield Flight(flight.data)
        if len(flight.cuts) > 1:
            for cut in flight.cuts:
                yield Flight(flight.data, (cut,))
    stripped = flight.data.lstrip(b"\r\n")
    if stripped != flight.data:
        yield replace(flight, data=stripped)
    lines = flight.data.split(b"\r\n")
    end = lines.index(b"") if b"" in lines[1:] else 0
    for index in range(1, end):
        yield replace(flight, data=b"\r\n".join(lines[:index] + lines[index + 1 :]))
    shorter = re.sub(rb"(.)\1{40,}", rb"\1" * 8, flight.data)
    if shorter != flight.data:
        yield replace(flight, data=shorter)


def _short(flight: Flight) -> str:
    data = flight.data
    shown = repr(data) if len(data) <= 700 else f"{data[:300]!r} … {len(data)} bytes … {data[-100:]!r}"
    return f"{shown} cut at {flight.cuts}" if flight.cuts else shown
