"""Writes gatewayfilter/client/operations/ from the API's OpenAPI document: one module for each subject.

.venv/bin/python scripts/make_api_client.py          # writes the modules
.venv/bin/python scripts/make_api_client.py --check  # exit code 1 where they differ
"""

import argparse
import keyword
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from gatewayfilter.web import api

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "gatewayfilter" / "client" / "operations"
METHODS = ("get", "post", "put", "patch", "delete")
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict[str, Any]"}


def openapi() -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the OpenAPI document, and the area of each subject: the sub-package of `web/api/` in which it is."""
    app = FastAPI(title="GatewayFilter", version="1", separate_input_output_schemas=False)
    areas: dict[str, str] = {}
    for router in api.routers():
        app.router.routes.extend(router.routes)
        for route in router.routes:
            if isinstance(route, APIRoute):
                areas[str(route.tags[0])] = route.endpoint.__module__.split(".")[3]
    return app.openapi(), areas


def module_name(tag: str) -> str:
    """Returns the module of a subject."""
    return re.sub(r"[^a-z0-9]+", "_", tag.lower()).strip("_")


def class_name(text: str) -> str:
    """Returns a class name: `extraction rules` → `ExtractionRules`."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", text) if word)


class Writer:
    """Writes the module of one subject."""

    def __init__(self, document: Mapping[str, Any], tag: str) -> None:
        self._schemas = document.get("components", {}).get("schemas", {})
        self._tag = tag
        self._operations = [
            (path, method, item[method])
            for path, item in document["paths"].items()
            for method in METHODS
            if method in item and item[method].get("tags", ["other"])[0] == tag
        ]
        self._models: dict[str, str] = {}

    def text(self) -> str:
        """Returns the module."""
        methods = "\n".join(self._method(*operation) for operation in self._operations)
        name = class_name(self._tag)
        models = "\n\n".join(self._models.values())
        head = f'"""The API of {self._tag}. Written by scripts/make_api_client.py; not to be edited."""'
        imports = (
            "from __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, TypedDict\n\n"
            "from gatewayfilter.client.transport import Answer, Call, Transport"
        )
        start = "    def __init__(self, transport: Transport) -> None:\n        self._transport = transport"
        body = f'class {name}Api:\n    """Operations of {self._tag}."""\n\n{start}\n\n{methods}'
        return f"{head}\n\n{imports}\n\n{models}\n\n{body}\n"

    def _method(self, path: str, method: str, operation: Mapping[str, Any]) -> str:
        parameters = operation.get("parameters", ())
        inside = [one for one in parameters if one["in"] == "path"]
        query = [one for one in parameters if one["in"] == "query"]
        headers = [one for one in parameters if one["in"] == "header"]
        arguments = [f"{argument(one['name'])}: {self._type(one['schema'])}" for one in inside]
        body, required = self._body(operation)
        if body and required:
            arguments.append(f"body: {body}")
        keywords = [f"{argument(one['name'])}: {optional(self._type(one['schema']))} = None" for one in query]
        keywords += [f'{argument(one["name"])}: str = ""' for one in headers]
        if body and not required:
            keywords.append(f"body: {optional(body)} = None")
        if keywords:
            arguments += ["*", *keywords]
        answer = self._answer(operation)
        description = (operation.get("description") or operation["summary"]).split("\n\n")[0].replace("\n", " ")
        call = [repr(method.upper()), repr(path)]
        if inside:
            call.append("parameters={" + ", ".join(f"{one['name']!r}: {argument(one['name'])}" for one in inside) + "}")
        if query:
            call.append("query={" + ", ".join(f"{one['name']!r}: {argument(one['name'])}" for one in query) + "}")
        if headers:
            call.append("headers={" + ", ".join(f"{one['name']!r}: {argument(one['name'])}" for one in headers) + "}")
        if body:
            call.append("body=body")
        if upload := self._upload(operation):
            call.append(f"upload={upload!r}")
        return (
            f"    def {operation['operationId']}(self, {', '.join(arguments)}) -> Answer[{answer}]:\n"
            f'        """{description}"""\n'
            f"        return self._transport.send(Call({', '.join(call)}))\n"
        ).replace("(self, )", "(self)")

    def _body(self, operation: Mapping[str, Any]) -> tuple[str, bool]:
        found = operation.get("requestBody")
        if found is None:
            return "", False
        for media, content in found["content"].items():
            if media == "application/json":
                return self._type(content.get("schema", {})), found.get("required", False)
        return "bytes", found.get("required", False)

    def _upload(self, operation: Mapping[str, Any]) -> str:
        content = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data")
        if content is None:
            return ""
        schema = content["schema"]
        found = self._schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return next(iter(found["properties"]))

    def _answer(self, operation: Mapping[str, Any]) -> str:
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                content = answer.get("content", {})
                if "application/json" in content:
                    return self._type(content["application/json"].get("schema", {}))
                return "bytes"
        return "bytes"

    def _type(self, schema: Mapping[str, Any]) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._model(name)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return " | ".join(dict.fromkeys(self._type(one) for one in schema[word]))
        if "enum" in schema:
            return f"Literal[{', '.join(repr(one) for one in schema['enum'])}]"
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if schema.get("type") == "array":
            return f"list[{self._type(schema.get('items', {}))}]"
        if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"dict[str, {self._type(schema['additionalProperties'])}]"
        return TYPES.get(schema.get("type", ""), "Any")

    def _model(self, name: str) -> str:
        found = self._schemas[name]
        if "properties" not in found:
            return self._type({key: value for key, value in found.items() if key != "title"})
        name = class_name(name)
        if name not in self._models:
            self._models[name] = ""  # its place; a model may hold itself
            self._models[name] = "\n".join(self._model_lines(name, found))
        return name

    def _model_lines(self, name: str, found: Mapping[str, Any]) -> Iterator[str]:
        description = found.get("description", name).split("\n\n")[0].replace("\n", " ")
        required = found.get("required", ())
        plain = all(field.isidentifier() and not keyword.iskeyword(field) for field in found["properties"])
        types = {
            field: self._type(inner) if field in required else f"NotRequired[{self._type(inner)}]"
            for field, inner in found["properties"].items()
        }
        if plain:
            yield f'class {name}(TypedDict):\n    """{description}"""\n'
            yield from (f"    {field}: {kind}" for field, kind in types.items())
        else:
            yield f"{name} = TypedDict({name!r}, {{{', '.join(f'{field!r}: {kind}' for field, kind in types.items())}}})"


