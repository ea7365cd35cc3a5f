"""The small files of a fleet: keys, followers, reports, the state of a follower; what of them is read, and what is not."""

import json
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gatewayfilter.errors import FleetError, MissingFollowerError
from gatewayfilter.fleet.blocks import DIGEST_BYTES, block_digest, file_digest, spans
from gatewayfilter.fleet.folder import FleetFolder
from gatewayfilter.fleet.follower_state import Fault, FollowerState, StateFile
from gatewayfilter.fleet.health import LARGEST_REPORT, HealthBoard, Report, read_board, read_report, write_report
from gatewayfilter.fleet.keys import KeyFile, SigningKeys, is_signed
from gatewayfilter.fleet.members import Members, read_token
from gatewayfilter.fleet.public_keys import parse_public_key, write_public_key

REPORT = Report("1.0", 7, 60, 1_000, 3, 2, 1, Fault.DISK, 2)
KEY, OTHER = write_public_key(b"k" * 32), write_public_key(b"o" * 32)
STATE = FollowerState(
    KEY, (KEY, OTHER), 9, 8, 7.5, "tag", 6.5, {"policy:a": "b"}, ("group:x",), 5.5, Fault.CONTENT, "why", 4, 3, 2
)


def test_where_the_files_are() -> None:
    folder = FleetFolder(Path("/fleet"))
    assert [folder.signing_key, folder.followers, folder.health, folder.export, folder.state, folder.base] == [
        Path("/fleet") / name for name in ("signing.key", "followers.json", "health.json", "export", "follower.json", "base.gfs")
    ]
    assert (folder.bundle, folder.incoming) == (Path("/fleet/bundle.json"), Path("/fleet/incoming"))


def test_blocks_are_cut_within_each_segment(tmp_path: Path) -> None:
    assert list(spans([5, 8, 9], 4)) == [(0, 4), (4, 1), (5, 4), (9, 4), (13, 4), (17, 4), (21, 1)]
    assert list(spans([70_000])) == [(0, 65_536), (65_536, 4_464)]
    (tmp_path / "x").write_bytes(b"abc")
    assert len(block_digest(b"abc")) == DIGEST_BYTES == 16
    assert file_digest(tmp_path / "x").startswith(block_digest(b"abc"))


