"""Routes of a proxy that tests use: remove from the upstream cluster what this run has created."""

from __future__ import annotations

from typing import Any, Final, TypedDict

from broker.shell.control.routes import Call, Process, RefusedError, Route


class RemovedCreated(TypedDict):
    """Names of what was removed, and of what was not, with why."""

    removed: list[str]
    left: list[str]


async def remove_created(process: Process, call: Call) -> RemovedCreated:
    """Remove topics by their ids, and groups. Errors: RefusedError: no list is kept, or the cluster does not answer."""
    created: Any = getattr(process, "created", None)
    if created is None:
        raise RefusedError(409, "no list of what was created is kept here: this is no proxy for tests")
    try:
        found: RemovedCreated = await created.remove()
    except (OSError, TimeoutError) as error:
        raise RefusedError(503, f"the cluster does not answer, the list stays: {error}") from None
    return found


ROUTES: Final = (
    Route(
        "POST",
        "/_admin/upstream/remove-created",
        remove_created,
        "Of a proxy for tests: remove the topics and groups that this run has created in the cluster, by their ids.",
        body={},
        example={},
    ),
)
