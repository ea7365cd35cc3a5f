"""What a publisher answers to each request, asked as an ASGI server asks it."""

import asyncio
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.fleet import endpoint
from gatewayfilter.fleet.endpoint import BURST, FleetEndpoint
from gatewayfilter.fleet.health import LARGEST_REPORT, HealthBoard
from gatewayfilter.fleet.members import Members
from gatewayfilter.telemetry import Counters

BLOB = bytes(range(256)) * 4
NAME = hashlib.sha256(BLOB).hexdigest()
SIGNED = hashlib.sha256(b"signed").hexdigest()


class Asked:
    """A publisher, with its answers in one piece."""

    def __init__(self, home: Path) -> None:
        (home / "export" / "blobs").mkdir(parents=True)
        (home / "export" / "manifest").write_bytes(b"signed")
        (home / "export" / "blobs" / NAME).write_bytes(BLOB)
        self.home, self.now = home, 100.0
        self.members = Members(home / "followers.json")
        self.token = self.members.add("north")
        self.counters = Counters()
        board = HealthBoard(home / "health.json")
        self.endpoint = FleetEndpoint(home / "export", self.members, board, self.counters, lambda: self.now)

    def ask(
        self, path: str, method: str = "GET", *, bodies: Iterable[object] = (), token: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        fields = {"authorization": f"Bearer {self.token}" if token is None else token, **headers}
        sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()]
        messages: list[Any] = []
        coming = iter(bodies)

        async def receive() -> dict[str, object]:
            for body in coming:
                return {"type": "http.request", "body": body, "more_body": True} if body else {"type": "http.request"}
            return await asyncio.Future()

        async def send(message: Any) -> None:
            messages.append(message)

        asyncio.run(self.endpoint({"type": "http", "path": path, "method": method, "headers": sent}, receive, send))
        head, *parts = messages
        assert head["type"] == "http.response.start"
        assert not parts[-1].get("more_body")
        assert all(part.get("more_body") for part in parts[:-1])
        found = {name.decode(): value.decode() for name, value in head["headers"]}
        assert (found.pop("cache-control"), found.pop("x-content-type-options")) == ("no-cache", "nosniff")
        return head["status"], found, b"".join(part["body"] for part in parts)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


@pytest.mark.parametrize(
    ("asked_range", "begin", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-1023", 0, 1024),
        ("bytes=1-5", 1, 6),
        ("bytes=1023-1023", 1023, 1024),
        ("bytes=1000-9999", 1000, 1024),
    ],
)
def test_parts_of_a_file(asked: Asked, asked_range: str, begin: int, end: int) -> None:
    status, fields, body = asked.ask(f"/blobs/{NAME}", range=asked_range)
    assert (status, body) == (206, BLOB[begin:end])
    assert fields == {
        "etag": f'"{NAME}"',
        "content-length": str(end - begin),
        "accept-ranges": "bytes",
        "content-range": f"bytes {begin}-{end - 1}/1024",
        "content-type": "application/octet-stream",
    }
    assert asked.counters["fleet_bytes"] == end - begin


@pytest.mark.parametrize("asked_range", ["", "bytes=-5", "bytes=5-", "bytes=0-1,3-4", "bytes=" + "1" * 16 + "-5", "x"])
def test_other_ranges_are_passed_over(asked: Asked, asked_range: str) -> None:
    status, fields, body = asked.ask(f"/blobs/{NAME}", range=asked_range)
    assert (status, body, fields["content-length"], "content-range" in fields) == (200, BLOB, "1024", False)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/manifest", "POST", 405),
        ("/manifest", "HEAD", 405),
        (f"/blobs/{NAME}", "DELETE", 405),
        ("/health", "GET", 405),
        ("/", "GET", 404),
        ("/", "POST", 404),
        (f"/blobs/{'0' * 64}", "GET", 404),
        (f"/blobs/{NAME}/", "GET", 404),
        (f"/blobs/{NAME.upper()}", "GET", 404),
        ("/blobs/../manifest", "GET", 404),
    ],
)
def test_what_is_refused(asked: Asked, path: str, method: str, status: int) -> None:
    assert asked.ask(path, method) == (status, {"content-length": "0"}, b"")
    assert (asked.counters["fleet_requests"], asked.counters["fleet_refused"]) == (1, 1)


@pytest.mark.parametrize("asked_range", ["bytes=1024-1024", "bytes=5-4", "bytes=2000-3000"])
def test_no_such_part(asked: Asked, asked_range: str) -> None:
    assert asked.ask(f"/blobs/{NAME}", range=asked_range)[0] == 416


@pytest.mark.parametrize("place", ["manifest", f"blobs/{NAME}"])
def test_links_are_not_followed(asked: Asked, place: str) -> None:
    path = asked.home / "export" / place
    path.unlink()
    (asked.home / "secret").write_text("x")
    path.symlink_to(asked.home / "secret")
    assert asked.ask(f"/{place}")[0] == 404


def test_a_manifest_is_sent_once(asked: Asked) -> None:
    status, fields, body = asked.ask("/manifest")
    assert (status, fields["etag"], body) == (200, f'"{SIGNED}"', b"signed")
    for etag in (f'"{SIGNED}"', f'W/"x", "{SIGNED}"'):
        assert asked.ask("/manifest", if_none_match=etag) == (304, {"etag": f'"{SIGNED}"'}, b"")
    assert asked.ask("/manifest", if_none_match=f'"{NAME}"')[0] == 200
    assert asked.ask(f"/blobs/{NAME}", if_none_match=f'"{NAME}"')[0] == 304


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer x", "Basic x", "TOKEN"])
def test_who_is_no_follower(asked: Asked, token: str) -> None:
    status, fields, body = asked.ask("/manifest", token=token.replace("TOKEN", asked.token))
    assert (status, fields, body) == (401, {"content-length": "0", "www-authenticate": "Bearer"}, b"")


def test_the_scheme_of_a_token_is_in_any_case(asked: Asked) -> None:
    assert asked.ask("/manifest", token=f"bEARER  {asked.token} ")[0] == 200


def test_a_follower_has_so_many_requests(asked: Asked) -> None:
    for _ in range(BURST):
        assert asked.ask("/")[0] == 404
    assert asked.ask("/")[0] == 429
    asked.now += 0.125
    assert [asked.ask("/")[0] for _ in range(2)] == [404, 429]
    asked.now += 1_000.0
    assert [asked.ask("/")[0] for _ in range(BURST + 1)][-2:] == [404, 429]
    asked.token = asked.members.add("south")
    assert asked.ask("/")[0] == 404
    assert asked.endpoint.transfers("north") == asked.endpoint.transfers("nobody") == 0


def test_reports_are_read_to_a_bound(asked: Asked) -> None:
    whole = [b"x" * LARGEST_REPORT, b""]
    assert asked.ask("/health", "POST", bodies=whole)[0] == 400
    assert asked.ask("/health", "POST", bodies=[b"x" * LARGEST_REPORT, b"x", b""])[0] == 413


def test_a_report_that_does_not_come(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_BODY_S", 0.02)
    assert asked.ask("/health", "POST", bodies=[b"x"])[0] == 408


def test_a_broken_list_of_followers_lets_nobody_in(asked: Asked) -> None:
    (asked.home / "followers.json").write_text("{")
    assert asked.ask("/manifest")[0] == 503
