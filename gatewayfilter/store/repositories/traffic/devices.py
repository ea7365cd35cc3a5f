"""Devices that were seen on the network: when first and last, and the host names that were found for them."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import delete, insert, select, update

from gatewayfilter.model import Device
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import DEVICES

_COLUMNS = DEVICES.c
_MOST: Final = 10_000
_KEPT_S: Final = 90 * 86_400.0
_AGAIN_S: Final = 86_400.0
"""Host names are looked up once a day."""


class SqlDevices:
    """Keeps the devices of the neighbour table: 90 days, and 10,000 of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def seen(self, neighbours: Mapping[str, str], now: float) -> int:
        """Takes in the neighbours (address → MAC). Returns the number of addresses that were not known.

        An address that another device has taken is a new one: its host name is forgotten.
        """
        with self._database.write(Area.LOG) as connection:
            known = {row.address: row.mac for row in connection.execute(select(_COLUMNS.address, _COLUMNS.mac))}
            new = 0
            for address, mac in neighbours.items():
                of_address = _COLUMNS.address == address
                if known.get(address) == mac:
                    connection.execute(update(DEVICES).where(of_address).values(last_at=now))
                elif address in known or len(known) + new < _MOST:
                    connection.execute(delete(DEVICES).where(of_address))
                    row = {"address": address, "mac": mac, "name": "", "first_at": now, "last_at": now, "asked_at": 0.0}
                    connection.execute(insert(DEVICES), row)
                    new += 1
            connection.execute(delete(DEVICES).where(_COLUMNS.last_at < now - _KEPT_S))
            return new

    def unnamed(self, now: float, limit: int = 64) -> list[str]:
        """Returns addresses whose host name was not looked up for a day, those seen last first."""
        statement = select(_COLUMNS.address).where(_COLUMNS.asked_at < now - _AGAIN_S)
        with self._database.read() as connection:
            return list(connection.scalars(statement.order_by(_COLUMNS.last_at.desc(), _COLUMNS.address).limit(limit)))

    def named(self, asked: Sequence[str], names: Mapping[str, str], now: float) -> None:
        """Writes down which host names were found; an earlier one stays where none was found."""
        with self._database.write(Area.LOG) as connection:
            for address in asked:
                found = {"name": names[address]} if address in names else {}
                connection.execute(update(DEVICES).where(_COLUMNS.address == address).values(asked_at=now, **found))

    def all(self) -> list[Device]:
        """Returns all devices, by address."""
        columns = (_COLUMNS.address, _COLUMNS.mac, _COLUMNS.name, _COLUMNS.first_at, _COLUMNS.last_at)
        with self._database.read() as connection:
            return [Device(*row) for row in connection.execute(select(*columns).order_by(_COLUMNS.address))]
