"""A cluster among others in a process: `with broker.create_cluster() as cluster: ...`. It costs milliseconds."""

from __future__ import annotations

from contextlib import suppress

from momus.handle import VERIFY, ClusterHandle, settings, unmet_faults
from momus.kit import explored
from momus.kit.asks import Returned, UnverifiedError
from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.upstream.cluster_name import ClusterName
from momus.kit.words import check_users, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from types import TracebackType
    from typing import Any, NoReturn, Self

    from momus.aio import AsyncCluster
    from momus.control import Control
    from momus.kit.load_files import Loadable


class ClusterError(RuntimeError):
    """A cluster was asked for what only a process can do."""


class Keeper:
    """The clusters that a test has made: each is verified before it is closed, whoever closes it."""

    def __init__(self) -> None:
        self.wrong: list[str] = []  # what the test must fail for
        self._kept: list[Cluster] = []

    def keep(self, cluster: Cluster) -> None:
        """It is made. Its forks are kept too."""
        cluster.keeper = self
        self._kept.append(cluster)

    def give(self, cluster: Cluster) -> None:
        """Stop keeping it: the caller verifies and closes it."""
        cluster.keeper = None
        self._kept.remove(cluster)

    def closing(self, cluster: Cluster) -> None:
        """It is about to be closed, and can be asked for the last time."""
        if cluster in self._kept:
            self._kept.remove(cluster)
        self._add(cluster, cluster.unverified())

    def forget_dead(self, control: Control) -> None:
        """A process has ended by itself, which its tests have been told: so have its clusters."""
        for each in [each for each in self._kept if each.control.address == control.address]:
            self._kept.remove(each)
            each.is_open = False

    def end(self, *, is_up: bool) -> None:
        """The process of all that are kept ends, or has ended."""
        for each in self._kept:
            each.settle(each.control, is_up=is_up)
            self._add(each, each.left())
        self._kept.clear()

    def close(self) -> None:
        """Close all that are still open."""
        from contextlib import ExitStack  # there already, where pytest is

        with ExitStack() as ends:
            for each in self._kept:
                ends.callback(each.close)

    def _add(self, cluster: Cluster, sentences: list[str]) -> None:
        self.wrong += [f"cluster {cluster.name}: {sentence}" for sentence in sentences]


class Snapshot(str, Returned):
    """The name of a snapshot, as a text, and the cluster that it is of.

        before = broker.snapshot()
        ...                                # the program under test does something
        print(momus.diff(before, broker))  # what has changed
        before.restore()

    It is gone with its cluster.
    """

    _of: Forkable

    def __new__(cls, name: str, of: Forkable) -> Self:
        made = super().__new__(cls, name)
        made._of = of
        return made

    @property
    def cluster(self) -> Forkable:
        """What it is a snapshot of."""
        return self._of

    def restore(self) -> None:
        """Go back to it, as `broker.restore(snapshot)`."""
        self._of.restore(self)

    def fork(self, *, name: str | None = None, listen: str | None = None) -> Cluster:
        """Another cluster that goes on from it, as `broker.fork(snapshot)`."""
        return self._of.fork(self, name=name, listen=listen)

    def remove(self) -> None:
        """Give it up; what was made from it stays."""
        self._of.remove_snapshot(self)


