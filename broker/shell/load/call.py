"""Fills a cluster that serves, by a call of the control plane: with files that the caller has read, or with a value."""

from __future__ import annotations

import asyncio
import json
import posixpath
from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.load.problems import LoadError
from broker.load.sources import names_beside, read_documents, read_value
from broker.load.texts import ENDINGS, read_text
from broker.shell.control.routes import Call, RefusedError
from broker.shell.load.filling import Filling
from broker.shell.load.start import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.load.items import Load
    from broker.shell.cluster_server import ClusterServer

SECRET: Final = {"users", "acls"}


class Loaded(TypedDict):
    """How many of each kind were loaded, what was there before, and files that are to be sent too."""

    loaded: dict[str, int]
    present: dict[str, list[str]]
    needs: list[str]


async def load_files(cluster: ClusterServer, call: Call) -> Loaded:
    """Check all, then load it; `needs` names files beside them that are to be sent too, and nothing was loaded.

    Errors: RefusedError: 400: nothing was loaded; 409: some of it was.
    """
    body = call.body
    if ("files" in body) == ("document" in body):
        raise RefusedError(400, 'give one of "files" and "document"')
    if_present = body.get("if_present", "fail")
    if if_present not in ("fail", "skip"):
        raise RefusedError(400, '"if_present" takes fail or skip')
    files = {posixpath.normpath(name): text for name, text in body.get("files", {}).items()}
    try:
        # in a thread: a record takes 20 us to check, and clients have their turn meanwhile
        load = await asyncio.to_thread(_read, files, body.get("document"))
        if isinstance(load, list):
            return {"loaded": {}, "present": {}, "needs": load}
        filling = Filling(cluster, load)
    except LoadError as error:
        raise RefusedError(400, str(error)) from None
    if cluster.recording is not None:
        cluster.recording.loaded(_without_secrets(body, files), cluster.clock.now_ms())
    try:
        loaded = await filling.run(if_present)
    except LoadError as error:
        raise RefusedError(400, str(error).replace("--load-if-present skip", 'if_present="skip"')) from None
    except RefusedError as error:
        counts = {what: number for what, number in filling.counts.items() if number}
        raise RefusedError(409, f"{error}; loaded before that: {in_words(counts)}") from None
    return {"loaded": loaded, "present": {kind: names for kind, names in filling.present.items() if names}, "needs": []}


def _read(files: dict[str, str], document: Any) -> Load | list[str]:
    """What files or a value say, or the names of files that are needed beside them. Errors: LoadError."""
    if not files:
        return read_value("load", document)
    documents = [(name, text) for name, text in files.items() if name.endswith(ENDINGS)]
    needs = sorted({each for name, text in documents for each in names_beside(name, text)} - files.keys())
    return needs or read_documents(documents, files.__getitem__)


def _without_secrets(body: Mapping[str, Any], files: dict[str, str]) -> dict[str, object]:
    """A call as a recording may have it: without users, and ACLs, which a replay has no use for."""
    kept: dict[str, object] = {"if_present": body.get("if_present", "fail")}
    if "document" in body:
        return {**kept, "document": {part: rows for part, rows in body["document"].items() if part not in SECRET}}
    texts = {}
    for name, text in files.items():
        value = read_text(name, text).value if name.endswith(ENDINGS) else None
        if isinstance(value, dict) and value.keys() & SECRET:
            rest = {part: rows for part, rows in value.items() if part not in SECRET}
            texts[f"{name}.json"] = json.dumps(rest, default=str)  # TOML has times
        else:
            texts[name] = text
    return {**kept, "files": texts}
