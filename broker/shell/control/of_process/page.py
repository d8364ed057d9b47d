"""Routes of the page: its files. The handler is loaded when first called."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Route
from broker.shell.page import PAGE

SHOW: Final = "broker.shell.page.files:show"

ROUTES: Final = (
    Route("GET", PAGE, SHOW, "The page, for a browser.", media="text/html", name="page"),
    Route("GET", f"{PAGE}/{{file}}", SHOW, "A file of the page.", media="text/javascript", name="page_file"),
)