class Forkable(ClusterHandle):
    """A cluster that can be kept as it is, and of which others can be made."""

    keeper: Keeper | None = None

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Keep the cluster as it is: what a restart would find, and how the clock is moved. Returns the name.

        Errors: ControlError: there is one of this name already.
        """
        made = self._ask("POST", "/snapshots", {} if name is None else {"name": name})
        return Snapshot(made["name"], self)

    def restore(self, snapshot: str) -> None:
        """Go back to a snapshot, on the same ports; connections are cut, faults and the journal begin again.

        Errors: ControlError: there is none of this name.
        """
        self._begin_anew("/restore", snapshot=snapshot)

    def snapshots(self) -> list[Snapshot]:
        """The names of its snapshots, oldest first."""
        return [Snapshot(each["name"], self) for each in self._ask("GET", "/snapshots")]

    def remove_snapshot(self, snapshot: str) -> None:
        """Give a snapshot up; what was made from it stays. Errors: ControlError: there is none of this name."""
        self._ask("DELETE", f"/snapshots/{quoted(snapshot)}")

    def fork(self, snapshot: str | None = None, *, name: str | None = None, listen: str | None = None) -> Cluster:
        """Another cluster that goes on from this one, or from a snapshot of it; neither sees the other.

        It has the same data, ids, settings, seed and time, and ports of its own, until `close` or the end of `with`.
        Errors: ControlError.
        """
        given = {"snapshot": snapshot, "name": name, "listen": listen}
        made = self._ask("POST", "/fork", {key: value for key, value in given.items() if value is not None})
        fork = Cluster.found(self.control, made, self._read_log)
        fork.security = self.security
        if self.keeper is not None:
            self.keeper.keep(fork)
        return fork


class Cluster(Forkable):
    """One cluster of a process, with its own ports, data, settings and clock, until `close` or the end of `with`.

    control   the endpoint of the process.
    registry  serve a schema registry at once: `registry_url`.
    load      a file, a folder of files or a mapping that it is filled with (docs/load.md).
    log       answers what the process has logged; None: that is not known here.
    Others:   as Broker; `flush` is "memory" unless given. `at`: the moment at which its clock stands at first.
    Errors:   ControlError, which says why there is none.
    """

    def __init__(
        self,
        control: Control,
        *,
        name: str | None = None,
        brokers: int = 1,
        flush: str = "memory",
        as_version: str | None = None,
        fetch_waits: str | None = None,
        config: Mapping[str, object] | None = None,
        listen: str = "127.0.0.1:0",
        journal_mb: int | None = None,
        seed: int | None = None,
        at: datetime | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        registry: bool = False,
        load: Loadable | None = None,
        log: Callable[[], str] | None = None,
    ) -> None:
        check_users(users)
        given: dict[str, object] = {"name": name, "seed": seed, "clock_ms": None if at is None else _ms(at)}
        body = {key: value for key, value in given.items() if value is not None}
        if security is not None or users:
            body |= {"security": security} if security is not None else {}
            body |= {} if users is None else {"users": dict(users)}
        self.security = security
        if journal_mb is not None:
            body["journal_bytes"] = journal_mb << 20
        own = {"as.version": as_version, "fetch.waits": fetch_waits}
        set_to = settings(config) | {key: value for key, value in own.items() if value is not None}
        body |= {"brokers": brokers, "flush": flush, "config": set_to, "listen": listen}
        made: Any = control.ask("POST", "/_admin/clusters", body)
        self._found(control, made, log)
        if registry:
            self._ask("POST", "/registry", {})
        if load is not None:
            try:
                self.load(load)
            except BaseException:
                self.close()
                raise

    @classmethod
    def found(cls, control: Control, described: Any, log: Callable[[], str] | None = None) -> Self:
        """A cluster that is there already. `described`: as the control plane answers it."""
        cluster = cls.__new__(cls)
        cluster._found(control, described, log)
        return cluster

    def _found(self, control: Control, made: Any, log: Callable[[], str] | None) -> None:
        self.name = ClusterName(made["name"], made.get("run", ""))
        self.cluster_id: str = made["cluster_id"]
        self._bootstrap_servers: str = made["bootstrap_servers"]
        self._control = control.of_cluster(self.name)
        self._read_log = log
        self._log_start = len(log()) if log is not None else 0
        self.is_open = True
        if explored.watch is not None:
            explored.watch.made(self)

    def _begin_anew(self, path: str, **body: object) -> Any:
        answer = super()._begin_anew(path, **body)
        self.cluster_id = answer.get("cluster_id", self.cluster_id)  # a recording begins with the same one
        return answer

    @property
    def control(self) -> Control:
        """The endpoint of its process, for this cluster."""
        return self._control

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT[,HOST:PORT...]`, as clients take it."""
        return self._bootstrap_servers

    @property
    def aio(self) -> AsyncCluster:
        """The same calls to await: `await broker.aio.clock.advance(days=8)`. They run in a thread."""
        from momus.aio import AsyncCluster  # 25 ms

        return AsyncCluster(self)

    def close(self) -> None:
        """Remove the cluster and its data; its clients are disconnected."""
        if self.is_open:
            from momus.control import BrokerDiedError  # there already

            try:
                if explored.watch is not None:
                    explored.watch.ends(self)
                if self.keeper is not None:
                    self.keeper.closing(self)
            finally:
                self.is_open = False
                with suppress(BrokerDiedError):  # then it is gone
                    self._ask("DELETE", "")

    def close_verified(self) -> list[str]:
        """Close it. Returns a sentence for whatever its test must fail for, as `unverified` does, in one exchange where
        there is none."""
        if explored.watch is not None:
            explored.watch.ends(self)
        if unmet_faults not in VERIFY or (self._faults is not None and self._faults.unmet_before):
            wrong = self.unverified()
            self.close()
            return wrong
        others = [sentence for check in VERIFY if check is not unmet_faults for sentence in check(self)]
        if not others and "removed" in self._ask("DELETE", "?met=true"):
            self.is_open = False
            return []
        wrong = [*unmet_faults(self), *others]
        self.close()
        return wrong

    @property
    def log(self) -> str:
        """What its process has logged since the cluster was made, of other clusters too; empty when all is well."""
        return self._read_log()[self._log_start :] if self._read_log is not None else ""

    def kill(self) -> NoReturn:
        """Refused: it would end all clusters of the process. Errors: ClusterError."""
        raise ClusterError(
            "this cluster is one of many in a process, which is neither stopped nor killed for one test:"
            " use the fixture kafka_process_broker, or momus.Broker; broker.reset() drops data and connections"
        )

    start = stop = restart = kill

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if exc_type is None and self.is_open and self.keeper is None and self.verifies:
            if wrong := self.close_verified():
                raise UnverifiedError("\n".join(wrong))
        else:
            self.close()

    def __repr__(self) -> str:
        return f"<Cluster {self.name} {self.bootstrap_servers}>"


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
