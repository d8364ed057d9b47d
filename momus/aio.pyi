"""Types of momus/aio.py. Made by tools/aio_stub.py from the handles; do not edit."""

from __future__ import annotations

import builtins
from collections.abc import Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from momus.journal import DEFAULT_MB, MOST
from momus.kit.load_files import Loadable
from momus.kit.typed import (
    ApiFilters,
    ClientFilters,
    DiskFilters,
    EventWord,
    JournalEntry,
    JournalFilters,
    LetterFilters,
    RegistryFilters,
    RequestFilters,
    Units,
    Value,
    When,
    WhenOrMiddle,
)
from momus.kit.upstream.cluster_name import ClusterName
from momus.record import Record

class Twin:
    target: Any
    def __init__(self, target: Any) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class AsyncClock(Twin):
    """What time it is for a broker. It moves forward only."""

    async def now(self) -> datetime:
        """The broker's time."""

    async def stands(self) -> bool:
        """Whether it has been told to stand still."""

    async def advance(self, by: timedelta | None = None, **units: Unpack[Units]) -> None:
        """Let time pass: `advance(days=8)`, `advance(seconds=45)`, or a timedelta.

        Returns when what became due has been done: members have timed out, offsets and transactions have
        expired, and connections that are idle for longer than connections.max.idle.ms are closed.
        Errors:  ControlError: that takes longer than 25 s; the clock has moved.
                 ValueError: a number without its unit, an unknown unit, or a time that would go back.
        """

    async def set(self, at: datetime) -> None:
        """Go to a moment that has not passed, and stand there until `resume`, or until it is moved on.

        Returns, and fails, as `advance` does.
        """

    async def freeze(self) -> None:
        """Stand still at the present moment, until `resume`, or until it is moved on."""

    async def resume(self) -> None:
        """Run on from here."""

class AsyncFault(Twin):
    """A fault that is set."""

    name: str
    async def state(self) -> dict[str, Any]:
        """The fault, with `calls`, `hits` and `held`."""

    @property
    def calls(self) -> Coroutine[Any, Any, int]:
        """How many requests have matched it."""

    @property
    def hits(self) -> Coroutine[Any, Any, int]:
        """On how many it has acted."""

    @property
    def held(self) -> Coroutine[Any, Any, int]:
        """How many requests and replies it keeps now."""

    async def wait_until_held(self, n: int = 1, timeout: float = 10.0) -> None:
        """Wait until it keeps n requests or replies. `timeout`: seconds. Errors: FaultTimeoutError."""

    async def wait_until_hit(self, n: int = 1, timeout: float = 10.0) -> None:
        """Wait until it has acted n times. `timeout`: seconds. Errors: FaultTimeoutError."""

    async def release(self, most: int | None = None) -> int:
        """Let go what it keeps: the `most` oldest; None: all, and replies still to come to it. Answers how many."""

    async def remove(self) -> None:
        """Take it away; what it keeps goes on."""

