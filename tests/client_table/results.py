"""The file of results, docs/clients.json: what each run of each cell came to, kept after each."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from client_table.cells import Cell

FILE = Path(__file__).resolve().parents[2] / "docs" / "clients.json"
SAVED_S = 10.0  # it is written at most so often


class Results:
    """What the file holds.

    content  "clients": the version of each; "minutes": how long all took; "cells": runs by the cell's key; "cold": what
             hung before its fault was set, by client; "survived": what all clients survive, by API; "known": what
             known.py has told.
    """

    def __init__(self, file: Path = FILE) -> None:
        self._file = file
        empty = {"clients": {}, "minutes": 0.0, "cells": {}}
        self.content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else empty
        self._lock = threading.Lock()
        self._saved = 0.0

    def runs(self, cell: Cell) -> list[Any]:
        """What is known of a cell."""
        return list(self.content["cells"].get(cell.key, ()))

    def add(self, cell: Cell, said: str, found: Any) -> None:
        """Keep a run; the journal's lines of one run of its kind are enough."""
        with self._lock:
            kept = self.content["cells"].setdefault(cell.key, [])
            if any("proof" in each and each["did"] == found["did"] for each in kept):
                found.pop("proof", None)
            kept.append(found)
            self.content["clients"][cell.client] = said
            if time.monotonic() - self._saved > SAVED_S:
                self._save()

    def add_cold(self, client: str, found: Any) -> None:
        """Count a run that hung before its fault was set: it says nothing of the cell, and is made again."""
        with self._lock:
            kept = self.content.setdefault("cold", {}).setdefault(client, {"count": 0, "proof": found["proof"]})
            kept["count"] += 1

    def is_of(self, client: str, said: str) -> None:
        """Drop what another version of the client did."""
        if self.content["clients"].get(client, said) != said:
            kept = self.content["cells"]
            self.content["cells"] = {key: runs for key, runs in kept.items() if key.split("|")[0] != client}
            self.content.get("cold", {}).pop(client, None)

    def drop(self, dropped: Iterable[Cell]) -> None:
        for cell in dropped:
            self.content["cells"].pop(cell.key, None)

    def took(self, seconds: float) -> None:
        self.content["minutes"] = round(self.content["minutes"] + seconds / 60, 1)

    def save(self) -> None:
        with self._lock:
            self._save()

    def _save(self) -> None:
        """One cell a line, sorted, so that a change of one cell is a change of one line."""
        content = self.content
        rows = [f"  {json.dumps(key)}: {json.dumps(content['cells'][key])}" for key in sorted(content["cells"])]
        head = [f" {json.dumps(key)}: {json.dumps(content[key], sort_keys=True)}" for key in sorted(content)]
        head = [line for line in head if not line.startswith(' "cells"')]
        text = "{\n" + ",\n".join(head) + ',\n "cells": {\n' + ",\n".join(rows) + "\n}}\n"
        half = self._file.with_suffix(".tmp")
        half.write_text(text, encoding="utf-8")
        os.replace(half, self._file)
        self._saved = time.monotonic()
