"""The OpenAPI description of a table of routes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from lightrag_jsonl.server.routing import Route

REF: Final = "#/components/schemas/{name}"
ERROR_RESPONSES: Final = {
    "400": "The request makes no sense.",
    "401": "The token is missing or wrong.",
    "403": "The request comes from a page of another origin.",
    "404": "There is no such index, document, job, trace, entity or model.",
    "413": "The body or the question is too large.",
    "415": "The body has another type.",
    "421": "The host is not allowed.",
    "429": "Too many requests at once: try again after `Retry-After` seconds.",
    "500": "The index cannot be used, or the server has a bug: see its log.",
    "502": "The model or the embedder failed.",
    "503": "Another process writes, or a budget is used up.",
}


class ErrorDetail(msgspec.Struct):
    """The code and the message of an error."""

    code: str
    message: str


class ErrorBody(msgspec.Struct):
    """The body of every error; in Ollama's protocol a text, in Dify's a number and a text."""

    error: ErrorDetail | str | msgspec.UnsetType = msgspec.UNSET
    error_code: int | msgspec.UnsetType = msgspec.UNSET
    error_msg: str | msgspec.UnsetType = msgspec.UNSET


def describe(routes: Sequence[Route], version: str, indexes: Sequence[str]) -> dict[str, Any]:
    """OpenAPI 3.1 as plain JSON, with the names of the indexes."""
    schemas, components = _schemas(routes)
    components["Index"] = {"type": "string", "enum": list(indexes)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operations = paths.setdefault(route.path, {})
        operations[route.method.lower()] = _operation(route, schemas, components)
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "lightrag-jsonl", "version": version},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
        "security": [{}, {"token": []}],
    }


def _schemas(routes: Sequence[Route]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each type by the type's repr, and the components to which schemas refer."""
    kinds: list[Any] = [ErrorBody]
    for route in routes:
        for kind in (route.params, route.body, route.result):
            if kind not in (None, bytes):
                kinds.append(kind)
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    return dict(zip(map(repr, kinds), schemas, strict=True)), components


def _operation(
    route: Route, schemas: Mapping[str, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": (route.run.__doc__ or "").removesuffix("."),
        "parameters": _parameters(route, components),
        "responses": _responses(route, schemas),
    }
    if route.body is bytes:
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    elif route.body is not None:
        content = {"application/json": {"schema": schemas[repr(route.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _responses(route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The responses of a route by status: its result, and the errors of all routes."""
    content: dict[str, dict[str, Any]] = {route.media: {}}
    if route.result:
        content[route.media]["schema"] = schemas[repr(route.result)]
    if route.other_media:
        content[route.other_media] = {}
    error = {"application/json": {"schema": schemas[repr(ErrorBody)]}}
    responses: dict[str, Any] = {str(route.status): {"description": "Done.", "content": content}}
    for status, description in ERROR_RESPONSES.items():
        responses[status] = {"description": description, "content": error}
    return responses


def _parameters(route: Route, components: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parameters in the path and in the query of a route's URL."""
    schemas = {"index": {"$ref": REF.format(name="Index")}}
    path_parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": schemas.get(name, {"type": "string"}),
        }
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    params = components[route.params.__name__]
    required = params.get("required", ())
    query_parameters = [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in params["properties"].items()
    ]
    return path_parameters + query_parameters
