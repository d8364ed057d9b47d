"""Makes the pictures of docs/page.md anew: `make page-shots`. A broker with some life in it, each view once."""

from __future__ import annotations

import sys
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from page_kit import CHROMIUM, FLAGS, Load, Look, producing
from playwright.sync_api import sync_playwright

from momus import Broker

DOCS = Path(__file__).parents[3] / "docs"
MOST_BYTES = 100_000
SHOTS = {
    "overview": ("overview", "light", 960),
    "timeline": ("timeline", "light", 960),
    "topics": ("topics/orders", "light", 960),
    "groups": ("groups/billing", "dark", 960),
    "journal": ("journal", "light", 960),
    "transactions": ("transactions/payments", "light", 960),
    "cluster": ("cluster", "dark", 960),
    "phone": ("topics", "light", 375),
}


def fill(broker: Broker) -> Consumer:
    """Topics, a transaction that was fenced, a group that lags, and a commit that was refused."""
    for topic, partitions in (("orders", 3), ("payments", 1), ("customers", 6)):
        broker.create_topic(topic, partitions=partitions)
    broker.produce("orders", '{"item": "coffee", "cups": 2}', key="table 4", headers=[("to", "go")])
    for number in range(2):
        producer = Producer({**broker.client_config("confluent"), "transactional.id": "payments"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("orders", f'{{"paid": {number}}}', "table 4", 0)
        producer.flush(30)
        if number:
            producer.commit_transaction()
        else:
            zombie = producer
    try:
        zombie.commit_transaction()
    except KafkaException as error:
        sys.stderr.write(f"as wanted: {error}\n")
    settings = {"group.id": "billing", "group.protocol": "consumer", "client.id": "billing-1"}
    consumer = Consumer({**broker.client_config("confluent"), **settings, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("orders", index, 0) for index in range(3)], asynchronous=False)
    stranger = Consumer({**broker.client_config("confluent"), "group.id": "billing", "client.id": "old-billing"})
    try:
        stranger.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
    except KafkaException as error:
        sys.stderr.write(f"as wanted: {error}\n")
    stranger.close()
    return consumer


def main() -> int:
    """Write the pictures; 1 where one is too large."""
    wrong = 0
    with Broker(brokers=3, journal_mb=8, config={"default.replication.factor": 3}) as broker, sync_playwright() as play:
        consumer = fill(broker)
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        with Load(producing(broker, "orders", 3)):
            for name, (view, scheme, width) in SHOTS.items():
                context = browser.new_context(viewport={"width": width, "height": 560}, color_scheme=scheme)
                look = Look(context.new_page())
                look.open(broker, view)
                look.page.get_by_text("live", exact=True).wait_for()
                look.page.wait_for_timeout(4000)  # for a chart that has a few points
                if name == "groups":
                    look.page.get_by_role("heading", name="Who has what").evaluate("each => each.scrollIntoView()")
                path = DOCS / f"page-{name}.png"
                look.page.screenshot(path=path)
                context.close()
                size = path.stat().st_size
                sys.stdout.write(f"{path.name}: {size} bytes\n")
                wrong += size > MOST_BYTES
        browser.close()
        consumer.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
