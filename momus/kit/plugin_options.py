"""What the pytest plugin can be told: options, variables, ini keys, words of its marker and of make_kafka_broker."""

from __future__ import annotations

import os
from typing import Protocol  # pytest has imported it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Literal

    import pytest

    from momus.cluster import Cluster
    from momus.kit.load_files import Loadable
    from momus.kit.typed import Flush, Security

# name -> (default, help)
OPTIONS = {
    "address": ("", "HOST:PORT of the control endpoint of a process that runs; without it, one is started."),
    "control_token": ("", "What that endpoint asks for."),
    "upstream": ("", "HOST:PORT[,...] of a Kafka cluster: run the tests there, through proxies (docs/proxy.md)."),
    "upstream_config": ("", "A client.properties that says how the proxies connect to it."),
    "flush": ("memory", "Of the fixtures' clusters: memory, os or fsync."),
    "as_version": ("", "An Apache Kafka release, 2.1 to 4.4: what the fixtures' clusters offer clients is not newer."),
    "seed": ("", "A number from which the fixtures' clusters draw their ids, so that they repeat."),
    "journal_mb": ("4", "How much of its last requests a fixture's cluster keeps, for `journal` and reports; 0: none."),
    "keep_failed": ("", "A folder: of each failed test its whole run is kept there as a file for `momus replay`."),
    "explore": ("", "Run each test once for each thing that a cluster may do: 60s, 200 or all (docs/explore.md)."),
    "explore_what": ("", "Of errors, connection, group, broker, transaction, records, fatal; all but the last."),
    "explore_workers": ("", "So many processes for them; as many as there are processors unless given."),
    "explore_report": ("", "A file, .json, .md, .xml or .html, for what was found."),
    "schedule": ("", "Run the chosen tests once, with this schedule of --momus-explore."),
    "log_level": ("warning", "Of the process that is started: debug, info, warning or error."),
}
DEFAULT_BUDGET = "60s"  # of `--momus-explore` for each test
EXPLORE_MARKER = (
    "momus_explore(skip, what, apis, budget, checks): how --momus-explore explores this test. skip: a reason; what:"
    ' "errors,group"; apis: a list; budget: "60s", "200" or "all"; checks: False: what is left wrong is no finding.'
)
MARKER = (
    "momus(topics, load, faults, **words): for the cluster of this test, or of its class or module. topics: name ->"
    " number of partitions; load: a file or a folder beside the test's file that the cluster is filled with; faults: a"
    " list as docs/faults.md has them; words: config, brokers, flush, as_version, fetch_waits, seed, at,"
    " security, users."
)


def option(config: pytest.Config, name: str) -> str:
    """What the command line, the variable or the ini file says, in this order."""
    given: str | None = config.getoption(f"momus_{name}")
    return given or os.environ.get(f"MOMUS_{name.upper()}") or str(config.getini(f"momus_{name}"))


class MakeKafkaBroker(Protocol):
    """The fixture `make_kafka_broker`.

    def test_two(make_kafka_broker: momus.MakeKafkaBroker) -> None:
        first, second = make_kafka_broker(brokers=3), make_kafka_broker(seed=7)
    """

    def __call__(
        self,
        *,
        name: str | None = None,
        brokers: int = 1,
        flush: Flush = "memory",
        as_version: str | None = None,
        fetch_waits: Literal["real", "frozen"] | None = None,
        config: Mapping[str, object] | None = None,
        listen: str = "127.0.0.1:0",
        journal_mb: int | None = None,
        seed: int | None = None,
        at: datetime | None = None,
        security: Security | None = None,
        users: Mapping[str, str] | None = None,
        registry: bool = False,
        load: Loadable | None = None,
    ) -> Cluster:
        """Make a cluster; it is verified when it is closed."""
