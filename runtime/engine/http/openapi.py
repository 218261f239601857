"""A description of the server's routes in OpenAPI's form: paths, methods and the fields of each
body. What each field means is in docs/http.md."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from aiohttp import web

from sgc.runtime.engine.http.errors import Json

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def document(
    routes: Sequence[web.RouteDef], bodies: Mapping[str, Collection[str]], version: str
) -> Json:
    """bodies: the fields of the bodies that paths take."""
    paths: dict[str, Json] = {}
    for route in routes:
        path = re.sub(r":[^}]*}", "}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(path, bodies.get(path))
    return {
        "openapi": "3.1.0",
        "info": {"title": "sgc", "version": version},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(path: str, fields: Collection[str] | None) -> Json:
    named = re.findall("{([^}]*)}", path)
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found: Json = {
        "responses": {
            "200": {"description": "the answer"},
            "default": {"description": "an error", "content": content},
        },
    }
    if named:
        text = {"type": "string"}
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": text} for name in named
        ]
    if fields is not None:
        properties: Json = {name: {} for name in sorted(fields)}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        found["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return found
