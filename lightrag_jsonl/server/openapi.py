"""The OpenAPI description of a table of routes."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lightrag_jsonl.server.routing import Route

REF: Final = "#/components/schemas/{name}"
ERRORS: Final = {
    "400": "The request makes no sense.",
    "401": "The token is missing or wrong.",
    "403": "The request comes from a page of another origin.",
    "404": "There is no such index, document, job, trace, entity or model.",
    "413": "The body or the question is too large.",
    "415": "The body has another type.",
    "421": "The host is not allowed.",
    "429": "Too much is asked at once: try again after `Retry-After` seconds.",
    "500": "The index cannot be used, or the server has a mistake: see its log.",
    "502": "The model or the embedder failed.",
    "503": "Another process writes, or a budget is used up.",
}


class ErrorDetail(msgspec.Struct):
    """What went wrong."""

    code: str
    message: str


class Error(msgspec.Struct):
    """The body of every error; in Ollama's protocol a text."""

    error: ErrorDetail | str


def describe(routes: Sequence[Route], version: str, indexes: Sequence[str]) -> dict[str, Any]:
    """OpenAPI 3.1 as plain JSON, with the names of the indexes."""
    used = (kind for route in routes for kind in (route.params, route.body, route.result))
    kinds: list[Any] = [Error, *(kind for kind in used if kind not in (None, bytes))]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    known = dict(zip(map(repr, kinds), schemas, strict=True))
    components["Index"] = {"type": "string", "enum": [*indexes]}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operations = paths.setdefault(route.path, {})
        operations[route.method.lower()] = _operation(route, known, components)
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "lightrag-jsonl", "version": version},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
        "security": [{}, {"token": []}],
    }


def _operation(route: Route, known: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    content = {route.media: {"schema": known[repr(route.result)]} if route.result else {}}
    if route.other_media:
        content[route.other_media] = {}
    error = {"application/json": {"schema": known[repr(Error)]}}
    failures = {code: {"description": words, "content": error} for code, words in ERRORS.items()}
    operation: dict[str, Any] = {
        "summary": (route.run.__doc__ or "").removesuffix("."),
        "parameters": [*_parameters(route, components)],
        "responses": {str(route.status): {"description": "Done.", "content": content}, **failures},
    }
    if route.body is not None:
        media = "application/octet-stream" if route.body is bytes else "application/json"
        content = {media: {} if route.body is bytes else {"schema": known[repr(route.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    schemas = {"index": {"$ref": REF.format(name="Index")}, "id": {"type": "string"}}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": schemas[name]}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    kind = components[route.params.__name__]
    required = kind.get("required", ())
    return in_path + [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in kind["properties"].items()
    ]
