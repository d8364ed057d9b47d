"""Whether this broker starts with each case's settings, and why not."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

from broker.config.config_values import ConfigError
from broker.shell.cluster_plan import ClusterPlan
from broker.shell.cluster_server import DEFAULT_CLUSTER
from broker.shell.process import Process
from differential.start_case import Case
from differential.start_cases import cases, with_files, write_material
from storage.files.env import SystemFiles


def start_here(folder: Path) -> dict[str, str]:
    """The outcome of each case, by its name: "" for a start, else the sentence that `momus serve` ends with."""
    files = folder / "files"
    files.mkdir()
    write_material(files)
    return asyncio.run(_start_all(folder))


async def _start_all(folder: Path) -> dict[str, str]:
    return {case.name: await _start(case, folder) for case in cases()}


def has_ipv6() -> bool:
    """Whether this machine has it: without, the cases that listen on it say nothing."""
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


async def _start(case: Case, folder: Path) -> str:
    settings: dict[str, Any] = with_files(case.settings(str(folder / "files")), folder / "files")
    if case.jaas is not None:
        (folder / "jaas.conf").write_text(case.jaas)
        settings["java.security.auth.login.config"] = str(folder / "jaas.conf")
    try:
        plan = ClusterPlan(DEFAULT_CLUSTER, settings, data_dir=str(folder / "data"), listen=None, flush="memory")
        if "listeners" not in settings:
            return ""  # it would listen on 9092, where somebody may listen already
        process = Process(SystemFiles(16), connection_limit=100, movable=False)
        await process.start(plan)
    except (ConfigError, OSError) as error:
        return str(error)
    await process.stop()
    return ""
