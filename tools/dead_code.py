"""Finds functions, methods, classes and imports that nothing in the product uses; part of `make lint`.

Vulture compares names. Data is left out, for names of fields, settings and error codes come from Kafka, used or not; so
is whatever ROUTES, DECORATORS and USED_ELSEWHERE say who calls it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from vulture import Vulture

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("protocol", "storage", "broker", "momus", "pipeline")
KINDS = {"function", "method", "class", "property", "import", "unreachable_code"}
ROUTES = (  # name handlers as "module:function"
    REPOSITORY / "broker" / "handlers" / "__init__.py",
    REPOSITORY / "broker" / "registry" / "routes.py",
    *(REPOSITORY / "broker" / "shell" / "control").glob("of_*/*.py"),
)
DECORATORS = ["@*.command", "@click.*", "@cli.*", "@main.*", "@pytest.fixture"]  # click and pytest call these

# Names or patterns, and who uses them.
USED_ELSEWHERE = {
    "__getattr__": "Python, for a name that a module lacks",
    "connection_made": "asyncio",
    "connection_lost": "asyncio",
    "eof_received": "asyncio",
    "pause_writing": "asyncio",
    "resume_writing": "asyncio",
    "data_received": "asyncio",
    "log_message": "http.server",
    **dict.fromkeys(("on_message_begin", "on_url", "on_header", "on_headers_complete"), "httptools"),
    **dict.fromkeys(("on_body", "on_message_complete"), "httptools"),
    "_encode": "construct",
    "*Request": "protocol/api.py, which finds an API's messages by name",
    "*Response": "protocol/api.py, which finds an API's messages by name",
    "onQuery*": "Spark, of a listener",
    "initialOffset": "Spark, of a stream reader",
    "pushFilters": "Spark, of a reader",
    "getDefaultReadLimit": "Spark, of a stream reader",
    "latestOffset": "Spark, of a stream reader",
    "prepareForTriggerAvailableNow": "Spark, of a stream reader",
    "streamReader": "Spark, of a data source",
    "ProgressBridge": "users, in their own Spark session",
    "commit_if": "users",
    "restart": "users, of a broker",
    "ui_url": "users, of a broker",
    "registry_url": "users, of a broker",
    "verify": "users, of a cluster",
    "aio": "users, of a broker",
    "get_bootstrap_server": "users who come from testcontainers",
    "pytest_*": "pytest",
    "encode_response_header": "tests: a format is written down in both directions",
    "decode_response_header": "tests: a format is written down in both directions",
    "decode_transaction_record": "tests: a format is written down in both directions",
    "open_handles": "tests, which count descriptors",
    "sim_env": "tests, and users' tests: a simulated disk and clock",
    "inject": "tests, of the simulated disk",
    "kill_at": "tests, of the simulated disk",
    "heal": "tests, of the simulated disk",
    "crash": "tests, of the simulated disk",
}

# Files whose every public name is called by users; tests/e2e calls them all.
USERS_CALL = ("momus/faults.py", "momus/journal.py", "momus/security.py")


def main() -> int:
    """Print what nothing uses, a line each; 1 if there is anything."""
    handlers = [name for path in ROUTES for name in re.findall(r'"[\w.]+:(\w+)"', path.read_text())]
    vulture = Vulture(ignore_names=[*USED_ELSEWHERE, *handlers], ignore_decorators=DECORATORS)
    vulture.scavenge([str(REPOSITORY / package) for package in PACKAGES])
    found = [
        (Path(item.filename).relative_to(REPOSITORY).as_posix(), item)
        for item in vulture.get_unused_code(min_confidence=60)
        if item.typ in KINDS
    ]
    dead = [(path, item) for path, item in found if path not in USERS_CALL or item.name.startswith("_")]
    for path, item in dead:
        sys.stdout.write(f"{path}:{item.first_lineno}: {item.message}\n")
    return 1 if dead else 0


if __name__ == "__main__":
    raise SystemExit(main())
