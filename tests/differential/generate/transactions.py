"""Transactions: producer ids and their epochs, partitions added by both protocols, markers, offsets, and who is
fenced."""

from __future__ import annotations

from differential.generate import offsets as o
from differential.generate import records as r
from differential.generate.builder import Case, Mix, said
from differential.plain import Plain, Values


class Producers:
    """One or two transactional producers; two of them may share an id, and fence each other."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.labels = ["p0", "p1"] if case.maybe(0.5) else ["p0"]
        shared = len(self.labels) == 2 and case.maybe(0.4)
        self.ids = {label: "%x0" if shared else f"%x{at}" for at, label in enumerate(self.labels)}
        self.is_new = case.maybe(0.5)  # mostly versions of the second protocol, which adds partitions by itself

    def some(self) -> str:
        return self.case.rng.choice(self.labels)

    def who(self, label: str) -> Values:
        epoch = said("pep:" + label, self.case.weighted(((0, 16), (-1, 0.8), (1, 0.5))))
        return {"ProducerId": said("pid:" + label), "ProducerEpoch": epoch}

    def init(self, label: str, **more: Plain) -> Values:
        case = self.case
        body: Values = {
            "TransactionalId": self.ids[label],
            "TransactionTimeoutMs": 60_000,
            "ProducerId": -1,
            "ProducerEpoch": -1,
        }
        least = 0
        if case.maybe(0.25):
            body["ProducerId"] = said("pid:" + label)
            body["ProducerEpoch"] = said("pep:" + label, case.weighted(((0, 4), (-1, 1), (1, 0.6))))
            least = 3
        return case.add("InitProducerId", case.version("InitProducerId", least), {**body, **more}, label=label)

    def add(self, label: str) -> Values:
        case, who = self.case, self.who(label)
        topics = [
            {
                "Name": case.weighted((("%t0", 6), ("%t1", 3), ("%nope", 0.4), (case.odd_topic(), 0.3))),
                "Partitions": case.one([0], [0], [1], [0, 1], [], [99], [0, 0]),
            }
            for _ in range(case.one(1, 1, 2))
        ]
        body = {
            "V3AndBelowTransactionalId": self.ids[label],
            "V3AndBelowProducerId": who["ProducerId"],
            "V3AndBelowProducerEpoch": who["ProducerEpoch"],
            "V3AndBelowTopics": topics,
        }
        return case.add("AddPartitionsToTxn", case.version("AddPartitionsToTxn", 0, 3), body)

    def add_or_verify(self, label: str) -> Values:
        """The versions that brokers send to one another."""
        case = self.case
        topics = [{"Name": case.one("%t0", "%t1", "%nope"), "Partitions": case.one([0], [0, 1], [99])}]
        row = {**self.who(label), "TransactionalId": self.ids[label], "VerifyOnly": case.maybe(0.6), "Topics": topics}
        return case.add("AddPartitionsToTxn", case.one(4, 5), {"Transactions": [row]})

    def produce(self, label: str) -> Values:
        version = self.case.version("Produce", 12) if self.is_new and self.case.maybe(0.8) else None
        return r.produce(self.case, label, self.ids[label], True, version, faulty=0.04)

    def end(self, label: str) -> Values:
        case = self.case
        version = case.version("EndTxn", 5) if self.is_new and case.maybe(0.8) else case.version("EndTxn")
        body = {**self.who(label), "TransactionalId": self.ids[label], "Committed": case.maybe(0.6)}
        return case.add("EndTxn", version, body, label=label)

    def offsets(self, label: str) -> Values:
        version = 5 if self.is_new and self.case.maybe(0.8) else None
        names = ("&s0", "&s0", "&s1", "%nope")
        return o.transactional_commit(self.case, self.ids[label], label, o.GROUP, version=version, names=names)

    def add_offsets(self, label: str) -> Values:
        case = self.case
        body = {**self.who(label), "TransactionalId": self.ids[label], "GroupId": case.one(o.GROUP, "%g1", "")}
        return case.add("AddOffsetsToTxn", case.version("AddOffsetsToTxn"), body)

    def describe(self, label: str) -> Values:
        names = [self.ids[label]]
        if self.case.maybe(0.2):
            names.append(self.case.one("%nope", "", self.ids[label]))
        return self.case.add("DescribeTransactions", 0, {"TransactionalIds": names})

    def list(self, label: str) -> Values:
        case = self.case
        states: list[str] = case.one([], [], ["Ongoing"], ["CompleteCommit", "Empty"], ["bogus", "Ongoing"], ["Dead"])
        ids: list[Plain] = case.weighted((([], 4), ([said("pid:" + label)], 1)))
        pattern = case.weighted(((None, 5), ("", 0.5), ("%x.*", 1), ("[", 0.5), ("x0", 0.5)))
        body = {
            "StateFilters": states,
            "ProducerIdFilters": ids,
            "DurationFilter": case.weighted(((-1, 5), (0, 1), (1_000_000, 1))),
            "TransactionalIdPattern": pattern,
        }
        return case.add("ListTransactions", case.version("ListTransactions"), body)

    def markers(self, label: str) -> Values:
        case = self.case
        topics = [{"Name": case.one("%t0", "%t1", "%nope"), "PartitionIndexes": case.one([0], [0, 1], [99])}]
        row = {
            **self.who(label),
            "TransactionResult": case.maybe(0.5),
            "CoordinatorEpoch": case.one(0, 0, -1, 1),
            "TransactionVersion": case.one(0, 2),
            "Topics": topics,
        }
        return case.add("WriteTxnMarkers", case.one(1, 2), {"Markers": [row]})

    def odd(self, label: str) -> Values:
        case = self.case
        stranger = {
            "TransactionalId": case.one("", "%nope", self.ids[label]),
            "ProducerId": case.one(-1, 5, said("pid:" + label)),
            "ProducerEpoch": case.one(-1, 0, 32_767),
            "Committed": case.maybe(0.5),
        }
        own = ("__consumer_offsets", "&s0")
        return case.act(
            lambda: self.init(label, TransactionTimeoutMs=case.one(0, -1, 900_001, 900_000)),
            lambda: self.init(label, TransactionalId=case.one("", None, "%ünï-😀")),
            lambda: self.init(label, ProducerId=case.one(5, -1, 99_999), ProducerEpoch=case.one(-1, 0, 3)),
            lambda: case.add("EndTxn", case.version("EndTxn"), stranger, label=label),
            lambda: r.produce(case, label, case.one("%nope", "", None), True, faulty=0),
            lambda: r.produce(case, label, self.ids[label], False, faulty=0),
            lambda: r.produce(case, None, self.ids[label], False, faulty=0),
            lambda: r.produce(case, label, self.ids[label], True, topics=own),
        )


def transactions(case: Case, with_markers: bool = True) -> None:
    """Two topics, one or two producers, readers of both isolation levels."""
    r.make_topics(case, False)
    producers = Producers(case)
    for label in producers.labels:
        producers.init(label)
    mix = Mix(case, 0.05)
    mix.action(6, lambda: producers.add(producers.some()))
    mix.action(9, lambda: producers.produce(producers.some()))
    mix.action(6, lambda: producers.end(producers.some()))
    mix.action(4, lambda: producers.offsets(producers.some()))
    mix.action(1, lambda: producers.add_offsets(producers.some()))
    mix.action(1.5, lambda: producers.init(producers.some()))
    mix.action(2, lambda: producers.describe(producers.some()))
    mix.action(1.5, lambda: producers.list(producers.some()))
    mix.action(7, lambda: r.log_reads(case))
    mix.action(2, lambda: o.offset_fetch(case, [o.GROUP]))
    mix.action(0.6, lambda: o.offset_commit(case, o.GROUP, names=["&s0", "&s1"]))
    mix.action(2, lambda: producers.odd(producers.some()))
    mix.action(1, lambda: producers.add_or_verify(producers.some()))
    mix.action(0.8, lambda: r.produce(case, case.one(producers.some(), None)))
    mix.action(0.25 if with_markers else 0, lambda: producers.markers(producers.some()))
    mix.run(case.rng.randint(12, 40))
