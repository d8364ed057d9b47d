"""Owns the page of the control plane, `GET /ui`: what the broker sees, and a button for each thing that a test can do.

Start at files.py; topics.py is the first view. Design:

The page is files (static/): HTML, a style sheet and scripts of our own, no framework, no build step, nothing from
another host. frame.js is what all views share; NAME.js is one view, loaded when it is first opened. The address
says what is shown: #/CLUSTER/VIEW/NAME?filter.

It asks the control plane and nothing else. Reading: GET /events watches one GET and sends its answer when it has
changed, so a view is one path, and a page has one stream open. What no page watches is not computed. Doing: the routes
that tests use; each button shows its call as `curl` and as Python.

A list is a window (`offset`, `limit`) on what a filter leaves over, and the page keeps the rows in view only. Handlers
here go through 10,000 topics in slices (`slices`), so that clients are served between two of them.

Safety. The page sets text, never HTML: names, keys and headers are whatever clients have sent. The server cuts long
ones and says how long they were. Content-Security-Policy lets nothing run but these files. Requests of other pages are
refused by control/http.py. Where the endpoint has a token, the page asks for it (or takes it from #token=...), keeps
it in the tab, and sends it as any client does; the link that `momus serve --ui` prints does not hold it.
"""

from __future__ import annotations

from typing import Final

PAGE: Final = "/ui"
