"""The folder of a fleet in the state folder: what of it is where."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FleetFolder:
    """The folder.

    Attributes:
        path: of the folder.
    """

    path: Path

    @property
    def signing_key(self) -> Path:
        """The private keys of a publisher."""
        return self.path / "signing.key"

    @property
    def followers(self) -> Path:
        """The followers that a publisher admits."""
        return self.path / "followers.json"

    @property
    def health(self) -> Path:
        """The newest report of each follower."""
        return self.path / "health.json"

    @property
    def export(self) -> Path:
        """What a publisher serves."""
        return self.path / "export"

    @property
    def state(self) -> Path:
        """The state of a follower."""
        return self.path / "follower.json"

    @property
    def base(self) -> Path:
        """The snapshot of the publisher, on a follower."""
        return self.path / "base.gfs"

    @property
    def bundle(self) -> Path:
        """The rules and policies of the publisher, on a follower."""
        return self.path / "bundle.json"

    @property
    def incoming(self) -> Path:
        """The folder of an unfinished download."""
        return self.path / "incoming"
