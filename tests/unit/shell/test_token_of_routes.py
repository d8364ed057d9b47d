"""With a token no route of the control plane answers without it, whichever it is; the page's own files do."""

from __future__ import annotations

import re

import pytest

from broker.shell.control.endpoint import Control
from broker.shell.control.http_requests import Head
from broker.shell.control.routes import RefusedError
from broker.shell.page import PAGE

TOKEN = "t0ken"


@pytest.fixture(scope="module")
def control():
    return Control(None, TOKEN)


def refused(control, method, target, **fields):
    """The status of a request that is refused; None: it is not."""
    try:
        control._http.check(Head(method, target, "1.1", {"host": "localhost", **fields}))
    except RefusedError as error:
        return error.status
    return None


def test_every_route_wants_the_token(control):
    count = 0
    for path, place in control.routes.places.items():
        for method in place.methods:
            if method == "GET" and f"{path}/".startswith(f"{PAGE}/"):
                continue
            target = re.sub(r"\{\w+\}", "x", path)
            for tried in (target, f"{target}?a=/ui", f"{target}/"):
                assert refused(control, method, tried) == 401, f"{method} {tried}"
                assert refused(control, method, tried, authorization="Bearer t0keN") == 401
                assert refused(control, method, tried, authorization=TOKEN) == 401
                assert refused(control, method, tried, authorization=f"Bearer {TOKEN}") is None
            count += 1
    assert count > 100


@pytest.mark.parametrize("target", ["/uix", "//ui", "/ui/../_admin/topics/..", "/UI", "/_admin/ui", "/?/ui"])
def test_path_that_looks_like_the_pages_wants_the_token(control, target):
    public = target.startswith(f"{PAGE}/")  # one that the page's files are looked for by, and no route
    assert refused(control, "GET", target) == (None if public else 401)
    assert refused(control, "POST", target) == 401


def test_files_of_the_page_want_none(control):
    assert refused(control, "GET", PAGE) is None
    assert refused(control, "GET", f"{PAGE}/style.css") is None
    assert refused(control, "DELETE", PAGE) == 401
