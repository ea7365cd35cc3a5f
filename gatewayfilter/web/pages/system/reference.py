"""`/api`: the reference of the API, made from its OpenAPI document."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastapi import Request
from fastapi.responses import Response

from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.rendering.pages import render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_METHODS: Final = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body."""

    name: str
    kind: str
    where: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the API.

    Attributes:
        key: its operation id.
        path: with its parameters in braces.
        fields: parameters and fields of the body.
        answers: name of the answer's schema, `""` for none, with its fields.
    """

    key: str
    method: str
    path: str
    description: str
    fields: tuple[Field, ...]
    answer: str
    answer_fields: tuple[Field, ...]


@router.get("/api")
def reference(request: Request, services: Services, _: Viewer) -> Response:
    """Shows all operations by subject."""
    return render_early(request, "system/reference.html", partial(_content, services), active="system")


def _content(services: WebServices) -> dict[str, Any]:
    document = json.loads(zlib.decompress(services.openapi_document()))
    return {"subjects": operations_by_subject(document)}


def operations_by_subject(document: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """Returns the operations of an OpenAPI document by tag, in the order of its paths."""
    found: dict[str, list[Operation]] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if (operation := item.get(method)) is not None:
                found.setdefault(operation.get("tags", ["other"])[0], []).append(_operation(document, path, method, operation))
    return found


def _operation(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> Operation:
    fields = [
        Field(one["name"], kind(one["schema"]), one["in"], one.get("description", ""), one.get("required", False))
        for one in operation.get("parameters", ())
    ]
    for media in operation.get("requestBody", {}).get("content", {}).values():
        fields += _fields(document, media["schema"], "body")
    success: Mapping[str, Any] = next((answer for status, answer in operation["responses"].items() if status.startswith("2")), {})
    schema: Mapping[str, Any] = next((media.get("schema", {}) for media in success.get("content", {}).values()), {})
    return Operation(
        operation["operationId"],
        method.upper(),
        path,
        operation.get("description") or operation.get("summary", ""),
        tuple(fields),
        kind(schema) if schema else "",
        tuple(_fields(document, schema, "answer")),
    )


def _fields(document: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[Field]:
    schema = schema.get("items", schema) if schema.get("type") == "array" else schema
    name = schema.get("$ref", "").rpartition("/")[2]
    found = document.get("components", {}).get("schemas", {}).get(name, schema)
    required = found.get("required", ())
    for field, inner in found.get("properties", {}).items():
        yield Field(field, kind(inner), where, inner.get("description", ""), field in required)


def kind(schema: Mapping[str, Any]) -> str:
    """Returns the type of a schema in a word or two: `string`, `list of Rule`, `integer or null`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(kind(one) for one in schema[word]))
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
