"""Commits, transactions with offsets and deletions, as events of random histories of one shard of groups."""

from __future__ import annotations

from core_broker import make_topic
from core_requests import commit_request, fetch_request
from offsets_model_kit import Key, delete_offsets
from stepped_kit import History
from txn_kit import Producer

from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.topics import DeleteTopicsRequest

GROUPS, TOPICS, PARTITIONS = ("g0", "g1", "g2", "nul\0"), ("t", "u"), range(4)
INTERNAL = ("__consumer_offsets", "__transaction_state")


class OffsetCommits(History):
    """What clients do to committed offsets, and what the model makes of it."""

    # -- what clients do

    def commit(self, places: list[Key], value: int, *, metadata: str = "") -> set[int]:
        group, topic, _ = places[0]
        answer = self.client.call(commit_request(group, {p: value for _, _, p in places}, topic, metadata), 8)
        return {row.error_code for row in answer.topics[0].partitions}

    def do_commit(self, *, may_fail: bool = False) -> None:
        places = self.places()
        value = self.value(places)
        codes = self.commit(places, value, metadata=self.rng.choice(["", "", "m"]))
        if codes == {0}:
            for key in places:
                self.model.commit(key, self.now, value)
        else:
            self.note("refused", codes)
            assert may_fail

    def do_fail(self) -> None:
        kinds = ("write",) if self.flush == "os" else ("write", "sync")
        self.world.files.inject(self.rng.randint(1, 2), kinds=kinds, short_bytes=self.rng.choice([0, 30]))
        self.do_commit(may_fail=True)
        self.world.files.heal()
        self.world.run()

    def do_work(self) -> None:
        """Enough for the cleaner, which goes over the log once or more often."""
        places = [("g0", "t", p) for p in PARTITIONS]
        for _ in range(self.rng.randint(1, 3)):
            value = self.value(places)
            for _ in range(12):
                assert self.commit(places, value) == {0}
            for key in places:
                self.model.commit(key, self.now, value)
            self.world.advance(self.rng.choice([0, 2100, 4100]))

    def do_send(self) -> None:
        number, places = self.rng.randrange(3), self.places()
        group, topic, _ = places[0]
        value = self.value(places)
        self.note("producer", number)
        if number not in self.producers:
            name = f"tx{number} {self.generation}"
            self.producers[number] = Producer(self.client, name, v2=number != 0)
            assert self.producers[number].init(timeout_ms=900_000) == 0
        producer = self.producers[number]
        assert producer.v2 or producer.add_offsets(group) == 0
        assert set(producer.send_offsets({p: value for _, _, p in places}, group, topic).values()) == {0}
        for key in places:
            self.model.pending.setdefault(number, {})[key] = self.now, value

    def do_end(self) -> None:
        if numbers := self.model.pending.keys() & self.producers.keys():
            number, commit = self.rng.choice(sorted(numbers)), self.is_likely(0.6)
            self.note("producer", number, "commits" if commit else "aborts")
            assert self.producers[number].end(commit=commit) == 0
            self.model.end(number, commit)

    def do_init(self) -> None:
        if self.producers:
            number = self.rng.choice(list(self.producers))
            producer = self.producers[number]
            # the first one aborts what is open, and may be told to come again
            assert 0 in [producer.init(timeout_ms=900_000), producer.init(timeout_ms=900_000)]
            self.model.end(number, commit=False)

    def do_delete_offsets(self) -> None:
        places = self.places()
        group, topic, _ = places[0]
        if delete_offsets(self.client, group, topic, [p for _, _, p in places]):
            self.model.forget(keys=places)

    def delete_group(self, group: str) -> int:
        code: int = self.client.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code
        self.note(repr(group), code)
        return code

    def do_delete_group(self) -> None:
        group = self.rng.choice(GROUPS)
        if self.delete_group(group) == 0:
            self.model.forget(group=group)

    def do_remake_topic(self) -> None:
        topic = self.rng.choice(TOPICS)
        self.note(topic)
        self.client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5)
        self.world.settle()
        make_topic(self.client, topic, len(PARTITIONS))
        self.model.forget(topic=topic)

    def do_read(self) -> None:
        self.client.call(fetch_request(INTERNAL[0], 0, 0), 11)