def test_the_state_of_a_follower_is_kept(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state")
    assert file.read() == FollowerState()
    assert file.read(KEY) == FollowerState(KEY, (KEY,))
    file.write(STATE)
    assert file.read() == file.read(KEY) == STATE
    assert STATE.keys() == (b"k" * 32, b"o" * 32)
    assert file.read(OTHER) == FollowerState(OTHER, (OTHER,), adopted=STATE.adopted), "another publisher was chosen"


def test_a_state_of_another_program_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state")
    known = json.loads(json.dumps(asdict(STATE)))
    (tmp_path / "state").write_text(json.dumps(known | {"later": 5}))
    assert file.read() == STATE
    for lost in ("trusted", "exceptions", "fault"):
        (tmp_path / "state").write_text(json.dumps({name: value for name, value in known.items() if name != lost}))
        assert file.read() == replace(STATE, **{lost: Fault.OK if lost == "fault" else ()})  # type: ignore[arg-type]
    for wrong in ({"fault": "x"}, {"trusted": ["x"]}, {"trusted": 5}):
        (tmp_path / "state").write_text(json.dumps(known | wrong))
        assert file.read() == FollowerState()
    for text in ("", "[]", "5", "{"):
        (tmp_path / "state").write_text(text)
        assert file.read() == FollowerState()


def test_signing_keys_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys" / "signing.key"
    file = KeyFile(path)
    assert not file.exists()
    file.create()
    assert file.exists()
    for secrets in ([], [b"a" * 32] * 3, [b"a" * 31], [b"a" * 32, b"a" * 33]):
        path.write_text(json.dumps({"keys": [b64encode(secret).decode() for secret in secrets]}))
        with pytest.raises(FleetError, match="they are not Ed25519 keys"):
            file.read()
    junk = b64encode(b"a" * 32).decode().replace("YW", "Y!W", 1)
    for text in (f'{{"keys": ["{junk}"]}}', '{"keys": ["é"]}', "{}", "5", "", '{"keys": [5]}'):
        path.write_text(text)
        with pytest.raises(FleetError, match=f"^cannot use the signing keys in {path}: it is damaged$"):
            file.read()
    path.unlink()
    path.mkdir()
    with pytest.raises(FleetError, match="Is a directory"):
        file.read()
    (tmp_path / "file").touch()
    with pytest.raises(FleetError, match=r"^cannot write .*: Not a directory$"):
        KeyFile(tmp_path / "file" / "fleet" / "signing.key").create()


def test_signatures() -> None:
    keys = SigningKeys((b"1" * 32, b"2" * 32))
    signed = keys.sign(b"text")
    assert [key for key, _ in signed] == list(keys.public)
    assert all(is_signed(b"text", signature, key) for key, signature in signed)
    (key, signature), (other, _) = signed
    assert not any(is_signed(*asked) for asked in ((b"texts", signature, key), (b"text", signature, other), (b"text", b"", key)))
    assert is_signed(b"text", signature, b"short") is False
    assert write_public_key(parse_public_key(KEY)) == KEY == "ed25519:" + b64encode(b"k" * 32).decode()
    for text in (KEY.removeprefix("ed25519:"), "ed25519:" + b64encode(b"k" * 31).decode(), KEY + "\n"):
        with pytest.raises(FleetError, match="is no public key of a fleet"):
            parse_public_key(text)


def test_followers_are_told_apart_by_their_tokens(tmp_path: Path) -> None:
    path = tmp_path / "fleet" / "followers.json"
    known, other = Members(path, lambda: 7.0), Members(path, lambda: 8.0)
    assert (known.all(), known.find("gwfleet_x")) == ([], None)
    north, south = known.add("north"), other.add("a" * 64)
    assert [(member.name, member.added_at) for member in known.all()] == [("a" * 64, 8.0), ("north", 7.0)]
    assert (known.find(north), known.find(south), known.find(north[:-1]), known.find("")) == ("north", "a" * 64, None, None)
    assert (north.startswith("gwfleet_"), len(north), read_token(f"\t{north} ")) == (True, 51, north)
    other.remove("north")
    assert (known.find(north), known.find(south)) == (None, "a" * 64), "what another process changes is seen"
    with pytest.raises(MissingFollowerError, match="there is no follower 'north'"):
        known.remove("north")
    with pytest.raises(FleetError, match=r"there is a follower 'a{64}' already: remove it first"):
        known.add("a" * 64)
    for name in (".a", "-a", "a b", "a" * 65, "\n"):
        with pytest.raises(FleetError, match="cannot be the name of a follower: 1 to 64 letters"):
            known.add(name)
    for token in ("", north[:-1], f"{north}a", north.replace("gwfleet_", "gwfleet-"), f"{north[:-1]}é"):
        with pytest.raises(FleetError, match="the token of this follower is not one that"):
            read_token(token)
    path.write_text('{"followers": [[1]]}')
    for use in (known.all, lambda: known.find(north), lambda: known.add("new")):
        with pytest.raises(FleetError, match=f"^cannot use {path}: it is damaged$"):
            use()
    path.unlink()
    path.mkdir()
    with pytest.raises(FleetError, match="Is a directory"):
        known.all()
    with pytest.raises(FleetError, match="Not a directory"):
        Members(tmp_path / "fleet" / "followers.lock" / "x" / "y").add("a")


def test_followers_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "a" / "fleet" / "followers.json"
    names = [f"follower-{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda name: Members(path).add(name), names))
    assert [member.name for member in Members(path).all()] == names
    assert [Members(path).find(token) for token in tokens] == names
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_reports_are_read_as_they_were_written() -> None:
    assert read_report(write_report(REPORT)) == REPORT
    for name in ("sequence", "age_s", "entries", "exceptions", "refused", "failures", "workers"):
        for good in (2**53 - 1, 1 - 2**53, 0):
            report = replace(REPORT, **{name: good})  # type: ignore[arg-type]
            assert read_report(write_report(report)) == report
        for bad in (2**53, -(2**53), True, 1.0, "1", None):
            with pytest.raises(FleetError, match="this is no report of a follower"):
                read_report(write_report(replace(REPORT, **{name: bad})))  # type: ignore[arg-type]
    assert read_report(write_report(replace(REPORT, program="x" * 40))).program == "x" * 40
    for program in ("x" * 41, "é", "\t", 5):
        with pytest.raises(FleetError):
            read_report(write_report(replace(REPORT, program=program)))  # type: ignore[arg-type]
    padded = write_report(REPORT).ljust(LARGEST_REPORT + 1)
    assert (read_report(padded), read_report(padded + b"[")) == (REPORT, REPORT), "nothing behind the bound is read"
    with pytest.raises(FleetError):
        read_report(write_report(REPORT).ljust(LARGEST_REPORT) + b"[")


def test_the_board_is_written_where_something_changed(tmp_path: Path) -> None:
    path, now = tmp_path / "health.json", [100.0]
    board = HealthBoard(path, lambda: now[0])
    assert (board.take("north", REPORT), board.take("south", REPORT)) == (True, True)
    board.write({"north", "south"})
    assert read_board(path) == {"north": (100.0, REPORT), "south": (100.0, REPORT)}
    path.unlink()
    board.write({"north", "south", "new"})
    assert not path.exists(), "nothing changed"
    board.write({"south"})
    assert read_board(path) == {"south": (100.0, REPORT)}
    again = HealthBoard(path, lambda: now[0])
    assert not again.take("south", REPORT), "it is known over a restart"
    assert again.take("north", REPORT)
    for text in ("{", "[]", '{"a": 5}', '{"a": [1, {}]}', '{"a": ["x", {}]}'):
        path.write_text(text)
        assert read_board(path) == {}
