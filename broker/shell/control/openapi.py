"""The OpenAPI description of the control plane, made from the table of routes. Source: OpenAPI 3.1.0."""

from __future__ import annotations

import re
from typing import Any, Final

from broker.shell.control.routes import BYTES, Medium, Optional_, Place, Route, Routes, Shape, Text

TYPES: Final = {int: "integer", str: "string", bool: "boolean", float: "number", dict: "object"}
ERROR: Final = {"error": str}


def schema(shape: Shape) -> dict[str, Any]:
    """A shape as JSON Schema; an object has no fields but those that are named."""
    if isinstance(shape, Optional_):
        return schema(shape.shape)
    if shape is BYTES:
        return {"type": ["string", "null", "object"]}
    if isinstance(shape, list):
        return {"type": "array", "items": schema(shape[0])}
    if isinstance(shape, dict):
        if "*" in shape:
            return {"type": "object", "additionalProperties": schema(shape["*"])}
        return {
            "type": "object",
            "properties": {name: schema(field) for name, field in shape.items()},
            "required": [name for name, field in shape.items() if not isinstance(field, Optional_)],
            "additionalProperties": False,
        }
    return {"type": TYPES[shape]}


def describe(routes: Routes, version: str) -> dict[str, Any]:
    """The description of all paths."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "momus control plane", "version": version},
        "paths": {
            path: {method.lower(): _operation(place, route) for method, route in place.methods.items()}
            for path, place in routes.places.items()
        },
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _operation(place: Place, route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", place.path)
    ]
    parameters += [
        {"name": name, "in": "query", "description": about, "schema": {"type": "string"}}
        for name, about in route.query.items()
    ]
    operation: dict[str, Any] = {
        "summary": route.about,
        "responses": {"200": _content("done", route.answer), "default": _content("refused, and why", ERROR)},
    }
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        media: dict[str, Any] = {"schema": schema(route.body)}
        if route.example is not None:
            media["example"] = route.example
        operation["requestBody"] = {"content": {"application/json": media}}
    return operation


def _content(about: str, shape: Shape) -> dict[str, Any]:
    if shape is Text:
        return {"description": about, "content": {"text/plain": {"schema": {"type": "string"}}}}
    if isinstance(shape, Medium):
        return {"description": about, "content": {shape.name: {"schema": {"type": "string"}}}}
    return {"description": about, "content": {"application/json": {"schema": schema(shape)}}}
