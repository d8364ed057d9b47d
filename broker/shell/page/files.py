"""The files of the page: what is served below /ui, with the headers that keep anything else from running there."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Final

from broker.shell.control.routes import Call, RefusedError, Text

if TYPE_CHECKING:
    from broker.shell.control.routes import Process

MEDIA: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FIELDS: Final = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
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
    "groups.js",
    "journal.js",
    "faults.js",
    "transactions.js",
    "schemas.js",
    "cluster.js",
)


async def show(process: Process, call: Call) -> Text:
    """One file; without a name the page itself. Errors: RefusedError."""
    name = call.words.get("file", "index.html")
    data = pkgutil.get_data(__package__, f"static/{name}") if name in NAMES else None
    if data is None:
        raise RefusedError(404, f"no such file of the page: {name:.100}")
    return Text(MEDIA[name.rpartition(".")[2]], data, FIELDS)
