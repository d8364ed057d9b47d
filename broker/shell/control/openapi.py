"""The OpenAPI description of the control plane, made from the table of routes. Source: OpenAPI 3.1.0.

Each operation has a name of its own, what it is about as its tag (that of what only the page asks for is "page"), the
shape of its body, the type of its answer, a body and words of the path that work, and the statuses with which it may be
refused.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Final, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from broker.shell.control import schemas
from broker.shell.control.routes import (
    BYTES,
    DEFAULT_PREFIX,
    Handler,
    Optional_,
    Route,
    Routes,
    ServedPath,
    Shape,
    Told,
)
from broker.shell.control.version import API, VERSION

TYPES: Final = {int: "integer", str: "string", bool: "boolean", float: "number", dict: "object"}
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

Schema = dict[str, object]


class Error(TypedDict):
    """What is answered where a request is refused."""

    error: str


def schema(shape: Shape) -> Schema:
    """The shape of a body as JSON Schema: an object has no fields but those that are named."""
    if isinstance(shape, Optional_):
        return schema(shape.shape)
    if isinstance(shape, Told):
        return {"$ref": f"#/components/schemas/{shape.name}"}
    if shape is BYTES:
        return schemas.BYTES
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


def answer_of(handler: Handler) -> Any:
    """The type that a handler returns. Errors: NameError: its module imports that for the type checker alone."""
    function: Any = getattr(handler, "__func__", handler)
    returned = SimpleNamespace(__annotations__={"return": function.__annotations__["return"]})
    return get_type_hints(returned, function.__globals__)["return"]


def schema_of(kind: Any) -> Schema:
    """The type of an answer as JSON Schema: a later version may have more fields than a row names."""
    if getattr(kind, "__name__", "") in schemas.SCHEMAS:
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        optional = {name for name, field in hints.items() if get_origin(field) is NotRequired}
        required = [name for name in hints if name in kind.__required_keys__ - optional]
        fields = {name: schema_of(field) for name, field in get_type_hints(kind).items()}
        return {"type": "object", "properties": fields, "required": required}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is dict:
        values = {} if inner[1] is object else {"additionalProperties": schema_of(inner[1])}
        return {"type": "object", **values}
    if inner:  # a type, or None
        told = schema_of(inner[0])
        return {"anyOf": [told, {"type": "null"}]} if len(told) > 1 else {"type": [told["type"], "null"]}
    return {"type": TYPES[kind]}


def describe(routes: Routes) -> Schema:
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
                "Error": schema_of(Error),
                **{name: {"title": name, **make()} for name, make in schemas.SCHEMAS.items()},
            },
            "responses": {str(status): _refusal(about) for status, about in REFUSALS.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(place: ServedPath, route: Route) -> Schema:
    words = re.findall(r"{(\w+)}", place.path)
    parameters: list[Schema] = [
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
    operation: Schema = {
        "operationId": f"{route.name}_of_default" if is_of_default else route.name,
        "tags": [route.tag],
        "summary": route.about,
        "responses": {"200": _content(route), **_refusals(route, words)},
    }
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        media: Schema = {"schema": schema(route.body)}
        if route.example is not None:
            media["example"] = route.example
        operation["requestBody"] = {"content": {"application/json": media}}
    return operation


def _refusals(route: Route, words: list[str]) -> Schema:
    statuses = {401}
    if route.body is not None or route.query:
        statuses.add(400)
    if words:
        statuses.add(404)
    found: dict[int, Any] = {status: {"$ref": f"#/components/responses/{status}"} for status in statuses}
    found |= {status: _refusal(about) for status, about in route.errors.items()}
    return {str(status): found[status] for status in sorted(found)}


def _refusal(about: str) -> Schema:
    answer: Schema = {"schema": {"$ref": "#/components/schemas/Error"}}
    return {"description": about, "content": {"application/json": answer}}


def _content(route: Route) -> Schema:
    answer = {"type": "string"} if route.media else schema_of(answer_of(route.load()))
    return {"description": "done", "content": {route.media or "application/json": {"schema": answer}}}
