"""Writes SUPPORTED.md from the routing table: `python -m broker.supported > SUPPORTED.md`."""

from __future__ import annotations

import sys

from broker.handlers import make_routes
from protocol.api import ApiKey, request_class

HEAD = """\
# What is supported

Made from the routing table by `python -m broker.supported`; do not edit. The reference is Apache Kafka 4.3.1.

## APIs

| key | API | versions | flexible since |
|---|---|---|---|
"""

BEYOND = """
## Beyond Kafka

* **OffsetCommit v0, v1 and OffsetFetch v0** of the original offset management proposal are served; Kafka 4 starts at v2
  and v1. ApiVersions has one range for each API, so it begins at 0.
* **Any broker answers offset requests** with `--brokers N`, also one that is not the coordinator.
  `offsets.any.broker=false` gives Kafka's NOT_COORDINATOR.
* **A topic created by Metadata or FindCoordinator** is in the same reply; Kafka answers an error first and the client
  tries again.
* **Defaults made for tests**: no initial rebalance delay, one replica. `--set KEY=VALUE` or
  `--config server.properties` gives Kafka's.
* **Whose offsets a transaction carried** (the first draft of KIP-447) is recorded beside it, in a record of type 1000
  that Kafka's tools skip, and shown by `momus txn describe`.
* **A control endpoint** (`--control HOST:PORT`, HTTP and JSON on loopback: `/healthz`, `/readyz`, `/_admin/clock`,
  `/_admin/brokers`) moves the clock and stops and starts virtual brokers. A partition whose only replica is stopped
  goes to another node and comes back; Kafka would leave it without a leader.
* **`feature.NAME=LEVEL`** as a setting does what UpdateFeatures does, permanently.

## Different from Kafka

* EndTxn is answered when the transaction is complete; Kafka answers when it is decided, and the producer's next
  transaction may have to wait (CONCURRENT_TRANSACTIONS).
* A transaction is aborted when its timeout is over, not at the next check
  (`transaction.abort.timed.out.transaction.cleanup.interval.ms` has no effect).
* One process: replication factors are accepted and shown, nothing is replicated, and acks=all means one log. A
  reassignment is done when it is answered.
* Client quotas and SCRAM credentials are stored and shown, but not enforced: no client is throttled or has to log in.
* Clients cannot create, delete or grow internal topics.

## Absent by choice

| API | why |
|---|---|
| KIP-447's draft client API (a group id in the producer, assignments in InitProducerId) | it never got wire fields |
| Two-phase commit (KIP-939, InitProducerId v6) | not final in Kafka 4.3 |
| ACLs, delegation tokens | there is no authorizer: any client that reaches the port may do everything |
| Share groups (KIP-932) | another kind of queue; offsets and transactions come first |
| Telemetry (71, 72) | nothing here reads what clients send |
| Controller and replication (4-7, 52-54, 56, 58, 59, 62-64, 67, 70, 73, 80-82) | one process has no followers |
| Tiered storage | segments stay where they are |

## Not met of the offset management proposal

ZooKeeper's layout (the proposal replaces it), writes that scale over machines, and surviving a lost machine.
"""


def supported() -> str:
    """The text of SUPPORTED.md."""
    rows = []
    for route in sorted(make_routes(), key=lambda route: route.api_key):
        request = request_class(route.api_key)
        name = request.__name__.removesuffix("Request")
        flexible = request.FLEXIBLE_SINCE
        rows.append(
            f"| {int(ApiKey(route.api_key))} | {name} | {route.min_version}-{route.max_version} "
            f"| {flexible if flexible <= route.max_version else '-'} |\n"
        )
    return HEAD + "".join(rows) + BEYOND


if __name__ == "__main__":
    sys.stdout.write(supported())
