"""The files of the page: what is served below /ui, with the headers that keep anything else from running there."""

from __future__ import annotations

import base64
import functools
import hashlib
import pkgutil
from typing import TYPE_CHECKING, Final

from broker.shell.control.routes import Call, RefusedError, Text

if TYPE_CHECKING:
    from broker.shell.control.routes import Process

POLICY: Final = "Content-Security-Policy"
LINK: Final = b'<link rel="stylesheet" href="/ui/style.css">'
MEDIA: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FIELDS: Final = {
    POLICY: "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
NAMES: Final = (
    "index.html",
    "style.css",
    "icon.svg",
    "frame.js",
    "topics.js",
    "messages.js",
    "search.js",
    "groups.js",
    "journal.js",
    "faults.js",
    "transactions.js",
    "schemas.js",
    "cluster.js",
    "compare.js",
    "security.js",
    "overview.js",
    "timeline.js",
    "chart.js",
    "uplot.js",
    "uplot.css",
    "forms.js",
    "kits.js",
)


async def show(process: Process, call: Call) -> Text:
    """One file; without a name the page itself. Errors: RefusedError."""
    if "file" not in call.words:
        return _page()
    name = call.words["file"]
    data = _read(name)
    return Text(MEDIA[name.rpartition(".")[2]], data, FIELDS)


@functools.cache
def _page() -> Text:
    """The page with its style in it, for a first paint after one answer. The policy lets this style in by its hash."""
    style = _read("style.css")
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    page = _read("index.html").replace(LINK, b"<style>" + style + b"</style>")
    return Text(MEDIA["html"], page, {**FIELDS, POLICY: f"{FIELDS[POLICY]}; style-src 'self' 'sha256-{digest}'"})


def _read(name: str) -> bytes:
    data = pkgutil.get_data(__package__, f"static/{name}") if name in NAMES else None
    if data is None:
        raise RefusedError(404, f"no such file of the page: {name:.100}")
    return data
