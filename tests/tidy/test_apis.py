"""Every served API is whole: declared, handled, described, and tested in each version it is served in.

CONTRIBUTING.md tells how to add one. Each thing that is missing is a sentence that says what to add.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

from broker.authorization.table import RULES
from broker.handlers import ABSENT, make_routes
from broker.supported import notes_of_apis
from broker.wire.route import Route
from protocol.api import ApiKey, api_name

TESTS = Path(__file__).parents[1]
ROUTES = sorted(make_routes(), key=lambda route: route.api_key)


def _served(route: Route) -> range:
    return range(route.min_version, route.max_version + 1)


@cache
def _golden(file_name: str) -> frozenset[tuple[str, int]]:
    """Message and version of each full value in a golden file."""
    rows = [line.split(" ") for line in (TESTS / "conformance" / file_name).read_text().splitlines() if line[0] != "#"]
    return frozenset([(name, int(version)) for name, version, kind, _ in rows if kind == "full"])


@cache
def _requests_sent() -> frozenset[str]:
    """Names of the request classes that tests of handlers and of whole brokers make."""
    found = set()
    for path in (*TESTS.rglob("test_*.py"), *TESTS.glob("*_kit.py")):
        if path.parent.name != "tidy" and not path.name.startswith(("test_golden_", "test_codec_")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    found.add(node.func.id)
    return frozenset(found)


def _check(missing: list[str]) -> None:
    if missing:
        pytest.fail("\n".join(missing), pytrace=False)


def test_each_key_has_one_route() -> None:
    keys = [route.api_key for route in ROUTES]
    _check([f"{api_name(key)} has two lines in broker/handlers/__init__.py" for key in {*keys} if keys.count(key) > 1])


def test_each_key_is_served_or_absent_with_a_reason() -> None:
    served, absent = {route.api_key for route in ROUTES}, [key for keys, _ in ABSENT for key in keys]
    missing = [f"{api_name(key)} has no route: say why in ABSENT" for key in {*ApiKey} - served - {*absent}]
    missing += [f"{api_name(key)} is served: take it out of ABSENT" for key in served & {*absent}]
    _check([f"{sentence}, in broker/handlers/__init__.py" for sentence in missing])


def test_served_versions_are_declared_and_handled() -> None:
    missing = []
    for route in ROUTES:
        name, where = api_name(route.api_key), route.handler
        try:
            route.load()
        except (LookupError, ImportError, AttributeError) as error:
            missing.append(f"{name} ({where}) cannot be served: {error}")
            continue
        for cls in (route.request, route.response):
            if not cls.MIN_VERSION <= route.min_version <= route.max_version <= cls.MAX_VERSION:
                missing.append(
                    f"{name} is served in {route.min_version}-{route.max_version}, but {cls.__name__} declares "
                    f"{cls.MIN_VERSION}-{cls.MAX_VERSION}: extend it in {cls.__module__}"
                )
    _check(missing)


def test_handler_modules_import_the_messages_they_serve() -> None:
    """Else the first request would import every module of protocol/messages to find them: 25 ms."""
    missing = []
    for route in ROUTES:
        route.load()
        module = sys.modules[route.handler.__module__]
        if route.request.__module__ not in {getattr(each, "__module__", "") for each in vars(module).values()}:
            missing.append(f"{module.__name__} must import from {route.request.__module__} outside TYPE_CHECKING")
    _check(missing)


def test_served_apis_have_a_rule_of_authorization() -> None:
    """Without a line in broker/authorization/table.py an API is refused where an authorizer is set."""
    assert sorted(route.api_key for route in make_routes()) == sorted(RULES)


def test_served_versions_have_golden_frames() -> None:
    frames = _golden("golden_frames.txt")
    names = [(api_name(route.api_key) + suffix, route) for route in ROUTES for suffix in ("Request", "Response")]
    asked = [(name, version) for name, route in names for version in _served(route)]
    assert len(asked) >= 462
    _check(
        [
            f"{name} v{version} has no golden frame: run `make golden`"
            for name, version in asked
            if (name, version) not in frames
        ]
    )


def test_served_versions_have_an_error_test() -> None:
    refusals = _golden("golden_refusals.txt")
    asked = [(api_name(route.api_key) + "Request", version) for route in ROUTES for version in _served(route)]
    _check(
        [
            f"{name} v{version} has no golden refusal: run `make golden`"
            for name, version in asked
            if (name, version) not in refusals
        ]
    )


def test_served_apis_have_a_handler_test() -> None:
    names = [api_name(route.api_key) for route in ROUTES]
    _check(
        [
            f"no test sends {name}Request(...): add one of what its handler does, in tests/unit/handlers"
            for name in names
            if f"{name}Request" not in _requests_sent()
        ]
    )


def test_served_apis_are_described_in_a_header_block() -> None:
    notes = notes_of_apis()
    _check(
        [
            f'no header block in broker/handlers has a line "{name}  what its versions bring"'
            for name in [api_name(route.api_key) for route in ROUTES]
            if name not in notes
        ]
    )
