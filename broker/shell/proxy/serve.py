"""Starts a proxy: reaches the upstream cluster, learns its nodes, then serves as `momus serve` does.

The first words of its output are those of `serve`: `momus ready HOST:PORT[,...]`, `momus control HOST:PORT`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.listeners import split_listen
from broker.config.addresses import host_port
from broker.config.settings import ConfigError
from broker.faults.errors import FaultError
from broker.shell import server
from broker.shell.cluster_plan import ClusterPlan
from broker.shell.cluster_server import DEFAULT_CLUSTER
from broker.shell.log_lines import set_up
from broker.shell.proxy.process import ProxyProcess
from broker.shell.proxy.upstream import Upstream
from broker.shell.setting_warnings import check_known
from protocol.errors import MalformedError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence

    from broker.shell.proxy.created import Created
    from broker.shell.proxy.upstream import Address, Authenticate

START_LIMIT_S: Final = 25.0  # for a cluster that starts at the same time; momus.Broker waits for 30
AGAIN_S: Final = 0.2
OWN_SETTINGS: Final = {"connections.max.idle.ms": "-1", "broker.rack": ""}  # who is idle is for the cluster to say


class ProxyPlan(ClusterPlan):
    """The plan of a proxy: its nodes have the ids of the cluster's."""

    def name_nodes(self, ids: Sequence[int], advertise: str | None) -> None:
        """Give the nodes, as many as there are ids, these ids. `advertise`: the host that clients are told."""
        for node, node_id in zip(self.nodes, ids, strict=True):
            node.node_id = node_id
            for listener in node.listeners.values():
                listener.advertised_host = advertise or listener.advertised_host


def places_of(to: str) -> list[Address]:
    """HOST:PORT[,HOST:PORT...]. Errors: ConfigError."""
    found = []
    for text in to.split(","):
        try:
            _, host, port = split_listen(text)
        except ConfigError:
            raise ConfigError("--to", text, "is not HOST:PORT") from None
        found.append((host, port))
    return found


def _plan(options: dict[str, Any], name: str, listen: str, ids: Sequence[int]) -> ProxyPlan:
    addresses = listen.split(",")
    if len(addresses) > 1:  # those of an earlier start: a node may be away, or new
        host = split_listen(addresses[-1])[1]
        listen = ",".join((*addresses, *[host_port(host, 0)] * len(ids))[: len(ids)])
    plan = ProxyPlan(
        name,
        {**OWN_SETTINGS, **options["properties"]},
        data_dir=f"{options['data_dir']}/{name}",
        listen=listen,
        brokers=len(ids),
        flush="memory",
        security=options["security"],
        users=options["users"],
    )
    plan.name_nodes(ids, options["advertise"])
    created: Created | None = options["upstream"].created
    plan.run = "" if created is None else created.run if name == DEFAULT_CLUSTER else f"{name}-{created.run}"
    return plan


async def _serve(options: dict[str, Any]) -> int:
    upstream: Upstream = options["upstream"]
    stopping = asyncio.ensure_future(_reach(upstream, options["to"]))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.cancel)
    try:
        await stopping
    except asyncio.CancelledError:
        return 0
    if options["created_list"]:
        await _keep_list(upstream, options)
    plan = _plan(options, DEFAULT_CLUSTER, options["listen"], sorted(upstream.places))
    plan.journal_bytes = options["journal_bytes"]

    def make_process(*words: Any, **named: Any) -> ProxyProcess:
        made = ProxyProcess(upstream, partial(_plan, options), *words, **named)
        made.created = upstream.created
        if options["record"]:
            from broker.shell.proxy.recording import ProxyRecording  # 20 ms: most proxies record nothing

            made.recording = ProxyRecording(options["disk"], options["record"] + ".events", options["record"])
        return made

    return await server._serve({**options, "plan": plan, "make_process": make_process})


async def _keep_list(upstream: Upstream, options: dict[str, Any]) -> None:
    """Keep a list of what is created, and remove what runs that were killed have left."""
    from broker.shell.proxy.created import Created  # 1 ms: most proxies keep no list

    created = upstream.created = Created(options["disk"], options["created_list"], upstream)
    await created.remove_of_dead()


async def _reach(upstream: Upstream, to: str) -> None:
    """Learn the nodes of the cluster. Errors: OSError: none answers."""
    loop = asyncio.get_running_loop()
    stop = loop.time() + START_LIMIT_S
    while True:
        try:
            await upstream.nodes()
        except (OSError, TimeoutError, MalformedError) as error:
            if loop.time() > stop:
                raise OSError(f"no broker of {to} answers: {error or type(error).__name__}") from None
            await asyncio.sleep(AGAIN_S)
        else:
            return


def serve_proxy(
    *,
    to: str,
    listen: str = "127.0.0.1:0",
    advertise: str | None = None,
    data_dir: str = "",
    properties: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    authenticate: Authenticate | None = None,
    passes_sasl: bool = False,
    log_level: str = "WARNING",
    control: str | None = None,
    control_token: str | None = None,
    ui: bool = False,
    faults: Sequence[Mapping[str, object]] = (),
    journal_bytes: int = 0,
    security: str | None = None,
    users: dict[str, str] | None = None,
    statsd: str | None = None,
    otel: str | None = None,
    created_list: str = "",
    record: str = "",
) -> int:
    """Run a proxy until SIGTERM or SIGINT. Returns the exit code.

    to             some brokers of the upstream cluster, HOST:PORT[,HOST:PORT...].
    listen         where the first node's listener is; those of others follow, or are on free ports.
    advertise      the host that clients are told; None: the one that they connected to.
    tls, authenticate, passes_sasl   of connections to the cluster: see Upstream.
    created_list   FOLDER/RUN, where a run of tests keeps what it has created in the cluster (created.py); "": nowhere.
    record         a file: all that passes is there when the proxy has ended, for `momus replay`.
    The other words are those of `serve`, and about clients.
    """
    set_up(log_level.upper(), logging.StreamHandler(sys.stderr))
    told: dict[str, Any] = {
        "to": to,
        "listen": listen,
        "advertise": advertise,
        "data_dir": data_dir or "momus-proxy",
        "properties": dict(properties or {}),
        "control": control,
        "control_token": control_token,
        "ui": ui,
        "faults": faults,
        "journal_bytes": journal_bytes,
        "security": security,
        "users": users,
        "statsd": statsd,
        "otel": otel,
        "registry": None,
        "kafka_lines": False,
        "loads": None,
        "created_list": created_list,
        "record": record,
    }
    return _run(told, {"tls": tls, "authenticate": authenticate, "passes_sasl": passes_sasl})


def _run(told: dict[str, Any], connecting: dict[str, Any]) -> int:
    """Serve, and say why it has ended. Returns the exit code."""
    try:
        told["upstream"] = Upstream(places_of(told["to"]), **connecting)
        # what is wrong with the words is said before the cluster is asked
        check_known(_plan(told, DEFAULT_CLUSTER, told["listen"], [1]).new_config(), told["properties"])
        return int(server._loop()(_serve({**told, **server._limits()})))
    except (OSError, server.FewDescriptorsError) as error:
        sys.stderr.write(f"momus: {error}\n")
        return 1
    except (ConfigError, FaultError) as error:
        sys.stderr.write("".join(f"momus: {line}\n" for line in str(error).splitlines()))
        return 2
