"""What a test may do with a cluster, be it a process of its own (`Broker`) or one of many in a process (`Cluster`).

    broker.create_topic("orders", partitions=3)
    broker.produce("orders", "one coffee", key="table 4")
    ...                                                     # the program under test consumes and commits
    broker.wait_for_group("billing")
    assert broker.committed("billing") == {("orders", 0): 1}

No Kafka client is needed: the calls go over the control plane. Each call has a twin to await: `await
broker.aio.produce(...)`, `await broker.aio.clock.advance(days=8)`.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping

from momus.kit import explored
from momus.kit.asks import UnverifiedError, WaitTimeoutError, loop_note
from momus.kit.group_verbs import GroupVerbs
from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.node_verbs import NodeVerbs
from momus.kit.words import quoted, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from momus.aio import AsyncHandle
    from momus.control import Clock, Control
    from momus.faults import Faults
    from momus.journal import Journal
    from momus.kit.load_files import Loadable
    from momus.kit.typed import Value
    from momus.record import Record
    from momus.security import Acls, Certificates, ClientFiles, Users

MOST_RECORDS = 10_000  # of one answer

# client -> (key of the address list, how that client spells its settings)
_CLIENT_KEYS = {
    "kafka-python": ("bootstrap_servers", "security_protocol"),
    "aiokafka": ("bootstrap_servers", "security_protocol"),
    "confluent": ("bootstrap.servers", "security.protocol"),
    "java": ("bootstrap.servers", "security.protocol"),
    "spark": ("kafka.bootstrap.servers", "kafka.security.protocol"),
}


# What the package is called, for what its settings are called here.
ALIASES = {"confluent-kafka": "confluent", "confluent_kafka": "confluent", "kafka_python": "kafka-python"}


class ClusterHandle(GroupVerbs, NodeVerbs):
    """One cluster, reached by its control plane."""

    _journal: Journal | None = None
    _faults: Faults | None = None
    _read_log: Callable[[], str] | None = None  # what its process has logged; None: that is not known here
    _client_files: ClientFiles | None = None
    security: str | None = None  # the word it was made with

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT[,HOST:PORT...]`, as clients take it."""
        raise NotImplementedError

    @property
    def ui_url(self) -> str:
        """The page that shows this cluster, for a browser on this machine."""
        return f"http://{self.control.address}/ui#/{self.control.cluster}/topics"

    @property
    def registry_url(self) -> str:
        """The cluster's schema registry, which is served from the first time that this is asked for.

        Errors: ControlError: the cluster was made to ask another one, by `schema.registry.url`.
        """
        return str(self._ask("POST", "/registry", {})["url"])

    def get_bootstrap_server(self) -> str:
        """The address under the name that testcontainers gives it."""
        return self.bootstrap_servers

    def client_config(self, client: str, user: str | None = None) -> dict[str, Any]:
        """Settings for "kafka-python", "aiokafka", "confluent", "java" or "spark", in that client's own
        words, with the user and certificates of a cluster that was made with security; for the schema registry those
        of "confluent-registry", "python-registry" (python-schema-registry-client) or "java-registry".

        user    one of the cluster's users; None: the first.
        Errors: ValueError: there is no such client, or the cluster has no security and so no users.
        """
        if client.endswith("-registry"):
            from momus.registry import WORDS, registry_settings  # 0.2 ms

            if client in WORDS:
                return registry_settings(client, self.registry_url, self.client_config("confluent", user))
        client = ALIASES.get(client, client)
        if client not in _CLIENT_KEYS:
            from momus.registry import WORDS  # 0.2 ms

            raise ValueError(unknown("client_config knows no client", (client,), (*_CLIENT_KEYS, *WORDS)))
        if self.security is None:
            if user is not None:
                raise ValueError(f"user={user!r}: this cluster has no users; make it with security=")
            servers, protocol = _CLIENT_KEYS[client]
            return {servers: self.bootstrap_servers, protocol: "PLAINTEXT"}
        if self._client_files is None or self._client_files._control is not self.control:
            from momus.security import ClientFiles  # 1 ms

            self._client_files = ClientFiles(self.control, self.control.prefix)
        return self._client_files.settings(client, user)

    @property
    def users(self) -> Users:
        """The users of a cluster with security: `broker.users.add("carol", "pencil")`."""
        from momus.security import Users  # 1 ms

        return Users(self.control, self.control.prefix)

    @property
    def acls(self) -> Acls:
        """The ACLs of a cluster with security: `broker.acls.allow("alice", "read", topic="orders")`."""
        from momus.security import Acls  # 1 ms

        return Acls(self.control, self.control.prefix)

    @property
    def certificates(self) -> Certificates:
        """The certificates of a cluster with security: `broker.certificates.expire("server")`."""
        from momus.security import Certificates  # 1 ms

        return Certificates(self.control, self.control.prefix)

    @property
    def aio(self) -> AsyncHandle:
        """The same calls to await: `await broker.aio.clock.advance(days=8)`. They run in a thread."""
        from momus.aio import AsyncHandle  # 25 ms

        return AsyncHandle(self)

    # ---- what is steered ----

    @property
    def clock(self) -> Clock:
        """The cluster's clock: `broker.clock.advance(days=8)`. A start begins with the machine's time again."""
        return self.control.clock

    @property
    def faults(self) -> Faults:
        """What is to go wrong.

        `broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")`
        """
        if self._faults is None or self._faults.control is not self.control:
            from momus.faults import Faults  # 1 ms

            self._faults = Faults(self.control, self.control.prefix, self._faults)
        return self._faults

    @property
    def journal(self) -> Journal:
        """Its last requests and replies: `broker.journal.verify(api="OffsetCommit", group="billing", times=3)`."""
        if self._journal is None or self._journal.control is not self.control:
            from momus.journal import Journal  # 1 ms

            self._journal = Journal(self.control, self.control.prefix, self._journal)
        return self._journal

    def reset(self) -> None:
        """Drop all data, connections, faults and moves of the clock; addresses and settings stay."""
        self._begin_anew("/reset")

    # ---- recordings ----

    def record(self) -> None:
        """Begin again with the data that is there, as a restore does, and record whatever happens from then on."""
        self._begin_anew("/recording")

    def recording(self) -> bytes:
        """What was recorded so far, as a file for `momus replay`. Errors: ControlError: nothing is recorded."""
        return base64.b64decode(self._ask("GET", "/recording")["zip"])

    # ---- what is arranged and looked at ----

    def create_topic(
        self, name: str, partitions: int = 1, *, replicas: int = -1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic; `config` has Kafka's topic settings. Errors: ControlError, which says why."""
        body = {"name": name, "partitions": partitions, "replicas": replicas, "config": settings(config)}
        self._ask("POST", "/topics", body)

    def load(self, load: Loadable, *, if_present: str = "fail") -> dict[str, int]:
        """Fill it with what a file, a folder or a mapping says (docs/load.md). Returns what was loaded, in numbers.

        if_present  "fail", or "skip": what is there already stays as it is.
        Errors:     ControlError: what is wrong, by file, line and field; nothing was loaded. OSError.
        """
        from momus.kit.load_files import load_into  # 1 ms

        return load_into(self.control, self.control.prefix, load, if_present)

    def produce(
        self,
        topic: str,
        *values: Value,
        key: str | bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> list[tuple[int, int]]:
        """Append a record for each value, acks=all. Returns the (partition, offset) of each, in their order.

            [(partition, offset)] = broker.produce("orders", {"coffee": 1}, key="table 4")

        values     texts, bytes, None; a dict or a list is JSON.
        partition  None: where Java's producer sends the key; without a key each record goes to the next partition,
                   from 0 on for each topic, and from 0 again after a reset, a restore or a start, and in a fork.
        Errors:    ControlError: one of them is refused. TypeError, ValueError: a value that JSON has no form for.
        """
        given = headers.items() if isinstance(headers, Mapping) else headers
        pairs = [[name, _to_json(value)] for name, value in given]
        record = {"key": _to_json(key), "partition": partition, "headers": pairs, "timestamp_ms": timestamp_ms}
        records = [{**record, "value": _value_to_json(value)} for value in values]
        answer = self._ask("POST", f"/topics/{quoted(topic)}/records", {"records": records})
        return [(row["partition"], row["offset"]) for row in answer]

    def consume(
        self,
        topic: str,
        n: int = 0,
        *,
        partition: int | None = None,
        offset: int = 0,
        key: str | bytes | None = None,
        isolation: str = "uncommitted",
        timeout: float = 10.0,
    ) -> list[Record]:
        """All records of a topic, or of one partition from an offset on; at least n, which are waited for.

        key         only those with this key, of which there are to be n.

        With n the topic is waited for as well. Without, it must be there: a wrong name would look like an empty topic.

        isolation   "committed" leaves out what open and aborted transactions have written; Kafka's words,
                    "read_committed" and "read_uncommitted", do as well.
        timeout     seconds.
        Errors:     WaitTimeoutError: there are fewer than n. ControlError: without n, there is no such topic; a reset
                    or a deletion of the topic came between the records.
        """
        body: dict[str, object] = {"offset": offset, "isolation": isolation}
        if key is not None:
            body["key"] = _to_json(key)
        if partition is not None:
            body["partition"] = partition
        rows: list[dict[str, Any]] = []
        end, is_more = time.monotonic() + timeout, True
        while is_more:
            body["least"] = max(0, min(n - len(rows), MOST_RECORDS))
            answer = self._wait(f"/topics/{quoted(topic)}/consume", body, max(0.0, end - time.monotonic()))
            rows += answer["records"]
            if not answer["met"]:
                if not answer["offsets"]:
                    missing = f"topic {topic}" if partition is None else f"partition {topic}-{partition}"
                    note = loop_note("broker.aio.consume(...)")
                    raise WaitTimeoutError(f"there is no {missing} after {timeout:g} s{note}")
                what = "records" if key is None else f"records with key {key!r}"
                note = loop_note("broker.aio.consume(...)")
                raise WaitTimeoutError(f"{topic} has {len(rows)} {what} after {timeout:g} s, not {n}{note}")
            is_more, body["offsets"], body["source"] = answer["more"], answer["offsets"], answer["source"]
        from momus.record import record_of  # 4 ms, of typing

        return [record_of(topic, row) for row in rows]

    def create_topics(
        self, topics: Mapping[str, int], *, replicas: int = -1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create topics, name -> partitions, with the same settings: all of them or none.

        Errors: ControlError: some are refused, and why.
        """
        self._ask("POST", "/create-topics", {"topics": dict(topics), "replicas": replicas, "config": settings(config)})

    verifies = True  # whether leaving its `with` block without an exception verifies it; the fixtures do so themselves

    def verify(self) -> None:
        """Fail where what the test meant to happen did not. Leaving a `with` block without an exception does so too.

        Errors: UnverifiedError: with a sentence for each fault that never acted, and each expectation that is not met.
        """
        if wrong := self.unverified():
            raise UnverifiedError("\n".join(wrong))

    # ---- inside ----

    def unverified(self) -> list[str]:
        """A sentence for whatever its test must fail for."""
        return [sentence for check in VERIFY for sentence in check(self)]

    def settle(self, control: Control, *, is_up: bool) -> None:
        """Its process ends, or has ended: ask it for what `left` has to know of its requests and faults."""
        faults, journal = self._faults, self._journal
        if faults is not None and faults.control is control:
            faults.end(asked(lambda: list(faults.unmet()), is_up))
        if journal is not None and journal.control is not control:  # that of this process was not read yet
            from momus.journal import Journal  # there already

            journal = self._journal = Journal(control, control.prefix, journal)
        if journal is not None and not journal.is_over:
            journal.begin_anew(asked(journal.counted, is_up))
            journal.is_over = True

    def left(self) -> list[str]:
        """As `unverified`, of processes that have ended: what `settle` has found out."""
        unmet = [] if self._faults is None else list(self._faults.unmet_before)
        return unmet if self._journal is None else [*unmet, *self._journal.unmet()]

    def _begin_anew(self, path: str, **body: object) -> Any:
        """Make a call that empties the journal and drops the faults. Expectations go on: the call counts their requests
        once no more of them can come. Returns the cluster as it is now."""
        if self._journal is not None and (filters := self._journal.asked()):
            body["count"] = filters
        if explored.watch is not None:
            explored.watch.will_begin_again(self)
        answer = self._ask("POST", path, body)
        if explored.watch is not None:
            explored.watch.began_again(self)
        if self._faults is not None:
            self._faults.forget()
        if self._journal is not None:
            self._journal.begin_anew(answer.get("counted", []))
        return answer


def asked(question: Callable[[], Any], is_up: bool) -> Any:
    """What a process answers; None: it does not."""
    try:
        return question() if is_up else None
    except (OSError, RuntimeError):
        return None


def unmet_faults(cluster: ClusterHandle) -> list[str]:
    """A sentence for each fault that has acted on nothing."""
    return list(cluster.faults.unmet())


# What the fixtures ask of a cluster when its test is over: a sentence for whatever the test must fail for.
VERIFY: list[Callable[[ClusterHandle], Iterable[str]]] = [unmet_faults, lambda cluster: cluster.journal.unmet()]


def settings(config: Mapping[str, object] | None) -> dict[str, str]:
    """Settings as server.properties spells them."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (config or {}).items()}


def _to_json(value: str | bytes | None) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _value_to_json(value: Value) -> object:
    """As `_to_json`; a dict or a list as the text of its JSON, so that no key of it is mistaken for a word of ours."""
    if not isinstance(value, (dict, list)):
        return _to_json(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
