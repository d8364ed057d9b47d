"""The public face: `from momus import Broker` starts a broker as a subprocess and says where it listens.

The modules beside this file are those that users name: handle.py, with what a test may do with a cluster, cluster.py,
control.py, faults.py, journal.py, record.py, security.py, optimistic.py, aio.py, pytest_plugin.py and launch.py. They
and kit/ run in a user's process. client/ and cli/ are the command line, which may import everything. Start reading at
`Broker` in kit/process.py, or at cli/main.py.

Nothing of the broker itself is imported here, now or later: the process that imports momus is a user's test
process, and the names `broker`, `protocol` and `storage` may well be the user's own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.cluster import Cluster, ClusterError, Snapshot
    from momus.control import BrokerDiedError, ControlError, NotOnUpstreamError
    from momus.difference import Difference, diff
    from momus.faults import Fault, FaultTimeoutError
    from momus.journal import JournalError
    from momus.kit.asks import UnverifiedError, WaitTimeoutError
    from momus.kit.plugin_options import MakeKafkaBroker
    from momus.kit.process import Broker, BrokerError
    from momus.kit.typed import JournalEntry
    from momus.record import Record

__all__ = [
    "Broker",
    "BrokerDiedError",
    "BrokerError",
    "Cluster",
    "ClusterError",
    "ControlError",
    "Difference",
    "Fault",
    "FaultTimeoutError",
    "JournalEntry",
    "JournalError",
    "MakeKafkaBroker",
    "NotOnUpstreamError",
    "Record",
    "Snapshot",
    "UnverifiedError",
    "WaitTimeoutError",
    "__version__",
    "diff",
]

__version__ = "0.1.0"

# Late, because the command line imports this package too and needs no subprocess to serve.
_MODULES = {
    "Broker": "kit.process",
    "BrokerDiedError": "control",
    "BrokerError": "kit.process",
    "Cluster": "cluster",
    "ClusterError": "cluster",
    "ControlError": "control",
    "Difference": "difference",
    "Fault": "faults",
    "FaultTimeoutError": "faults",
    "JournalEntry": "kit.typed",
    "JournalError": "journal",
    "MakeKafkaBroker": "kit.plugin_options",
    "NotOnUpstreamError": "control",
    "Record": "record",
    "Snapshot": "cluster",
    "UnverifiedError": "kit.asks",
    "WaitTimeoutError": "kit.asks",
    "diff": "difference",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'momus' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"momus.{_MODULES[name]}"), name)
