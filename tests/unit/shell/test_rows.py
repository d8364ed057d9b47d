"""What a route answers is told by the type that its handlers return: a row, to which the type checker holds them."""

from __future__ import annotations

import importlib
from typing import Any, NewType, get_args, get_origin, is_typeddict

import pytest

from broker.asks import rows
from broker.shell.control import of_cluster, of_process, schemas
from broker.shell.control.endpoint import _routes_in
from broker.shell.control.openapi import answer_of, schema_of
from broker.shell.proxy.server import LOOKED_UP

ROUTES = [*_routes_in(of_process), *_routes_in(of_cluster)]


def is_row(kind: Any) -> bool:
    """Whether a type says all that is in an answer: no Any, and no dict whose names are not told."""
    if get_origin(kind) in (list, dict):
        return all(each is str or is_row(each) for each in get_args(kind))
    return is_typeddict(kind) or (isinstance(kind, NewType) and kind.__name__ in schemas.SCHEMAS)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_answers_a_row_or_names_its_media_type(route):
    assert route.media or is_row(answer_of(route.load()))


@pytest.mark.parametrize("place", LOOKED_UP, ids=lambda place: place[1])
def test_what_a_proxy_asks_its_cluster_for_is_the_row_of_a_broker(place):
    (route,) = [each for each in ROUTES if (each.method, each.path) == place]
    file, _, name = LOOKED_UP[place].partition(":")
    instead = getattr(importlib.import_module(f"broker.shell.proxy.{file}"), name)
    assert instead.__annotations__["return"] == route.load().__annotations__["return"]


def test_description_of_a_row_has_its_fields_and_which_may_be_left_out():
    found = schema_of(rows.OffsetRow)
    assert found["properties"]["committed"] == {"type": "integer"}
    assert sorted(found["properties"].keys() - set(found["required"])) == ["archiving", "end", "lag"]
    members = schema_of(rows.GroupDetails)["properties"]["members"]
    assert members == {"type": "array", "items": schema_of(rows.MemberRow)}
    assert schema_of(rows.PartitionRow)["properties"]["isr"] == {"type": "array", "items": {"type": "integer"}}
    assert schema_of(int | None) == {"type": ["integer", "null"]}
    assert schema_of(rows.LagRow | None) == {"anyOf": [schema_of(rows.LagRow), {"type": "null"}]}
