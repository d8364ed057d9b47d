"""A broker in a subprocess, for tests: `with Broker() as broker: ... broker.bootstrap_servers`.

Theory of operation. The subprocess runs `python -I momus/launch.py` on port 0 with a temporary data directory
and prints two lines, `momus ready HOST:PORT[,HOST:PORT...]` and `momus control HOST:PORT`, once it serves; `start`
waits for them. Its
standard input is a pipe that is never written to: when this process ends, however it ends, the pipe closes and
the broker stops by itself. A session of its own keeps the signals of a terminal (Ctrl-C) from it: they reach this
process alone. Its log goes to a file beside the data.

    start ──> running ── stop, kill ──> down ── start, restart ──> running (same ports, same data)
                   └──────── close, end of the `with` block ──> gone (a temporary data directory is removed)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from functools import partial

from momus.cluster import Cluster, Forkable
from momus.handle import asked, settings
from momus.kit import child, explored
from momus.kit.asks import UnverifiedError
from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.load_files import loads_of_serve
from momus.kit.upstream.cluster_name import ClusterName
from momus.kit.upstream.options import check_upstream, child_options
from momus.kit.words import check_numbers, check_users, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from momus.aio import AsyncBroker
    from momus.control import Control
    from momus.kit.load_files import Loadable

START_LIMIT_S = 30.0
STOP_LIMIT_S = 10.0
PORT_LIMIT_S = 5.0  # how long a restart waits for its own port
PORT_TAKEN = "attempting to bind on address"


class BrokerError(RuntimeError):
    """The broker did not start, or was asked for something while it was down."""


class Broker(Forkable):
    """One broker, or `brokers` virtual ones in one process, that lives as long as the `with` block.

    as_version an Apache Kafka release, "2.1" to "4.4", whose API versions and features are not exceeded.
    codec      "construct": every request and response by construct, slowly; "generated" is the default.
    fetch_waits "frozen": while the clock stands, a Fetch waits until it is moved on; "real", the default: its
               fetch.max.wait.ms passes in real time then.
    flush      "memory" (nothing on disk), "os" (survives kill -9) or "fsync" (survives power loss).
    config     Kafka's own broker settings, e.g. {"num.partitions": 4}.
    data_dir   kept when given; without it a temporary directory is made and removed at the end.
    listen     "HOST:PORT"; port 0 lets the system choose.
    journal_mb how much of the last requests and replies `journal` keeps; 0: none until `journal.keep()`.
    log_level  of the broker's own log, see `log`.
    seed       makes all that is drawn at random repeat: ids of members, topics, sessions and the cluster.
    security   "sasl_ssl", "sasl_plaintext", "ssl" or "mtls": certificates, users and listeners made for tests.
    users      name -> password, of a listener that authenticates; None with security: one user, "client".
    registry   True, or "HOST:PORT": serve a schema registry (docs/registry.md) at once, on the same port at each start.
    otel       an OTLP address over HTTP, as http://127.0.0.1:4318: traces are sent there (docs/traces.md).
    load       a file, a folder of files or a mapping that it is filled with before it serves (docs/load.md); at a
               start with the same data not again.
    ui         print a link to the page that shows the broker (`ui_url`) to standard error.
    upstream   HOST:PORT[,...] of a Kafka cluster: be a proxy before it (docs/proxy.md), with faults and journal.
    upstream_config  how the proxy connects to it, in the words of a client.properties.
    """

    control_listen = "127.0.0.1:0"  # of its endpoint
    is_host = False  # it is there for the clusters of others, and its own serves no test
    record_file = ""  # of a proxy: where all that passes is kept, once it has ended
    created_list = ""  # of a proxy for tests: where it keeps what it has created in the cluster, FOLDER/RUN

    def __init__(
        self,
        *,
        brokers: int = 1,
        flush: str = "os",
        as_version: str | None = None,
        codec: str | None = None,
        fetch_waits: str | None = None,
        config: Mapping[str, object] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        listen: str = "127.0.0.1:0",
        journal_mb: int = 0,
        log_level: str = "warning",
        statsd: str | None = None,
        otel: str | None = None,
        seed: int | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        registry: bool | str = False,
        load: Loadable | None = None,
        ui: bool = False,
        upstream: str | None = None,
        upstream_config: Mapping[str, str] | None = None,
    ) -> None:
        check_numbers(brokers, journal_mb)
        check_users(users)
        self.brokers = brokers
        self.flush = flush
        keyed = {"as.version": as_version, "codec": codec, "fetch.waits": fetch_waits}
        self.config = settings(config) | {key: word for key, word in keyed.items() if word is not None}
        self.data_dir = None if data_dir is None else os.path.abspath(data_dir)
        self.listen = listen
        self.journal_mb = journal_mb
        self.log_level = log_level
        self.statsd = statsd
        self.otel = otel
        self.seed = seed
        self.security = security
        self.ui = ui
        self.load_files = None if load is None else loads_of_serve(load)
        self.registry_listen = "127.0.0.1:0" if registry is True else registry or None  # where it is served at a start
        self.upstream = upstream
        self.upstream_config = dict(upstream_config or {})
        check_upstream(self)
        self._users = None if users is None else dict(users)  # those that the next process begins with
        self._addresses: list[str] = []
        self._control: Control | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner_pid = 0
        self._temporary: str | None = None
        self._remove_temporary: weakref.finalize[..., Broker] | None = None

    # ---- life ----

    def start(self) -> Self:
        """Start, or start again on the same ports and data; return when clients are served."""
        if self._process is not None and self._process.poll() is None:
            return self
        self._settle()
        self._release()
        if self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="momus-")
            # finalize also runs at interpreter exit, so that a Broker that was not closed leaves nothing behind.
            self._remove_temporary = weakref.finalize(self, child.remove_tree, self._temporary, os.getpid())
        data_dir = self.data_dir or os.path.join(self._temporary, "data")
        serve = child_options(self, data_dir, ",".join(self._addresses), self._users)
        port_limit_s = time.monotonic() + PORT_LIMIT_S
        while not (line := self._launch(serve, self._temporary)).startswith("momus ready "):
            process = self._process
            assert process is not None
            if process.poll() is None:
                process.kill()
            code = process.wait()
            self._release()
            if (
                self._addresses
                and PORT_TAKEN in self.log.rstrip().rpartition("\n")[2]
                and time.monotonic() < port_limit_s
            ):
                # A client that calls a port without a listener may be given that very port as its own end.
                time.sleep(0.05)
                continue
            why = f"said nothing for {START_LIMIT_S:.0f} s" if code < 0 else f"ended with exit code {code}"
            raise BrokerError(f"the broker {why}\n{self.log}".rstrip())
        self._addresses = line.removeprefix("momus ready ").strip().split(",")
        self._control = self._read_control()
        if self.registry_listen is not None:
            self.registry_listen = self._read_line("momus registry ").rpartition("://")[2]
        if explored.watch is not None and not self.is_host:
            explored.watch.made(self)
        if self.ui:
            sys.stderr.write(f"momus ui {self.ui_url}\n")
        return self

    def stop(self) -> int:
        """End the broker as SIGTERM does: everything flushed. Ports and data are kept for `start`. Returns
        the exit code."""
        process = self._process
        if process is None or os.getpid() != self._owner_pid:
            return 0  # a forked child must not stop its parent's broker
        self._settle(hangs_up=True)
        code = child.end_child(process, STOP_LIMIT_S)
        self._release()
        return code

    def kill(self) -> None:
        """End the broker as kill -9 does. Ports and data are kept for `start`."""
        if self._process is not None and os.getpid() == self._owner_pid:
            self._settle()
            self._process.kill()
            self._process.wait()
            self._release()

    def restart(self) -> Self:
        """Stop and start again on the same ports and data."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop and remove the temporary data directory."""
        self.stop()
        if self._remove_temporary is not None:
            self._remove_temporary()
        self._temporary = None
        self._addresses = []

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, exc_type: type[BaseException] | None = None, *error: object) -> None:
        wrong = []
        if exc_type is None and self.verifies and self.keeper is None and os.getpid() == self._owner_pid:
            wrong = [*self.unverified(), *self._others_unmet()]
        self.close()
        if wrong:
            raise UnverifiedError("\n".join(wrong))

    def _others_unmet(self) -> list[str]:
        """What the other clusters that are still open in this process have not met."""
        control = self._control
        if control is None or not self.running:
            return []
        found = asked(lambda: control.ask("GET", "/_admin/clusters"), True)
        names = [each["name"] for each in found or () if each["name"] != "default"]
        wrong = []
        for name in names:
            answer = asked(partial(control.ask, "GET", f"/_admin/clusters/{quoted(name)}/verify"), True)
            wrong += [f"cluster {name}: {sentence}" for sentence in (answer or {"unmet": []})["unmet"]]
        return wrong

    async def __aenter__(self) -> Self:
        import asyncio  # 25 ms

        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *error: Any) -> None:
        import asyncio  # 25 ms

        await asyncio.to_thread(self.__exit__, *error)

    # ---- what a test asks ----

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT[,HOST:PORT...]`, as clients take it."""
        if not self._addresses:
            raise BrokerError("the broker has not been started")
        return ",".join(self._addresses)

    @property
    def control(self) -> Control:
        """The endpoint that moves the broker's clock and stops virtual brokers."""
        if self._control is not None and self.running:
            return self._control
        if (sentence := self.death()) is None:
            raise BrokerError("the broker is down")
        from momus.control import BrokerDiedError  # there already

        raise BrokerDiedError(sentence)

    @property
    def name(self) -> ClusterName:
        """The name of the cluster; `broker.name("orders")` gives a topic or group one, unique before a real cluster."""
        if self.upstream is None:
            return ClusterName("default")
        described: Any = self.control.ask("GET", "/_admin/clusters/default")
        return ClusterName("default", described.get("run", ""))

    @property
    def known_control(self) -> str:
        """The address of the control endpoint, also of a process that has ended."""
        return "" if self._control is None else self._control.address

    @property
    def log_path(self) -> str:
        """The file of `log`."""
        if self._temporary is None:
            raise BrokerError("the broker has not been started")
        return os.path.join(self._temporary, "broker.log")

    @property
    def aio(self) -> AsyncBroker:
        """The same calls to await: `await broker.aio.clock.advance(days=8)`. They run in a thread."""
        from momus.aio import AsyncBroker  # 25 ms

        return AsyncBroker(self)

    def create_cluster(self, **words: Any) -> Cluster:
        """Another cluster in this process. Words: brokers, config, flush ("memory"), listen, seed, at, name."""
        made = Cluster(self.control, log=lambda: self.log, **words)
        if self.keeper is not None:
            self.keeper.keep(made)
        return made

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        if self._process is None:
            raise BrokerError("the broker is down")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the subprocess is alive."""
        return self._process is not None and self._process.poll() is None

    def death(self, wait_s: float = 0.0) -> str | None:
        """How the process ended and what it logged last; None: it runs after so long, or `stop` or `kill` ended it."""
        if self._process is None or os.getpid() != self._owner_pid:
            return None
        return child.death_sentence(self._process, lambda: self.log, wait_s)

    @property
    def log(self) -> str:
        """What the broker has logged since it was first started; empty when all is well."""
        if self._temporary is None:
            return ""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def __repr__(self) -> str:
        return f"<Broker {','.join(self._addresses) or 'not started'}{'' if self.running else ', down'}>"

    def unverified(self) -> list[str]:
        """A sentence for whatever its test must fail for, of processes that have ended too."""
        if self.running:
            return super().unverified()
        self._settle()
        return self.left()

    # ---- inside ----

    def _settle(self, *, hangs_up: bool = False) -> None:
        """The process ends, or has ended: settle all of its clusters that are kept, and the first one.

        hangs_up   its clients are cut off first, so that nothing comes that is not counted.
        """
        control = self._control
        if self._process is None or control is None:
            return
        if hangs_up and (self._faults is not None or self._journal is not None or self.keeper is not None):
            asked(lambda: control.ask("POST", "/_admin/hang-up"), self.running)
        if explored.watch is not None and self.running:
            explored.watch.ends(self)
        if self.keeper is not None:
            self.keeper.end(is_up=self.running)
        self.settle(control, is_up=self.running)
        if self.security is not None or self._users is not None:
            found = asked(self.users.passwords, self.running)
            self._users = self._users if found is None else found

    def _launch(self, serve: dict[str, object], temporary: str) -> str:
        """Start the subprocess and wait for its first line."""
        self._process = child.start_child(serve, temporary, self.log_path)
        self._owner_pid = os.getpid()
        return child.first_line(self._process, START_LIMIT_S)

    def _read_control(self) -> Control:
        """The second line, which was written together with the first."""
        from momus.control import Control  # 25 ms

        control = Control(self._read_line("momus control "))
        control.death = partial(self.death, child.DEATH_LIMIT_S)
        return control

    def _read_line(self, head: str) -> str:
        """What follows on the next line of the process."""
        assert self._process is not None
        return child.next_line(self._process).removeprefix(head).strip()

    def _release(self) -> None:
        """Close our ends of the pipes of a process that has ended."""
        process, self._process = self._process, None
        if self._control is not None:
            self._control.close()
        if process is not None:
            child.close_pipes(process)