class AsyncFaults(Twin):
    """The faults of one cluster. Filters of all: api, version, client_id, principal, connection, listener, broker,
    topic, partition, group, transactional_id; those of the disk take topic and partition. `trigger` is every_time,
    once, on_call(n), times(n) or with_probability(p, seed)."""

    async def add(self, **words: object) -> AsyncFault:
        """Set a fault by its words, as a JSON file has them. Errors: ControlError, ValueError, which say what is wrong.

        times, on_call, with_probability and seed may stand beside the others, as in a shell: they are the trigger.
        """

    async def inject_error(
        self, api: str | builtins.list[str], error: str, **filters: Unpack[RequestFilters]
    ) -> AsyncFault:
        """Refuse requests with an error of Kafka's, such as "NOT_COORDINATOR"; they take no effect."""

    async def delay_on(
        self, api: str | builtins.list[str], ms: int, when: When = "after", **filters: Unpack[RequestFilters]
    ) -> AsyncFault:
        """Keep replies back so long, or (`when="before"`) requests before they take effect. By the broker's clock."""

    async def hold(
        self, api: str | builtins.list[str], when: When = "after", **filters: Unpack[RequestFilters]
    ) -> AsyncFault:
        """Keep replies, or (`when="before"`) requests, until `release`."""

    async def make_event(
        self, event: EventWord, api: str | builtins.list[str], when: When = "before", **filters: Unpack[RequestFilters]
    ) -> AsyncFault:
        """Make something happen in the cluster "before" the request takes effect, or "after" it: "rebalance",
        "expel_member", "expire_offsets", "move_coordinator", "move_leader", "restart", "abort_transaction" or
        "fence_producer". What came of it is the fault's `outcome`."""

    async def disconnect_on(
        self, api: str | builtins.list[str], when: WhenOrMiddle = "after", **filters: Unpack[RequestFilters]
    ) -> AsyncFault:
        """Close the connection "before" the request takes effect, "after" it, or in the "middle" of the reply."""

    async def blackhole_client(self, client_id: str, **filters: Unpack[ClientFilters]) -> AsyncFault:
        """Neither serve nor answer a client; its connections stay open until the fault is removed."""

    async def throttle(self, bytes_per_second: int, **filters: Unpack[ApiFilters]) -> AsyncFault:
        """Send each reply only when its bytes have had their time."""

    async def corrupt_reply(
        self, api: str | builtins.list[str], at: int | None = None, **filters: Unpack[RequestFilters]
    ) -> AsyncFault:
        """Change one byte of the reply: the one at this place after the correlation id, else any."""

    async def deliver_twice(self, api: str | builtins.list[str], **filters: Unpack[RequestFilters]) -> AsyncFault:
        """Let the request take effect twice, as after a lost reply; the client gets the second reply."""

    async def slow_disk(self, ms: int, **filters: Unpack[DiskFilters]) -> AsyncFault:
        """Let each write and each sync take so much longer."""

    async def full_disk(self, free_bytes: int = 0, **filters: Unpack[DiskFilters]) -> AsyncFault:
        """Let writes fail for want of room, once so many bytes have been written."""

    async def fail_write(self, **filters: Unpack[DiskFilters]) -> AsyncFault:
        """Let writes fail."""

    async def fail_fsync(self, **filters: Unpack[DiskFilters]) -> AsyncFault:
        """Let syncs fail."""

    async def fail_dead_letter(self, error: str, **filters: Unpack[LetterFilters]) -> AsyncFault:
        """Refuse what the broker writes to the dead-letter queue (`topic`) of a share group (`group`)."""

    async def registry(
        self,
        do: Literal["error", "delay", "hold", "disconnect"],
        when: When = "before",
        *,
        status: int = 500,
        code: int = 50001,
        ms: int = 0,
        **filters: Unpack[RegistryFilters],
    ) -> AsyncFault:
        """Let a request of the schema registry meet an "error", a "delay", a "hold" or a "disconnect".

        filters   route (RegisterSchema, GetSchema, ... of docs/registry.md), subject, principal.
        """

    async def load(self, faults: Iterable[dict[str, object]]) -> builtins.list[AsyncFault]:
        """Set several, as a JSON file has them."""

    async def list(self) -> builtins.list[dict[str, Any]]:
        """All that are set, with `calls`, `hits` and `held`."""

    async def clear(self) -> None:
        """Remove all; what they keep goes on."""

    async def unmet(self) -> Iterable[str]:
        """A sentence for each fault that has acted on nothing: what the test meant to happen did not.

        Faults end with their process: those that had not acted by then are named too.
        """

class AsyncJournal(Twin):
    """The journal of one cluster."""

    async def keep(self, mb: int = DEFAULT_MB) -> None:
        """Keep the last requests and replies, so many MB; 0: none, and expectations with an upper limit fail then."""

    async def entries(self, *, limit: int = MOST, **filters: Unpack[JournalFilters]) -> builtins.list[JournalEntry]:
        """The requests that fit, oldest first; the newest `limit`. Errors: ControlError, ValueError, as `verify`."""

    async def verify(
        self,
        *,
        times: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        **filters: Unpack[JournalFilters],
    ) -> builtins.list[JournalEntry]:
        """Check how often such a request came: exactly `times`, or within limits. Returns these, the newest 10,000.

        Without limits it is to have come once or more. With `times` or `at_most` it also fails where the journal cannot
        know that there were no more. A filter that is None is left out.
        Errors: JournalError. ControlError: there is no such API or error.
                ValueError: there is no such filter, or the limits exclude each other.
        """

    async def expect(
        self,
        *,
        times: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        **filters: Unpack[JournalFilters],
    ) -> None:
        """Check at the end of the test, as `verify` does, over all restarts, resets and restores.

        Errors: as `verify`, but for JournalError.
        """

    async def unmet(self) -> Iterable[str]:
        """A sentence for each expectation that is not met."""

    async def clear(self) -> None:
        """Drop what is kept, and what is expected."""

    async def last(self, n: int = 20) -> str:
        """The last requests, a line each, for the report of a failed test."""

