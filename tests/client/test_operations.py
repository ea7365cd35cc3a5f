"""Each operation of the client is one of the document: its path, its parameters, its body, and the answer that comes back."""

import inspect
from typing import Any, cast

import pytest

from gatewayfilter.client.operations import Operations
from gatewayfilter.client.transport import Answer, Call

ANSWER = Answer({"of": "the API"}, '"etag"', 200)


class Recorder:
    """Takes calls in place of a connection."""

    def __init__(self) -> None:
        self.calls = list[Call]()

    def send(self, call: Call) -> Answer[Any]:
        self.calls.append(call)
        return ANSWER


def operations(recorder: Recorder) -> dict[str, Any]:
    """Returns the client's methods by their name, of all subjects."""
    subjects = vars(Operations(cast("Any", recorder))).values()
    found = {
        name: method for subject in subjects for name, method in inspect.getmembers(subject, inspect.ismethod) if name[0] != "_"
    }
    assert len(found) > 100
    return found


@pytest.fixture(scope="module")
def document(api_document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The document's operations by their name."""
    return {
        operation["operationId"]: {**operation, "path": path, "method": method.upper()}
        for path, methods in api_document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_operation_has_its_method(document: dict[str, dict[str, Any]]) -> None:
    assert operations(Recorder()).keys() == document.keys()


def test_what_a_method_sends_is_what_the_document_asks_for(document: dict[str, dict[str, Any]]) -> None:
    recorder = Recorder()
    for name, method in operations(recorder).items():
        wanted = document[name]
        given = {parameter: f"value of {parameter}" for parameter in inspect.signature(method).parameters}
        assert method(**given) is ANSWER, name
        call = recorder.calls.pop()
        assert recorder.calls == []
        assert (call.method, call.path) == (wanted["method"], wanted["path"])
        sent: dict[str, dict[str, object]] = {
            "path": dict(call.parameters),
            "query": dict(call.query),
            "header": dict(call.headers),
        }
        for place, values in sent.items():
            names = {one["name"] for one in wanted.get("parameters", ()) if one["in"] == place}
            assert values.keys() == names, (name, place)
            for parameter, value in values.items():
                assert str(value).removeprefix("value of ").rstrip("_") == parameter.replace("-", "_"), name
        content = wanted.get("requestBody", {}).get("content", {})
        assert call.body == (given["body"] if content else None), name
        assert bool(call.upload) is ("multipart/form-data" in content), name
