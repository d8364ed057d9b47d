"""What a cluster is made of: settings, addresses, place on disk, seed, first moment. Makes an Env for each life."""

from __future__ import annotations

import re
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from broker.cluster.acls import Acls
from broker.cluster.data.directory import DataDirectory
from broker.cluster.data.identity import give_cluster_id
from broker.cluster.listeners import make_nodes
from broker.config.authorizer_setting import is_authorizer_set
from broker.config.node.quorum_checks import check_quorum
from broker.config.refused_keys import RefusedSettingsError, refusals
from broker.config.settings import BrokerConfig, ConfigError
from storage.clock.movable_clock import MovableClock
from storage.files import checkpoints
from storage.files.env import Env, Rng, SystemClock, SystemRng
from storage.files.sim_env import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from broker.broker import Broker
    from broker.config.settings import Logins
    from broker.shell.made_security import MadeSecurity
    from storage.files.env import Clock, Files, SystemFiles

# Settings of the first cluster that others of the process do not take over.
NOT_INHERITED = ("listeners", "advertised.listeners", "log.dirs", "log.dir", "cluster.id")
OF_LISTENERS = (  # settings that are about those listeners, by their names
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "controller.listener.names",
)
SEEDED_STARTS = "seeded-starts"  # a file in the data directory
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")  # of a cluster or a snapshot


class ClusterRefusedError(ValueError):
    """What is asked of a cluster cannot be done; the message says why."""


class UnknownSnapshotError(ClusterRefusedError):
    """There is no snapshot of this name."""