class AsyncSnapshot(Twin):
    """The name of a snapshot, as a text, and the cluster that it is of.

        before = broker.snapshot()
        ...                                # the program under test does something
        print(momus.diff(before, broker))  # what has changed
        before.restore()

    It is gone with its cluster.
    """

    async def restore(self) -> None:
        """Go back to it, as `broker.restore(snapshot)`."""

    async def fork(self, *, name: str | None = None, listen: str | None = None) -> AsyncCluster:
        """Another cluster that goes on from it, as `broker.fork(snapshot)`."""

    async def remove(self) -> None:
        """Give it up; what was made from it stays."""

class AsyncUsers(Twin):
    """The users of a cluster that was made with security."""

    async def add(self, name: str, password: str | None = None) -> None:
        """Add a user, or give it another password; with mtls it gets a certificate. Errors: ControlError."""

    async def remove(self, name: str) -> None:
        """Remove a user. Its connections stay. Errors: ControlError."""

    async def passwords(self) -> dict[str, str]:
        """Name -> password, as the settings for clients have them; without those whom clients of Kafka have added."""

    async def list(self) -> builtins.list[str]:
        """Their names."""

class AsyncAcls(Twin):
    """The ACLs of a cluster with an authorizer. Each word is one of kafka-acls.

    broker.acls.allow("alice", "read", topic="orders")
    broker.acls.deny("bob", "write", topic="pay", pattern="prefixed")
    broker.acls.allow("alice", "alter", cluster=True)
    """

    async def allow(
        self, user: str, *operations: str, pattern: str = "literal", host: str = "*", **resource: Any
    ) -> None:
        """Allow a user ("*": everybody) operations on a resource. Errors: ControlError.

        resource   one of topic, group, transactional_id with a name, or cluster=True.
        """

    async def deny(
        self, user: str, *operations: str, pattern: str = "literal", host: str = "*", **resource: Any
    ) -> None:
        """Deny a user operations on a resource, whatever is allowed. Errors: ControlError."""

    async def remove(self, user: str | None = None) -> int:
        """Remove the ACLs of a user, or all. Returns how many."""

    async def list(self) -> builtins.list[dict[str, str]]:
        """All of them."""

class AsyncCertificates(Twin):
    """The certificates of a cluster that was made with security. New connections meet what is changed here."""

    async def expire(self, name: str = "server") -> None:
        """Show a certificate that expired yesterday: the broker's ("server"), or a user's. Errors: ControlError."""

    async def issue(self, name: str = "server", hosts: Iterable[str] = ()) -> None:
        """Make a good certificate; with `hosts` one that is for these and no others. Errors: ControlError."""

    async def rotate(self, *, authority: bool = False) -> None:
        """Make all certificates again; `authority`: by a new one that no client trusts yet. Errors: ControlError."""