def argument(name: str) -> str:
    """Returns a parameter as a Python name."""
    found = re.sub(r"\W+", "_", name.lower())
    return f"{found}_" if keyword.iskeyword(found) else found


def optional(kind: str) -> str:
    """Returns a type that may be `None`."""
    return kind if kind.endswith("None") or kind == "Any" else f"{kind} | None"


def modules() -> dict[str, str]:
    """Returns the modules by file name, formatted."""
    document, areas = openapi()
    texts = {f"{area}/{module_name(tag)}.py": Writer(document, tag).text() for tag, area in areas.items()}
    texts["__init__.py"] = "\n".join(_package(areas))
    for area in areas.values():
        texts[f"{area}/__init__.py"] = f'"""Operations of the API: {area}."""\n'
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_text(text, encoding="utf-8")
        ruff = [str(Path(sys.executable).with_name("ruff")), "--quiet"]
        config = ["--config", str(ROOT / "pyproject.toml"), "--config", 'lint.isort.known-first-party=["gatewayfilter"]']
        subprocess.run([*ruff, "check", "--fix-only", "--select", "F401,I001", *config, folder], check=True)
        subprocess.run([*ruff, "format", *config, folder], check=True)
        return {name: (Path(folder) / name).read_text(encoding="utf-8") for name in texts}


def _package(areas: Mapping[str, str]) -> Iterator[str]:
    yield '"""The operations of the API, by subject. Written by scripts/make_api_client.py; not to be edited."""\n'
    yield from (
        f"from gatewayfilter.client.operations.{area}.{module_name(tag)} import {class_name(tag)}Api"
        for tag, area in areas.items()
    )
    yield "from gatewayfilter.client.transport import Transport\n"
    yield f"__all__ = {sorted(['Operations', *(f'{class_name(tag)}Api' for tag in areas)])!r}\n\n"
    yield 'class Operations:\n    """All operations, by subject."""\n'
    yield "    def __init__(self, transport: Transport) -> None:"
    yield from (f"        self.{module_name(tag)} = {class_name(tag)}Api(transport)" for tag in areas)
    yield ""


def main() -> int:
    """Writes or checks the modules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a module differs")
    options = parser.parse_args()
    wanted = modules()
    present = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")}
    if options.check:
        differing = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
        print("\n".join(differing) or "nothing differs")
        return 1 if differing else 0
    for name in present.keys() - wanted.keys():
        (FOLDER / name).unlink()
    for name, text in wanted.items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
