"""What is written by hand in docs/clients.md: how it is read, settings, and what is known of what hangs."""

from __future__ import annotations

from typing import NamedTuple

from client_table.cells import BYTES_PER_SECOND, DAMAGED, DELAY_MS


class Note(NamedTuple):
    """What is known of some cells of a client: it is shown where any of them is among those that are listed."""

    places: tuple[tuple[str, str], ...]  # API, row
    text: str


BEGINNING = """\
# What clients do

What seven clients do when a request of theirs meets an error or a fault, three runs each. Made by `make client-table`
from [clients.json](clients.json), which says what each run came to: {runs} runs in {minutes} minutes, twelve at once on
two cores that had other work. Tenths of a second mean little, seconds mean something."""
SETTINGS = """\
Settings are the clients' own but for these: they wait 10 s for a reply (`request_timeout_ms`, `socket.timeout.ms`,
`request.timeout.ms`, `RequestTimeoutOverhead`, `Net.ReadTimeout`, `requestTimeout`), try for 30 s in all where that can
be set (`delivery_timeout_ms`, `message.timeout.ms`, `delivery.timeout.ms` and `default.api.timeout.ms`, `RetryTimeout`
and `RecordDeliveryTimeout`), do not commit by themselves but by a call that waits, and begin with the earliest record.
The commit is where their users make it: in the loop that polls, for sarama in `ConsumeClaim` and for kafkajs in
`eachMessage`, whose handlers throw on what a commit throws.
Groups are classic. A cluster has one broker and one partition.

**A cell** says after how many seconds the client is well again (the median): a producer when a record that it was told
is written is there, a member of a group when it has read a new record and has committed; after Heartbeat, when
a later one was answered without an error, too: those come every three seconds. Then what its application was told, in
the client's own names: it goes on with the same client, a producer with another record, a member by reading on and
committing again. **hangs**: a call had not returned 45 s after the fault. **not well**: calls returned, and it was not
well by then. **lost**: it was told that a record or a commit is kept, and it is not. **twice**: a record is in the log
twice. *late*: the commit was not there when the call returned, which tells nothing (sarama's does not); the next was.
*written*: a record is there though the application was told an error. *read again*: a record was delivered twice."""
WHAT = {
    "none": "nothing: what the others are compared with",
    "an error code": "`inject_error`: the request is refused with it. Only on APIs that answer it in Apache Kafka. "
    "With `UNKNOWN_MEMBER_ID` the member is expelled too, as it would be (`expel_member`): by the error alone it stays "
    "a member for the broker, and what it joins again as waits until the session of the first has ended",
    "disconnect before": "the connection is closed before the request takes effect",
    "disconnect after": "the connection is closed after the request took effect, instead of the reply",
    "delay": f"the reply leaves {DELAY_MS // 1000} s late",
    "no answer": "`blackhole_client`: neither served nor answered; the connection stays open",
    "delivered twice": "the request takes effect twice, as after a lost reply and a retry below the client",
    "damaged reply": f"byte {DAMAGED} of the reply is changed",
    "throttle": f"the reply takes its bytes' time at {BYTES_PER_SECOND} bytes a second",
}
GITHUB = "https://github.com"
NOT_IDEMPOTENT = (("Produce", "disconnect after"), ("Produce", "delivered twice"))
NOTES: dict[str, tuple[Note, ...]] = {
    "kafka-python": (
        Note(
            (("Produce", "damaged reply"),),
            "A reply that cannot be read is no error to try again for it "
            f"([kafka-python#2941]({GITHUB}/dpkp/kafka-python/pull/2941)), and the producer, idempotent unless told "
            "otherwise, refuses each later record.",
        ),
    ),
    "aiokafka": (
        Note(
            NOT_IDEMPOTENT,
            "Its producer is idempotent only with `enable_idempotence=True`; else a record whose reply is lost is "
            "written again.",
        ),
        Note(
            (("Heartbeat", "damaged reply"),),
            "An error code that it does not know ends the task that sends heartbeats. It reads on, the broker takes it "
            "out of the group after ten seconds, and the application is told nothing: "
            f"[aiokafka#1040]({GITHUB}/aio-libs/aiokafka/issues/1040) asks for a way to see it.",
        ),
    ),
    "confluent-kafka": (
        Note(
            NOT_IDEMPOTENT,
            "Its producer is idempotent only with `enable.idempotence`; else a record whose reply is lost is written "
            "again.",
        ),
    ),
    "java": (
        Note(
            (("Metadata", "damaged reply"), ("FindCoordinator", "damaged reply")),
            "After a reply that it cannot read the client asks for nothing more: calls end with their own time limits. "
            "No public issue was found.",
        ),
    ),
    "sarama": (
        Note(
            NOT_IDEMPOTENT,
            "Its producer is idempotent only with `Producer.Idempotent`; else a record whose reply is lost is written "
            "again.",
        ),
    ),
    "kafkajs": (
        Note(
            tuple(
                ("OffsetCommit", row)
                for row in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "damaged reply")
            ),
            "What a commit throws inside `eachMessage` stops the consumer for good: it leaves the group, with a "
            "`consumer.crash` event whose `restart` is false. Called from elsewhere the same commit throws, and the "
            "consumer joins again. Catch what it throws, or start the consumer again on that event.",
        ),
        Note(
            tuple((api, "no answer") for api in ("Metadata", "Produce", "Fetch", "OffsetCommit", "Heartbeat")),
            "It sends a request whose reply does not come again on the same connection, and opens no other: "
            f"[kafkajs#1783]({GITHUB}/tulios/kafkajs/pull/1783), open, says how; "
            f"[kafkajs#950]({GITHUB}/tulios/kafkajs/issues/950).",
        ),
        Note(
            tuple(("FindCoordinator", row) for row in ("disconnect before", "disconnect after", "no answer")),
            "A consumer that cannot ask for its coordinator once stops for good, with a `consumer.crash` event whose "
            f"`restart` is false: [kafkajs#1630]({GITHUB}/tulios/kafkajs/issues/1630).",
        ),
        Note(
            (("Heartbeat", "damaged reply"),),
            "So it does after an error code that it does not know: "
            f"[kafkajs#1513]({GITHUB}/tulios/kafkajs/issues/1513) and "
            f"[kafkajs#1466]({GITHUB}/tulios/kafkajs/issues/1466) tell of consumers that stopped.",
        ),
        Note(
            NOT_IDEMPOTENT,
            "Its producer is idempotent only with `idempotent: true`; else a record whose reply is lost is written "
            "again.",
        ),
    ),
}
COLD = {
    "kafka-python": "A member that has joined twice, as its topic's metadata came, goes round in `poll`, asks for "
    "nothing more and sends no heartbeats; 3 of 154 starts, twelve at once, did so in a run of their own. "
    "No public issue was found.",
}
KNOWN = {
    "commit": """\
**A commit that is told NOT_COORDINATOR once** ({client}, `commit(asynchronous=False)`, automatic commits as by default)
took {runs}. It asks for the coordinator, opens a connection to it and closes it again, up to a hundred times. What ends
that is chance, or after 45 s the end of its session; then nothing is committed. The cell above has lucky runs.
No public issue was found that says so; [librdkafka#2630](https://github.com/confluentinc/librdkafka/issues/2630) and
[librdkafka#2791](https://github.com/confluentinc/librdkafka/issues/2791) are near. To see a commit tried again, use
`COORDINATOR_LOAD_IN_PROGRESS`.""",
    "send_offsets": """\
**Offsets of a transaction after a restart** ({client}). A producer has an open transaction, its broker is killed and
started again at once; it connects again after 20 to 200 ms, and `send_offsets_to_transaction` returns after {runs}.
Every request was answered at once; the client waits before it sends the next. The same wait has no end where the
coordinator does not come back ([librdkafka#5511](https://github.com/confluentinc/librdkafka/issues/5511)), and the
call does not obey its time limit ([librdkafka#5456](https://github.com/confluentinc/librdkafka/issues/5456)).""",
}
FENCED = """\
**A producer that is fenced while it calls** (kafka-clients 4.0.0; the code of 4.3.1 is the same). When the reply to
AddPartitionsToTxn says PRODUCER_FENCED after `sendOffsetsToTransaction` has begun, the call waits for `max.block.ms`
(60 s) and throws TimeoutException: the sender answers nothing more after a fatal error. 7 of 20 runs on a slow machine
met it; the journal's last entry is that reply. No public issue was found. Ask the same producer again
(`abortTransaction` throws ProducerFencedException at once); a new one with the same transactional.id would fence its
successor."""
