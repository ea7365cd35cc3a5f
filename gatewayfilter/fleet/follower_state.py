"""The state of a follower, kept over restarts: highest sequence seen, trusted keys, what was adopted, and the newest fault."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.public_keys import parse_public_key
from gatewayfilter.private_files import replace_file


class Fault(StrEnum):
    """Why a poll failed."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    """No answer, an answer that was cut or too slow, or a status that is none of a publisher."""
    REFUSED_TOKEN = "refused-token"  # noqa: S105  a code
    SIGNATURE = "signature"
    """No valid signature of a trusted key, or a manifest that contradicts itself."""
    ROLLBACK = "rollback"
    EXPIRED = "expired"
    FORMAT = "format"
    """A snapshot of another version of the format."""
    CONTENT = "content"
    """Blocks, a file or rules that are not as signed, or that this version cannot use."""
    DISK = "disk"
    """No room, a snapshot over fleet.max_mb, or a folder that cannot be written."""
    POLICIES = "policies"
    """The publisher's policies contradict local ones."""
    STORE = "store"


REFUSALS = frozenset({Fault.SIGNATURE, Fault.ROLLBACK, Fault.EXPIRED, Fault.FORMAT, Fault.CONTENT, Fault.POLICIES})
"""What a publisher sent was refused; polling less often would not help."""


@dataclass(frozen=True, slots=True)
class FollowerState:
    """What a follower remembers.

    Attributes:
        pinned: public key of the settings that the rest goes with.
        trusted: public keys that are trusted now.
        sequence: the highest of a verified manifest.
        in_force: that of the manifest that was taken over completely, 0 for none.
        made_at: when the publisher made that manifest (Unix seconds).
        etag: of that manifest.
        expires_at: of that manifest (Unix seconds), `None` for never.
        adopted: `Adoption.items`.
        exceptions: `Adoption.exceptions`.
        contact_at: when the publisher answered last with a valid manifest (Unix seconds).
        fault, sentence: of the newest poll.
        failures: failed polls in a row.
        refused: refusals in all.
        fetched: bytes received for the newest snapshot.
    """

    pinned: str = ""
    trusted: tuple[str, ...] = ()
    sequence: int = 0
    in_force: int = 0
    made_at: float = 0.0
    etag: str = ""
    expires_at: float | None = None
    adopted: Mapping[str, str] = field(default_factory=dict)
    exceptions: tuple[str, ...] = ()
    contact_at: float = 0.0
    fault: Fault = Fault.OK
    sentence: str = ""
    failures: int = 0
    refused: int = 0
    fetched: int = 0

    def keys(self) -> tuple[bytes, ...]:
        """Returns the trusted keys."""
        return tuple(map(parse_public_key, self.trusted))


class StateFile:
    """The file of a follower's state.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, pinned: str = "") -> FollowerState:
        """Returns the state.

        Args:
            pinned: public key of the settings. With another one than before, the follower trusts it alone and accepts any
                sequence: another publisher was chosen. `""` to read the state as it is.
        """
        try:
            document = dict(json.loads(self._path.read_bytes()))
            known = FollowerState.__dataclass_fields__
            facts = {name: value for name, value in document.items() if name in known}
            for name in ("trusted", "exceptions"):
                facts[name] = tuple(map(str, facts.get(name, ())))
            state = replace(FollowerState(), **{**facts, "fault": Fault(facts.get("fault", "ok"))})
            state.keys()
        except (OSError, ValueError, TypeError, FleetError):
            state = FollowerState()
        if pinned and state.pinned != pinned:
            state = FollowerState(pinned, (pinned,), adopted=state.adopted)
        return state

    def write(self, state: FollowerState) -> None:
        """Writes the state.

        Raises:
            OSError: it cannot be written; the earlier one stays.
        """
        replace_file(self._path, json.dumps(asdict(state)).encode())
