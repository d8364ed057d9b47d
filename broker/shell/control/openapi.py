"""The OpenAPI description of the control plane, made from the table of routes. Source: OpenAPI 3.1.0.

Each operation has a name of its own, what it is about as its tag (that of what only the page asks for is "page"), the
shapes of body and answer, a body and words of the path that work, and the statuses with which it may be refused.
"""

from __future__ import annotations

import re
from typing import Any, Final, get_args, get_type_hints, is_typeddict

from broker.shell.control import schemas
from broker.shell.control.routes import (
    BYTES,
    DEFAULT_PREFIX,
    Medium,
    Optional_,
    Route,
    Routes,
    ServedPath,
    Shape,
    Text,
    Told,
)
from broker.shell.control.version import API, VERSION

TYPES: Final = {int: "integer", str: "string", bool: "boolean", float: "number", dict: "object"}
ERROR: Final = {"error": str}
# Words of paths: what they are, and one that works where it was made.
WORDS: Final = {
    "cluster": ("the name of a cluster, as `GET /_admin/clusters` lists them", "default"),
    "id": ("the number of a virtual broker, from 1 on", "2"),
    "name": ("the name of a fault, as its answer has it", "gate"),
    "topic": ("the name of a topic", "orders"),
    "group": ("the id of a group", "billing"),
    "snapshot": ("the name of a snapshot", "full"),
    "user": ("the name of a user", "alice"),
    "file": ("a file of the page", "index.html"),
    "number": ("the `number` of an entry of the journal", "1"),
    "transactional_id": ("a transactional id", "copier"),
    "subject": ("a subject of the schema registry", "orders-value"),
}
REFUSALS: Final = {
    400: "a field, a parameter or a value that is wrong, and which",
    401: "the endpoint has a token, and the request has it not",
    404: "there is no such thing as the path, or the body, names; and what there is",
    409: "it cannot be done as things are, and why",
    500: "it could not be done, and why",
    503: "not yet, and why",
}


def schema(shape: Shape, *, closed: bool = True) -> dict[str, Any]:
    """A shape as JSON Schema. `closed`: an object has no fields but those that are named, as in bodies; answers may
    have more in a later version.
    """
    if isinstance(shape, Optional_):
        return schema(shape.shape, closed=closed)
    if isinstance(shape, Told):
        return {"$ref": f"#/components/schemas/{shape.name}"}
    if shape is BYTES:
        return schemas.BYTES
    if is_typeddict(shape):
        return _row(shape)
    if isinstance(shape, list) or get_args(shape):  # [str], or the type of a row's field: list[str]
        (item,) = get_args(shape) or shape
        return {"type": "array", "items": schema(item, closed=closed)}
    if isinstance(shape, dict):
        if "*" in shape:
            return {"type": "object", "additionalProperties": schema(shape["*"], closed=closed)}
        made: dict[str, Any] = {
            "type": "object",
            "properties": {name: schema(field, closed=closed) for name, field in shape.items()},
            "required": [name for name, field in shape.items() if not isinstance(field, Optional_)],
        }
        return {**made, "additionalProperties": False} if closed else made
    return {"type": TYPES[shape]}


def _row(row: Any) -> dict[str, Any]:
    """A row of broker/asks/rows.py; a later version may have more fields."""
    fields = {name: schema(kind, closed=False) for name, kind in get_type_hints(row).items()}
    required = [name for name in fields if name in row.__required_keys__]
    return {"type": "object", "properties": fields, "required": required}


def describe(routes: Routes) -> dict[str, Any]:
    """The description of all paths."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "momus control plane", "version": str(API), "x-momus-version": VERSION},
        "paths": {
            path: {method.lower(): _operation(place, route) for method, route in place.methods.items()}
            for path, place in routes.places.items()
        },
        "components": {
            "schemas": {
                "Error": schema(ERROR, closed=False),
                **{name: {"title": name, **make()} for name, make in schemas.SCHEMAS.items()},
            },
            "responses": {str(status): _refusal(about) for status, about in REFUSALS.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(place: ServedPath, route: Route) -> dict[str, Any]:
    words = re.findall(r"{(\w+)}", place.path)
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": WORDS[name][0],
            "schema": {"type": "string"},
            "example": WORDS[name][1],
        }
        for name in words
    ]
    parameters += [
        {"name": name, "in": "query", "description": about, "schema": {"type": "string"}}
        for name, about in route.query.items()
    ]
    is_of_default = (
        place.path.startswith(f"{DEFAULT_PREFIX}/") and place.path.removeprefix(DEFAULT_PREFIX) == route.path
    )
    operation: dict[str, Any] = {
        "operationId": f"{route.name}_of_default" if is_of_default else route.name,
        "tags": [route.tag],
        "summary": route.about,
        "responses": {"200": _content("done", route.answer), **_refusals(route, words)},
    }
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        media: dict[str, Any] = {"schema": schema(route.body)}
        if route.example is not None:
            media["example"] = route.example
        operation["requestBody"] = {"content": {"application/json": media}}
    return operation


def _refusals(route: Route, words: list[str]) -> dict[str, Any]:
    statuses = {401}
    if route.body is not None or route.query:
        statuses.add(400)
    if words:
        statuses.add(404)
    found: dict[int, Any] = {status: {"$ref": f"#/components/responses/{status}"} for status in statuses}
    found |= {status: _refusal(about) for status, about in route.errors.items()}
    return {str(status): found[status] for status in sorted(found)}


def _refusal(about: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Error"}}
    return {"description": about, "content": {"application/json": answer}}


def _content(about: str, shape: Shape) -> dict[str, Any]:
    if shape is Text:
        return {"description": about, "content": {"text/plain": {"schema": {"type": "string"}}}}
    if isinstance(shape, Medium):
        return {"description": about, "content": {shape.name: {"schema": {"type": "string"}}}}
    return {"description": about, "content": {"application/json": {"schema": schema(shape, closed=False)}}}