class AsyncHandle(Twin):
    """A cluster that can be kept as it is, and of which others can be made."""

    async def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets that a group has committed, by topic and partition."""

    async def wait_for_group(
        self, group: str, state: str = "stable", *, members: int | None = None, timeout: float = 10.0
    ) -> builtins.list[str]:
        """Wait until a group has a state, and so many members. Returns the ids of its members.

        state     "stable", "empty", "dead", "assigning", "reconciling", "preparing-rebalance", "completing-rebalance",
                  "not-ready".
        timeout   seconds, of the machine's clock.
        Errors:   WaitTimeoutError. ControlError: there is no such state.
        """

    async def wait_for_committed(
        self, group: str, offsets: Mapping[tuple[str, int], int], *, timeout: float = 10.0
    ) -> dict[tuple[str, int], int]:
        """Wait until a group has committed these offsets, or later ones, by topic and partition. Returns what it has.

        timeout   seconds, of the machine's clock.
        Errors:   WaitTimeoutError: with what is committed. ControlError: the coordinator does not answer.
        """

    async def wait_for_lag(self, group: str, lag: int = 0, *, topic: str | None = None, timeout: float = 10.0) -> int:
        """Wait until a group is at most so many records after the ends of its partitions. Returns its lag.

        topic     of this one alone; None: of all that it has committed, and of all that its members have.
        timeout   seconds, of the machine's clock.
        Errors:   WaitTimeoutError: with the lag of each partition. ControlError: the coordinator does not answer.
        """

    async def delete_group(self, group: str) -> None:
        """Delete a group without members, with its offsets. Errors: ControlError: it has members, or there is none."""

    async def rebalance(self, group: str) -> builtins.list[str]:
        """Start a rebalance of a group. Returns the ids of its members.

        Members of a classic group join again; in other groups the epoch increases, and members get the next one.
        Errors: ControlError: there is no such group, or it has no members.
        """

    async def expel_member(self, group: str, member: str) -> None:
        """Remove a member, by its id or the id of a static one: its next request is refused with UNKNOWN_MEMBER_ID.

        Errors: ControlError: there is no such group or member.
        """

    async def stop_broker(self, node_id: int) -> None:
        """Stop one of several virtual brokers, counted from 1: the others lead what it led."""

    async def start_broker(self, node_id: int) -> None:
        """Start a virtual broker again, on the same port."""

    async def lag_follower(self, node_id: int) -> None:
        """Let a virtual broker fetch nothing: what it follows is not committed until it leaves the in-sync replicas."""

    async def release_follower(self, node_id: int) -> None:
        """Let a broker that lags catch up; it is in sync again."""

    async def pause_broker(self, node_id: int) -> None:
        """Let a virtual broker read and answer nothing, as a process that is stopped; its connections stay open.

            broker.pause_broker(2)
            ...                                 # clients wait; no other leads what it led
            broker.clock.advance(seconds=10)    # its session has ended (broker.session.timeout.ms, 9 s): others lead
            broker.resume_broker(2)

        Calls of the test are answered all the same. Errors: ControlError: it is stopped, or there is none.
        """

    async def resume_broker(self, node_id: int) -> None:
        """Let a broker that is paused go on: it answers what it was sent, and is in sync, and leads, again."""

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT[,HOST:PORT...]`, as clients take it."""

    @property
    def ui_url(self) -> str:
        """The page that shows this cluster, for a browser on this machine."""

    @property
    def registry_url(self) -> Coroutine[Any, Any, str]:
        """The cluster's schema registry, which is served from the first time that this is asked for.

        Errors: ControlError: the cluster was made to ask another one, by `schema.registry.url`.
        """

    async def get_bootstrap_server(self) -> str:
        """The address under the name that testcontainers gives it."""

    async def client_config(self, client: str, user: str | None = None) -> dict[str, Any]:
        """Settings for "kafka-python", "aiokafka", "confluent", "java" or "spark", in that client's own
        words, with the user and certificates of a cluster that was made with security; for the schema registry those
        of "confluent-registry", "python-registry" (python-schema-registry-client) or "java-registry".

        user    one of the cluster's users; None: the first.
        Errors: ValueError: there is no such client, or the cluster has no security and so no users.
        """

    @property
    def users(self) -> AsyncUsers:
        """The users of a cluster with security: `broker.users.add("carol", "pencil")`."""

    @property
    def acls(self) -> AsyncAcls:
        """The ACLs of a cluster with security: `broker.acls.allow("alice", "read", topic="orders")`."""

    @property
    def certificates(self) -> AsyncCertificates:
        """The certificates of a cluster with security: `broker.certificates.expire("server")`."""

    @property
    def clock(self) -> AsyncClock:
        """The cluster's clock: `broker.clock.advance(days=8)`. A start begins with the machine's time again."""

    @property
    def faults(self) -> AsyncFaults:
        """What is to go wrong.

        `broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")`
        """

    @property
    def journal(self) -> AsyncJournal:
        """Its last requests and replies: `broker.journal.verify(api="OffsetCommit", group="billing", times=3)`."""

    async def reset(self) -> None:
        """Drop all data, connections, faults and moves of the clock; addresses and settings stay."""

    async def record(self) -> None:
        """Begin again with the data that is there, as a restore does, and record whatever happens from then on."""

    async def recording(self) -> bytes:
        """What was recorded so far, as a file for `momus replay`. Errors: ControlError: nothing is recorded."""

    async def create_topic(
        self, name: str, partitions: int = 1, *, replicas: int = -1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic; `config` has Kafka's topic settings. Errors: ControlError, which says why."""

    async def load(self, load: Loadable, *, if_present: str = "fail") -> dict[str, int]:
        """Fill it with what a file, a folder or a mapping says (docs/load.md). Returns what was loaded, in numbers.

        if_present  "fail", or "skip": what is there already stays as it is.
        Errors:     ControlError: what is wrong, by file, line and field; nothing was loaded. OSError.
        """

    async def produce(
        self,
        topic: str,
        *values: Value,
        key: str | bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> builtins.list[tuple[int, int]]:
        """Append a record for each value, acks=all. Returns the (partition, offset) of each, in their order.

            [(partition, offset)] = broker.produce("orders", {"coffee": 1}, key="table 4")

        values     texts, bytes, None; a dict or a list is JSON.
        partition  None: where Java's producer sends the key; without a key each record goes to the next partition,
                   from 0 on for each topic, and from 0 again after a reset, a restore or a start, and in a fork.
        Errors:    ControlError: one of them is refused. TypeError, ValueError: a value that JSON has no form for.
        """

    async def consume(
        self,
        topic: str,
        n: int = 0,
        *,
        partition: int | None = None,
        offset: int = 0,
        key: str | bytes | None = None,
        isolation: str = "uncommitted",
        timeout: float = 10.0,
    ) -> builtins.list[Record]:
        """All records of a topic, or of one partition from an offset on; at least n, which are waited for.

        key         only those with this key, of which there are to be n.

        With n the topic is waited for as well. Without, it must be there: a wrong name would look like an empty topic.

        isolation   "committed" leaves out what open and aborted transactions have written; Kafka's words,
                    "read_committed" and "read_uncommitted", do as well.
        timeout     seconds.
        Errors:     WaitTimeoutError: there are fewer than n. ControlError: without n, there is no such topic; a reset
                    or a deletion of the topic came between the records.
        """

    async def create_topics(
        self, topics: Mapping[str, int], *, replicas: int = -1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create topics, name -> partitions, with the same settings: all of them or none.

        Errors: ControlError: some are refused, and why.
        """

    async def verify(self) -> None:
        """Fail where what the test meant to happen did not. Leaving a `with` block without an exception does so too.

        Errors: UnverifiedError: with a sentence for each fault that never acted, and each expectation that is not met.
        """

    async def snapshot(self, name: str | None = None) -> AsyncSnapshot:
        """Keep the cluster as it is: what a restart would find, and how the clock is moved. Returns the name.

        Errors: ControlError: there is one of this name already.
        """

    async def restore(self, snapshot: str) -> None:
        """Go back to a snapshot, on the same ports; connections are cut, faults and the journal begin again.

        Errors: ControlError: there is none of this name.
        """

    async def snapshots(self) -> builtins.list[AsyncSnapshot]:
        """The names of its snapshots, oldest first."""

    async def remove_snapshot(self, snapshot: str) -> None:
        """Give a snapshot up; what was made from it stays. Errors: ControlError: there is none of this name."""

    async def fork(
        self, snapshot: str | None = None, *, name: str | None = None, listen: str | None = None
    ) -> AsyncCluster:
        """Another cluster that goes on from this one, or from a snapshot of it; neither sees the other.

        It has the same data, ids, settings, seed and time, and ports of its own, until `close` or the end of `with`.
        Errors: ControlError.
        """

class AsyncCluster(AsyncHandle):
    """One cluster of a process, with its own ports, data, settings and clock, until `close` or the end of `with`.

    control   the endpoint of the process.
    registry  serve a schema registry at once: `registry_url`.
    load      a file, a folder of files or a mapping that it is filled with (docs/load.md).
    log       answers what the process has logged; None: that is not known here.
    Others:   as Broker; `flush` is "memory" unless given. `at`: the moment at which its clock stands at first.
    Errors:   ControlError, which says why there is none.
    """

    name: str
    cluster_id: str
    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT[,HOST:PORT...]`, as clients take it."""

    async def close(self) -> None:
        """Remove the cluster and its data; its clients are disconnected."""

    async def close_verified(self) -> builtins.list[str]:
        """Close it. Returns a sentence for whatever its test must fail for, as `unverified` does, in one exchange where
        there is none."""

    @property
    def log(self) -> str:
        """What its process has logged since the cluster was made, of other clusters too; empty when all is well."""

class AsyncBroker(AsyncHandle):
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

    async def start(self) -> Self:
        """Start, or start again on the same ports and data; return when clients are served."""

    async def stop(self) -> int:
        """End the broker as SIGTERM does: everything flushed. Ports and data are kept for `start`. Returns
        the exit code."""

    async def kill(self) -> None:
        """End the broker as kill -9 does. Ports and data are kept for `start`."""

    async def restart(self) -> Self:
        """Stop and start again on the same ports and data."""

    async def close(self) -> None:
        """Stop and remove the temporary data directory."""

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT[,HOST:PORT...]`, as clients take it."""

    @property
    def name(self) -> ClusterName:
        """The name of the cluster; `broker.name("orders")` gives a topic or group one, unique before a real cluster."""

    async def create_cluster(self, **words: Any) -> AsyncCluster:
        """Another cluster in this process. Words: brokers, config, flush ("memory"), listen, seed, at, name."""

    @property
    def pid(self) -> int:
        """Process id of the running broker."""

    @property
    def running(self) -> bool:
        """Whether the subprocess is alive."""

    @property
    def log(self) -> str:
        """What the broker has logged since it was first started; empty when all is well."""
