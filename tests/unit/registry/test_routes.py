"""The table of routes: each has its function, and the document lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from broker.registry.errors import RegistryError
from broker.registry.routes import ROUTES, find, words_of

REPOSITORY = Path(__file__).parents[3]


def test_each_route_has_its_function_and_is_found_by_its_path():
    for route in ROUTES:
        assert callable(route.load_parts() if route.parted else route.load())
        found, words = find(route.method, words_of(route.path))
        assert found is route
        assert set(words) == set(re.findall(r"{(\w+)}", route.path))


def test_document_lists_the_routes():
    text = (REPOSITORY / "docs" / "registry.md").read_text()
    rows = re.findall(r"^\| (\w+) \| `(/.*?)` \| `(\w+)` \| (\S+) \|$", text, re.MULTILINE)
    assert rows == [(each.method, each.path, each.api, each.needs or "-") for each in ROUTES]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/none", 404), ("PATCH", "/subjects", 405), ("GET", "/exporters/x", 501), ("GET", "/v1/x", 501)],
)
def test_what_is_not_served_says_how(method, path, status):
    with pytest.raises(RegistryError) as refusal:
        find(method, words_of(path))
    assert refusal.value.status == status
