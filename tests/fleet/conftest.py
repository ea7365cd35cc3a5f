from pathlib import Path

import pytest

from tests.fleet.fleet_fakes import Gateway, Publisher, publish_hosts

HOSTS = [f"host-{number}.example" for number in range(20_000)]


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    home = tmp_path / "publisher"
    home.mkdir()
    made = Publisher(home)
    publish_hosts(made.snapshots, HOSTS)
    return made


@pytest.fixture
def gateway(tmp_path: Path, publisher: Publisher) -> Gateway:
    home = tmp_path / "follower"
    home.mkdir()
    return Gateway(home, publisher)
