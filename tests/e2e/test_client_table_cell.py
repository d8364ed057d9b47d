"""A cell of the table of clients, run for real: what `make client-table` would write of it."""

from __future__ import annotations

from client_table.cell_run import CONFIG, run
from client_table.cells import Cell
from client_table.driver import Driver


def test_run_of_a_cell_tells_what_the_client_did(make_kafka_broker):
    driver = Driver("kafka-python")
    with make_kafka_broker(config=CONFIG) as cluster:
        refused = run(Cell("kafka-python", "OffsetCommit", "UNKNOWN_MEMBER_ID"), driver, cluster)
    with make_kafka_broker(config=CONFIG) as cluster:
        doubled = run(Cell("kafka-python", "Produce", "disconnect after"), driver, cluster)
    driver.kill()
    assert driver.said.startswith("kafka-python ")
    assert (refused["did"], refused["errors"]) == ("well", ["CommitFailedError"])
    assert doubled["did"] == "well"
    assert "twice" not in doubled  # its producer is idempotent
