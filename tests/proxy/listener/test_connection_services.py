"""What the services of connections read and write about once a second."""

from types import SimpleNamespace
from typing import Any

from gatewayfilter.proxy.listener.services import ConnectionServices


def test_what_was_learned_is_written_and_users_are_read() -> None:
    done: list[str] = []
    pinned_apps: Any = SimpleNamespace(save=lambda: done.append("saved"))
    users: Any = SimpleNamespace(refresh=lambda: done.append("read"))
    ConnectionServices(pinned_apps=pinned_apps, users=users).refresh()
    assert done == ["saved", "read"]
    ConnectionServices(users=users).refresh()
    ConnectionServices(pinned_apps=pinned_apps).refresh()
    ConnectionServices().refresh()
    assert done == ["saved", "read", "read", "saved"]
