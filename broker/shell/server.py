"""Starts the process: settings, descriptors, clock, files, event loop and signals."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.cluster.data.copies import is_private
from broker.cluster.data.identity import DirectoryError
from broker.config.settings import ConfigError
from broker.faults.errors import FaultError
from broker.load.problems import LoadError, LoadFailedError
from broker.shell.cluster_plan import ClusterPlan
from broker.shell.cluster_server import DEFAULT_CLUSTER
from broker.shell.control.place import remove_place, write_place
from broker.shell.log_lines import set_up
from broker.shell.process import Process
from broker.shell.setting_warnings import check_known, warn_of_settings
from storage.files.env import MAX_OPEN_FILES, SystemFiles
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.shell.load.at_start import StartLoads

# What people's suites wait for in the output of Kafka's images; {id}: the node id.
KAFKA_LINES = (
    "[BrokerLifecycleManager id={id}] Transitioning from RECOVERY to RUNNING.\n",
    "[KafkaServer id={id}] started (momus)\n",
    "[KafkaRaftServer nodeId={id}] Kafka Server started (momus)\n",
)
MOST_DESCRIPTORS = 65_536  # requested from the system
# New objects a collection, and how many of these a collection of the next age: at most 6,000 objects are looked at in
# one step of the loop, a millisecond. Five times as many took 22 ms while groups were made on a busy machine, and the
# same time in all. A collection of all objects is rare.
COLLECTIONS = (1_000, 5, 5_000)
RESERVED_DESCRIPTORS = 64  # for listeners, the loop, checkpoints and late imports
LEAST_DESCRIPTORS = 48  # with these a broker serves some clients
FEW_CONNECTIONS = 100  # fewer are told at the start

logger = logging.getLogger("momus.server")


class FewDescriptorsError(Exception):
    """No client could be served."""


async def _serve(options: dict[str, Any]) -> int:
    loads: StartLoads | None = options["loads"]
    movable = options["control"] is not None or (loads is not None and loads.moves_clock)
    make: Callable[..., Process] = options.get("make_process", Process)
    process = make(options["disk"], connection_limit=options["connection_limit"], movable=movable)
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            process.loop.add_signal_handler(number, process.stopping.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: process.loop.call_soon_threadsafe(process.stopping.set))
    cluster = await process.start(options["plan"], prepare=None if loads is None else loads.fill)
    has_files = cluster.plan.flush != "memory"  # else the directory is not this process'
    if has_files:
        remove_place(cluster.plan.data_dir)
    for fault in options["faults"]:
        cluster.broker.faults.add(fault)
    if options["statsd"]:
        process.send_metrics(options["statsd"])
    if options["otel"]:
        process.send_traces(options["otel"])
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    lines = [f"momus ready {','.join(cluster.addresses)}\n"]
    if options["kafka_lines"]:
        lines += [line.format(id=cluster.nodes[0].node_id) for line in KAFKA_LINES]
    registry = [await _open_registry(process, options["registry"])] if options["registry"] else []
    if options["control"]:
        host, _, port = options["control"].rpartition(":")
        address = await process.open_control(host.strip("[]"), int(port), options["control_token"])
        if has_files:
            write_place(cluster.plan.data_dir, address, options["control_token"])
        lines += [f"momus control {address}\n", *registry]
        if options["ui"]:
            from broker.shell.page.link import link  # 0.2 ms: few starts are looked at

            lines.append(f"momus ui {link(address)}\n")
    else:
        lines += registry
    if cluster.plan.security is not None and cluster.plan.security.word != "given":
        from broker.shell.client_configs import write_client_files  # 2 ms: most starts have no security

        place = write_client_files(cluster.plan.security.folder, ",".join(cluster.addresses), cluster.plan.security)
        lines.append(f"momus clients {place}\n")
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
    await process.stopping.wait()
    if has_files:
        remove_place(cluster.plan.data_dir)  # while the directory is locked
    await process.stop()
    return 0


async def _open_registry(process: Process, place: str) -> str:
    """Serve the registry of the cluster "default". Returns the line that says where. Errors: OSError."""
    host, _, port = place.rpartition(":")
    url = await process.open_registry(process.clusters[DEFAULT_CLUSTER], host.strip("[]"), int(port))
    return f"momus registry {url}\n"


def allow_descriptors() -> int:
    """Raise the limit of open files. Returns the limit. Windows has none for sockets."""
    try:
        import resource  # not on every system
    except ImportError:
        return MOST_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS reports a limit that it does not allow
            return soft
        return wanted
    return min(soft, MOST_DESCRIPTORS) if soft != resource.RLIM_INFINITY else MOST_DESCRIPTORS


def _limits() -> dict[str, Any]:
    """The files, and how many descriptors they leave for connections. Errors: FewDescriptorsError."""
    descriptors = allow_descriptors()
    if descriptors < LEAST_DESCRIPTORS:
        raise FewDescriptorsError(
            f"the limit of open files is {descriptors}, and a broker needs {LEAST_DESCRIPTORS} to serve clients;"
            " `ulimit -n 1024` raises it"
        )
    open_files = min(MAX_OPEN_FILES, descriptors // 4)
    connections = descriptors - open_files - min(RESERVED_DESCRIPTORS, descriptors // 2)
    if connections < FEW_CONNECTIONS:
        logger.warning("the limit of open files is %d: at most %d connections are served", descriptors, connections)
    return {"connection_limit": connections, "disk": _disk(open_files)}


def _disk(open_files: int) -> SystemFiles:
    """The data directory's files."""
    disk = SystemFiles(open_files)
    disk.is_private = is_private
    return disk


