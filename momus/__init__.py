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
    from momus.control import BrokerDiedError
    from momus.kit.process import Broker, BrokerError

__all__ = ["Broker", "BrokerDiedError", "BrokerError", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Late, because the command line imports this package too and needs no subprocess to serve.
    if name in ("Broker", "BrokerError"):
        from momus.kit import process

        return getattr(process, name)
    if name == "BrokerDiedError":
        from momus.control import BrokerDiedError

        return BrokerDiedError
    raise AttributeError(f"module 'momus' has no attribute {name!r}")
