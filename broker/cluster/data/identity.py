"""Whether a data directory is a broker's, and which cluster's: refuses foreign files, gives a new one its id."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.cluster.data.copies import CONTROL, STAYING, is_discarded
from storage.files import checkpoints

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from storage.files.env import Env, Files

logger = logging.getLogger("momus.server")

HARMLESS = {  # what may be in a directory that no broker has used yet
    *STAYING,
    checkpoints.LOCK,
    f"{checkpoints.META_PROPERTIES}.tmp",
    f"{CONTROL}.tmp",
    f"{checkpoints.UNFINISHED}.tmp",
    "lost+found",  # of a volume of its own
    ".gitignore",
    ".gitkeep",
}


class DirectoryError(Exception):
    """The data directory cannot be used; the message says why and what to do."""


def refuse_strangers(files: Files, path: str) -> None:
    """Refuse a directory with files that no broker has written there. Writes nothing. Errors: DirectoryError."""
    if _is_ours(files, path):
        return
    strangers = [name for name in files.listdir(path) if name not in HARMLESS and not is_discarded(name)]
    if not strangers or _is_ours(files, path):  # another process may have begun to use it while it was listed
        return
    raise DirectoryError(
        f"{path} is no data directory, and it is not empty: it has {', '.join(strangers[:3])}"
        f"{' …' if len(strangers) > 3 else ''} and no {checkpoints.META_PROPERTIES}; use another --data-dir"
    )


def _is_ours(files: Files, path: str) -> bool:
    return any(files.exists(f"{path}/{mark}") for mark in (checkpoints.META_PROPERTIES, checkpoints.UNFINISHED))


def give_cluster_id(files: Files, directory: str, cluster_id: str) -> None:
    """Make a copied directory another cluster's. Durable: when this returns. Errors: OSError."""
    path = f"{directory}/{checkpoints.META_PROPERTIES}"
    properties = checkpoints.read_properties(files, path) or {"version": "1"}
    checkpoints.write_properties(files, path, {**properties, "cluster.id": cluster_id})


def ensure_cluster_id(env: Env, directory: str, config: BrokerConfig) -> str:
    """The cluster's id in meta.properties; writes that file where there is none. Errors: DirectoryError, OSError."""
    path = f"{directory}/{checkpoints.META_PROPERTIES}"
    found = checkpoints.read_properties(env.files, path)
    if found is not None:
        if not found.get("cluster.id"):
            raise DirectoryError(f"{path} has no cluster.id: restore the file, or use another --data-dir")
        if config.cluster_id not in ("", found["cluster.id"]):
            logger.warning(
                "the data in %s is of the cluster %s, which it stays: cluster.id=%s has no effect",
                directory,
                found["cluster.id"],
                config.cluster_id,
            )
        return found["cluster.id"]
    drawn = checkpoints.uuid_text(env.rng.uuid_bytes())
    properties = {
        "version": "1",
        "cluster.id": config.cluster_id or drawn,
        "node.id": str(config.node_id),
        "directory.id": checkpoints.uuid_text(env.rng.uuid_bytes()),
    }
    checkpoints.write_properties(env.files, path, properties)
    return properties["cluster.id"]
