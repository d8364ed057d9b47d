"""The name of a cluster, which also gives names: `kafka_broker.name("orders")`."""

from __future__ import annotations


class ClusterName(str):
    """A text. Called with a word it answers a name for a topic or a group: the word itself in a cluster of momus, which
    is the test's alone; before a real cluster, which others use, one that no other test and no other run has.

        orders = kafka_broker.name("orders")
        kafka_broker.create_topic(orders)
    """

    run: str

    def __new__(cls, name: str, run: str = "") -> ClusterName:
        made = super().__new__(cls, name)
        made.run = run
        return made

    def __call__(self, word: str) -> str:
        return f"{word}-{self.run}" if self.run else word