def _loop() -> Any:
    """What runs a coroutine."""
    try:
        import uvloop  # not on every system
    except ImportError:  # there is none for Windows
        return asyncio.run
    return uvloop.run


def _whose(error: Exception, data_dir: str) -> str:
    """What to do about a data directory of another user, as a container's volume often is; "" for other errors."""
    is_there = isinstance(error, PermissionError) and str(error.filename).startswith(data_dir)
    if not is_there or not hasattr(os, "geteuid") or not os.path.isdir(data_dir):
        return ""
    owner = os.stat(data_dir).st_uid
    return (
        f": {data_dir} belongs to user {owner}, and this process runs as user {os.geteuid()}: give it to that user"
        f" (chown {os.geteuid()} {data_dir}), or run as user {owner} (in Docker --user {owner})"
    )


def _read_loads(load: Mapping[str, Any] | None) -> StartLoads | None:
    """What is to be loaded. Errors: LoadError."""
    if load is None:
        return None
    from broker.shell.load.at_start import StartLoads  # 30 ms: most starts load nothing

    return StartLoads(**load)


def _check(plan: ClusterPlan, typed: Sequence[str], url: str | None) -> None:
    """Refuse what the plan alone does not show to be wrong, and warn of what has no effect. Errors: ConfigError."""
    check_known(plan.new_config(), typed)
    if url is not None:
        from broker.shell.traces.address import endpoint_of  # 1 ms: most starts send no traces

        endpoint_of(url)
    warn_of_settings(plan.new_config(), plan.properties)


def serve(
    *,
    listen: str | None = "127.0.0.1:9092",
    data_dir: str = "./data",
    brokers: int = 1,
    flush: str = "os",
    properties: dict[str, str] | None = None,
    log_level: str = "WARNING",
    statsd: str | None = None,
    otel: str | None = None,
    registry: str | None = None,
    control: str | None = None,
    control_token: str | None = None,
    ui: bool = False,
    faults: Sequence[Mapping[str, object]] = (),
    journal_bytes: int = 0,
    seed: int | None = None,
    kafka_lines: bool = False,
    security: str | None = None,
    users: dict[str, str] | None = None,
    load: Mapping[str, Any] | None = None,
    typed: Sequence[str] = (),
) -> int:
    """Run a broker until SIGTERM or SIGINT. Returns the exit code.

    otel           an OTLP address over HTTP: a span for each request is sent there.
    registry       HOST:PORT: a schema registry is served there.
    ui             print a link to the page of the control endpoint.
    faults         act from the start.
    journal_bytes  how much the journal keeps; 0: there is none.
    kafka_lines    print what Kafka's images print when they have started.
    security       a word of made_security.py; None: what Kafka's settings say.
    users          name -> password.
    load           what the cluster is filled with before it listens: the words of StartLoads.
    typed          keys of `properties` that were written for this start: an unknown one is an error, not a warning.
    """
    set_up(log_level.upper(), logging.StreamHandler(sys.stderr))
    made: dict[str, Any] = {"listen": listen, "brokers": brokers, "flush": flush, "seed": seed}
    try:
        plan = ClusterPlan(DEFAULT_CLUSTER, properties or {}, data_dir=data_dir, security=security, users=users, **made)
        _check(plan, typed, otel)
    except ConfigError as error:
        sys.stderr.write(f"momus: {error}\n")
        return 2
    plan.journal_bytes = journal_bytes
    told: dict[str, Any] = {
        "control": control,
        "control_token": control_token,
        "ui": ui,
        "statsd": statsd,
        "otel": otel,
    }
    told |= {"registry": registry, "faults": faults, "kafka_lines": kafka_lines, "plan": plan, "load": load}
    return _run(told, data_dir)


def _run(options: dict[str, Any], data_dir: str) -> int:
    """Serve, and say why it has ended. Returns the exit code."""
    try:
        options = {**options, **_limits(), "loads": _read_loads(options["load"])}
        return int(_loop()(_serve(options)))
    except (OSError, DirectoryError, StorageError, FewDescriptorsError, LoadFailedError) as error:
        sys.stderr.write(f"momus: {error}{_whose(error, data_dir)}\n")
        return 1
    except (ConfigError, FaultError, LoadError) as error:
        sys.stderr.write("".join(f"momus: {line}\n" for line in str(error).splitlines()))
        return 2
