"""What a route answers, and what the type checker holds its makers to, are one row of broker/asks/rows.py."""

from __future__ import annotations

import ast
import importlib
import inspect
from typing import Any, is_typeddict

import pytest

from broker.asks import rows
from broker.shell.control import of_cluster, of_process
from broker.shell.control.endpoint import _routes_in
from broker.shell.control.openapi import schema
from broker.shell.proxy.server import LOOKED_UP

ROUTES = [*_routes_in(of_process), *_routes_in(of_cluster)]
OF_ROWS = [route for route in ROUTES if is_typeddict(route.answer)]


def told(handler: Any) -> str:
    """The return type as the maker's file writes it; its names are imported there for the type checker alone."""
    (function,) = ast.parse(inspect.getsource(handler)).body
    assert isinstance(function, ast.AsyncFunctionDef)
    return ast.unparse(function.returns) if function.returns else ""


def makers(route: Any) -> list[Any]:
    """The handler of a broker, and that of a proxy where it has one of its own."""
    found = [route.load()]
    if (route.method, route.path) in LOOKED_UP:
        file, _, name = LOOKED_UP[route.method, route.path].partition(":")
        found.append(getattr(importlib.import_module(f"broker.shell.proxy.{file}"), name))
    return found


@pytest.mark.parametrize("route", OF_ROWS, ids=lambda route: route.path)
def test_every_maker_of_a_row_returns_it_by_its_type(route):
    assert {told(each) for each in makers(route)} == {route.answer.__name__}


def test_what_a_broker_and_a_proxy_both_tell_of_topics_groups_and_transactions_is_rows():
    assert {route.path for route in OF_ROWS} >= {
        path for _, path in LOOKED_UP if path.startswith(("/topics", "/transactions")) and "/{topic}/" not in path
    } | {"/groups", "/groups/{group}/details"}


def test_description_of_a_row_has_its_fields_and_which_may_be_left_out():
    found = schema(rows.OffsetRow)
    assert found["properties"]["committed"] == {"type": "integer"}
    assert sorted(found["properties"].keys() - set(found["required"])) == ["archiving", "end", "lag"]
    members = schema(rows.GroupDetails)["properties"]["members"]
    assert members == {"type": "array", "items": schema(rows.MemberRow)}
    assert schema(rows.PartitionRow)["properties"]["isr"] == {"type": "array", "items": {"type": "integer"}}
