"""The Python client of the API: written from the OpenAPI document, and against a dashboard that serves."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.client import ApiProblem, Client
from gatewayfilter.client.transport import Call, Transport
from gatewayfilter.web.access.identity import Identity, Role
from tests.web.web_fakes import served

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_client_is_what_the_document_gives() -> None:
    answer = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_api_client.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout.strip(), answer.stderr) == (0, "nothing differs", "")


def test_every_answer_has_one_model(api_document: dict[str, Any]) -> None:
    shapes = defaultdict[str, list[str]](list)
    for name, schema in api_document["components"]["schemas"].items():
        assert "__" not in name, f"two modules have a model of this name: {name}"
        shapes[json.dumps(_bare(schema), sort_keys=True)].append(name)
    assert [names for names in shapes.values() if len(names) > 1 and not names[0].startswith("Body_")] == []


def _bare(schema: Any) -> Any:
    """Returns a schema without its prose."""
    if isinstance(schema, dict):
        return {key: _bare(value) for key, value in schema.items() if key not in {"description", "title"}}
    return [_bare(one) for one in schema] if isinstance(schema, list) else schema


def test_an_operation_and_its_refusal(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        answer = Client(url, "any").status.get_status()
        assert (answer.status, answer.value["running"]) == (200, False)
    with served(tmp_path, None) as url, pytest.raises(ApiProblem, match="401 Unauthorized: log in first") as caught:
        Client(url, "any").status.get_status()
    assert caught.value.status == 401


def test_what_was_added_is_removed(tmp_path: Path) -> None:
    token = Identity("Ada", Role.ADMIN)  # there is no cookie to forge
    with served(tmp_path, token) as url:
        groups = Client(url, "any").groups
        groups.add_group({"name": "guests"})
        assert groups.remove_group("guests").status == 204
        assert [group["name"] for group in groups.list_groups().value["items"]] == ["default"]


def test_only_addresses_of_dashboards_are_accepted() -> None:
    with pytest.raises(ValueError, match="begins with http"):
        Transport("file:///etc/passwd", "token")


def test_parameters_stay_in_their_place(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        transport = Transport(url, "any")
        with pytest.raises(ApiProblem) as caught:
            transport.send(Call("GET", "/api/v1/{name}", {"name": "../../status?x#y"}))
        assert caught.value.status == 404