class Names:
    """The names of clusters or of snapshots: `kind`-1, `kind`-2, ... where none is given."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._made = 0

    def checked(self, name: str | None, is_taken: Callable[[str], bool]) -> str:
        """This name, or one that is not taken. Errors: ClusterRefusedError: it is no name; whether it is taken is for
        the caller to say."""
        while name is None:
            self._made += 1
            made = f"{self._kind}-{self._made}"
            name = None if is_taken(made) else made
        if not NAME.fullmatch(name):
            raise ClusterRefusedError(f"{name:.100} is no name: letters, digits, dot, dash and underscore, 100 at most")
        return name


class SnapshotRow(TypedDict):
    """A snapshot. `ahead_ms`: how far the clock was moved; `stands_at_ms`: where it stands, or -1."""

    name: str
    taken_ms: int
    ahead_ms: int
    stands_at_ms: int
    files: int
    log_bytes: int


class Origin:
    """What a life begins with: its files, and how its clock is moved.

    fill           fills the new data directory: of these files, at this path, and whether durably. Errors: OSError.
    ahead_ms       how far a clock that runs is ahead of the machine's.
    stands_at_ms   Unix milliseconds at which it stands; None: it runs.
    cluster_id     of the life; None: the files have it.
    """

    __slots__ = ("ahead_ms", "cluster_id", "fill", "stands_at_ms")

    def __init__(self, fill: Callable[[Files, str, bool], None], ahead_ms: int, stands_at_ms: int | None) -> None:
        self.fill = fill
        self.ahead_ms = ahead_ms
        self.stands_at_ms = stands_at_ms
        self.cluster_id: str | None = None

    @classmethod
    def now(cls, broker: Broker) -> Self:
        """A cluster as it is when the life begins."""
        clock = broker.turn.env.clock
        assert isinstance(clock, MovableClock)

        def fill(files: Files, path: str, sync: bool) -> None:
            broker.directory.copy_to(files, path, sync=sync)

        return cls(fill, clock.ahead_ms, clock.stands_at_ms)


class ClusterPlan:
    """A cluster before it lives. Each start and each reset begins a life of it.

    properties   Kafka's broker settings.
    data_dir     where its data is; with flush "memory" only shown.
    listen       HOST:PORT, or one for each broker; None: the setting `listeners`.
    seed         of all random choices: ids of members, topics, sessions, the cluster. None: from the system.
    at_ms        Unix milliseconds at which its clock stands at first; None: the machine's time, running.
    security     a word of made_security.py, for certificates, users and listeners that are made for it.
    users        name -> password; None: one is made up where clients say who they are.
    Errors:      ConfigError.
    """

    def __init__(
        self,
        name: str,
        properties: Mapping[str, str],
        *,
        data_dir: str,
        listen: str | None,
        brokers: int = 1,
        flush: str = "os",
        seed: int | None = None,
        at_ms: int | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.security: MadeSecurity | None = None
        self.properties = dict(properties)
        self.data_dir = data_dir
        self.brokers = brokers
        self.flush = flush
        self.seed = seed
        self.at_ms = at_ms
        self.run = ""  # of tests before a real cluster: ends the names that the kit gives
        self.journal_bytes = 0  # how much the journal of a life keeps from its beginning on; 0: there is none
        if security is not None or users:
            from broker.shell.made_security import secured  # 10 ms: most clusters have no security

            self.security, properties = secured(security, users, properties, listen, data_dir, flush)
        self._config = BrokerConfig.load({**properties, "log.dirs": data_dir, "flush": flush})
        if refused := refusals(properties):
            raise RefusedSettingsError(refused)
        check_quorum(self._config, brokers)
        self.nodes = make_nodes(self._config, listen, brokers)
        if is_authorizer_set(self._config):
            from broker.authorization.authorizer import Authorizer  # 3 ms: most clusters have no authorizer

            Authorizer(self._config, Acls)
        if any(listener.is_sasl for node in self.nodes for listener in node.listeners.values()):
            from broker.security.security import check_sasl  # 6 ms: most clusters do not authenticate

            self._config.logins = _logins(self._config)
            check_sasl(self._config, self.nodes)

    def new_config(self) -> BrokerConfig:
        """The settings as they were given, without what clients have set since."""
        return copy(self._config)

    def draw_cluster_id(self, life: int) -> str:
        """The id of a cluster that is not the one before it, by which clients know the two apart (KIP-1242).

        life   counts from 1: with a seed each life has its own id, which repeats in the next run.
        """
        rng = SystemRng() if self.seed is None else Rng(f"{self.seed} {self.name} {life}")
        return checkpoints.uuid_text(rng.uuid_bytes())

    def new_env(self, disk: SystemFiles, *, movable: bool, origin: Origin | None = None) -> Env:
        """Clock, randomness and files of one life; `movable` is for its clock. Errors: as Origin's `fill`."""
        files: Files = disk.share(syncs=self.flush == "fsync")
        clock: Clock = SystemClock()
        waits_pass = self._config.fetch_waits == "real"
        if origin is not None:
            clock = MovableClock(clock, origin.stands_at_ms, origin.ahead_ms, waits_pass=waits_pass)
        elif movable:
            clock = MovableClock(clock, self.at_ms, waits_pass=waits_pass)
        rng = SystemRng() if self.seed is None else Rng(self.seed)
        if self.flush == "memory":
            memory = MemoryFiles()
            memory.clock = clock
            files = memory
        if origin is not None:
            with checkpoints.unfinished(files, self.data_dir, sync=self.flush == "fsync"):
                origin.fill(files, self.data_dir, self.flush == "fsync")
                if origin.cluster_id is not None:
                    give_cluster_id(files, self.data_dir, origin.cluster_id)
        return Env(clock, rng, files)

    def fork(self, name: str, data_dir: str, listen: str | None) -> ClusterPlan:
        """The plan of another cluster that goes on from this one, with its listeners on other ports.

        listen   HOST:PORT, or one for each broker; None: hosts as here, and ports that the system chooses.
        Errors:  ConfigError.
        """
        properties = {key: value for key, value in self.properties.items() if key not in NOT_INHERITED}
        if "listeners" in self.properties:
            properties["listeners"] = re.sub(r":\d+\s*(?=,|$)", ":0", self.properties["listeners"])
        elif listen is None:
            listen = "127.0.0.1:0"
        plan = ClusterPlan(
            name,
            properties,
            data_dir=data_dir,
            listen=listen,
            brokers=self.brokers,
            flush=self.flush,
            seed=self.seed,
            at_ms=self.at_ms,
            security=None if self.security is None else self.security.asked_for,
            users=None if self.security is None else self.security.users,
        )
        if plan.security is not None and self.security is not None:
            plan.security.fork_of(self.security)
        plan.journal_bytes = self.journal_bytes
        return plan

    def open_directory(self, env: Env, config: BrokerConfig) -> DataDirectory:
        """Errors: DirectoryError, OSError."""
        directory = DataDirectory.open(env, self.data_dir, config)
        if self.seed is not None and (starts := self._count_start(env.files)):
            env.rng.seed(f"{self.seed} {starts}")  # the ids that earlier starts have drawn are in the logs
        return directory

    def _count_start(self, files: Files) -> int:
        """How often the data was opened before with a seed."""
        path = f"{self.data_dir}/{SEEDED_STARTS}"
        starts = int(files.read_file(path)) if files.exists(path) else 0
        files.write_file_atomic(path, b"%d\n" % (starts + 1))
        return starts


def _logins(config: BrokerConfig) -> Logins:
    """The login modules in the file that java.security.auth.login.config names. Errors: ConfigError."""
    path = config.java_security_auth_login_config
    if not path:
        return {}
    from broker.security.jaas import FILE_KEY, parse_jaas_file  # 0 ms: a listener has SASL

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(FILE_KEY, path, f"cannot be read: {getattr(error, 'strerror', error)}") from None
    return parse_jaas_file(text)
