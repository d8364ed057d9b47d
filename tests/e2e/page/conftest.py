"""One Chromium for all tests of the page, and a tab for each that must have had nothing to complain about."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from page_kit import CHROMIUM, FLAGS, TEST_S, Look

ABSENT = [*(() if importlib.util.find_spec("playwright") else ("playwright",)), *(() if CHROMIUM else ("chromium",))]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test an end: what is asked of the browser by a script has none of its own."""
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(TEST_S))


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Headless Chromium, driven by Playwright."""
    if ABSENT:
        assert not request.config.getoption("--require-page"), f"{' and '.join(ABSENT)} not installed"
        pytest.skip(f"{' and '.join(ABSENT)} not installed: make test-page")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Look]:
    """A tab. In the end its console has said nothing, and it has asked no other host than the broker's."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    look = Look(context.new_page())
    yield look
    hosts = {url.split("/")[2] for url in look.asked}
    context.close()
    assert look.console == []
    assert len(hosts) <= 1, hosts
