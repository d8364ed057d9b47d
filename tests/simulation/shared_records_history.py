"""Records for share consumers, as events of random histories: written, deleted, cleaned, and topics made anew."""

from __future__ import annotations

from core_broker import DATA
from core_requests import fetch_bytes, fetch_request
from share_model_kit import (
    ABORTED,
    COMMITTED,
    OPEN,
    PLAIN,
    Place,
    Row,
    values_of,
)
from stepped_kit import History
from txn_kit import end_of

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from protocol.record_batch import build_batch

GROUP, MEMBERS, TOPICS, PRODUCERS = "s", ("m0", "m1", "m2"), {"a": 2, "b": 1}, ("x", "y")


class SharedRecords(History):
    """What happens to the records, beside their delivery."""

    # -- records

    def place(self) -> Place:
        return self.rng.choice(list(self.models))

    def log_end(self, place: Place) -> int:
        topic = self.world.broker.metadata.topics[place[0]]
        end: int = self.world.broker.partitions.get(topic, place[1]).log.end_offset
        return end

    def values(self, place: Place, fate: str, producer: str = "") -> list[bytes]:
        """What is written now, to the end of a partition."""
        count, base = self.rng.randint(1, 5), self.log_end(place)
        self.note(producer, place, "from", base, "to", base + count - 1)
        values = [b"%d.%d" % (len(self.lines), at) for at in range(count)]
        for offset, value in enumerate(values, base):
            self.models[place].rows[offset] = Row(value, fate, producer)
        return values

    def do_plain(self) -> None:
        topic, index = place = self.place()
        rows = [(b"k%d" % self.rng.randrange(4), value) for value in self.values(place, PLAIN)]
        records = build_batch(rows, leader_epoch=-1, timestamp_ms=self.world.clock.now_ms())
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
        answer = self.client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 7)
        assert answer.responses[0].partition_responses[0].error_code == 0

    def do_transactional(self) -> None:
        if self.is_cleaned:
            return  # their records have no keys
        topic, index = place = self.place()
        name = self.rng.choice(PRODUCERS)
        values = self.values(place, OPEN, name)
        assert self.producers[name].produce(*values, topic=topic, index=index) == 0

    def do_end(self) -> None:
        name, fate = self.rng.choice(PRODUCERS), self.rng.choice([COMMITTED, ABORTED])
        if any(
            row.fate == OPEN and row.producer == name for each in self.models.values() for row in each.rows.values()
        ):
            self.note(name, fate)
            assert self.producers[name].end(commit=fate == COMMITTED) == 0
            for model in self.models.values():
                model.end(name, fate)

    def do_delete_records(self) -> None:
        topic, index = place = self.place()
        model = self.models[place]
        # no further: a start forgets a transaction whose records are all gone
        first_open = min((at for at, row in model.rows.items() if row.fate == OPEN), default=self.log_end(place))
        offset = self.rng.randint(model.start, first_open)
        rows = [DeleteRecordsPartition(partition_index=index, offset=offset)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=rows)], timeout_ms=100)
        code = self.client.call(request, 2).topics[0].partitions[0].error_code
        self.note(place, offset, code)
        assert code == 0
        model.delete_below(offset)

    def do_remake_topic(self) -> None:
        topic = self.rng.choice(list(TOPICS))
        models = [self.models[topic, index] for index in range(TOPICS[topic])]
        if not any(row.fate == OPEN for model in models for row in model.rows.values()):
            self.note(topic)
            self.client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5)
            self.world.settle()
            self.world.files.sync_dir(DATA)  # MemoryFiles cannot take back half of a renamed directory
            self.make_topic(topic)
            for producer in self.producers.values():
                producer.sequences = {key: value for key, value in producer.sequences.items() if key[0] != topic}
            self.do_beat()

    def look_what_is_cleaned(self) -> None:
        """Which records the cleaner has removed is not in question here."""
        for (topic, index), model in self.models.items():
            if self.is_cleaned and model.rows:
                offset, found = model.start, set[int]()
                while data := fetch_bytes(self.client.call(fetch_request(topic, index, offset), 11)):
                    found |= values_of(data).keys()
                    offset = end_of(data)
                model.keep(found)
