"""How tests of the fixtures run an inner pytest, and what its tests tell."""

from __future__ import annotations

import importlib
import pkgutil

from protocol import messages

# An inner run takes back what it imported first. A second import would make other classes than those in use.
for each in pkgutil.iter_modules(messages.__path__):
    importlib.import_module(f"{messages.__name__}.{each.name}")

ALONE = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:xdist")

TELL = """
import json, os, pytest

def tell(broker, **more):
    with open(os.environ["TOLD"], "a") as file:
        described = broker.control.ask("GET", broker.control.prefix)
        file.write(json.dumps({**described, "control": broker.control.address, **more}) + "\\n")
"""
