"""What the broker's process is told when it starts: to serve a cluster of its own, or to be a proxy before another."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Broker = Any  # that of process.py, which imports this file

PROXY = "momus.client.upstream:serve"


def check_upstream(broker: Broker) -> None:
    """Refuse words that a proxy has no use for. Errors: ValueError."""
    if broker.upstream is None:
        if broker.upstream_config:
            raise ValueError("upstream_config= says how to connect to upstream=, which is not given")
        return
    given = {
        "brokers": broker.brokers != 1,
        "data_dir": broker.data_dir is not None,
        "seed": broker.seed is not None,
        "registry": broker.registry_listen is not None,
        "load": broker.load_files is not None,
    }
    if useless := [name for name, is_given in given.items() if is_given]:
        raise ValueError(f"{', '.join(useless)}: a proxy has no data of its own; with upstream= leave it out")


def child_options(broker: Broker, data_dir: str, addresses: str, users: dict[str, str] | None) -> dict[str, Any]:
    """What start_child takes. `addresses`: those of an earlier start, "" at the first."""
    both = {
        "listen": addresses or broker.listen,
        "data_dir": data_dir,
        "properties": broker.config,
        "journal_bytes": broker.journal_mb << 20,
        "log_level": broker.log_level,
        "statsd": broker.statsd,
        "otel": broker.otel,
        "security": broker.security,
        "users": users,
        "control": broker.control_listen,
    }
    if broker.upstream is not None:
        both |= {"created_list": broker.created_list, "record": broker.record_file}
        return {"run": PROXY, **both, "to": broker.upstream, "client_config": broker.upstream_config}
    return {
        **both,
        "brokers": broker.brokers,
        "flush": broker.flush,
        "seed": broker.seed,
        "registry": broker.registry_listen,
        "load": broker.load_files,
        "typed": list(broker.config),
    }
