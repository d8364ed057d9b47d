"""One broker's view of one case: connections, what it has said so far, and requests that wait for their answers."""

from __future__ import annotations

from typing import NamedTuple

from differential.batches import make_batch
from differential.brokers import Peer
from differential.learn import Environment, learn
from differential.links import CLIENT_ID, CLOSED, Link, LinkError, call
from differential.plain import MalformedError, Plain, Values, decode_response, encode_data, encode_request
from differential.route import Router
from differential.symbols import Symbols
from differential.trim import trim

PRODUCER_ID_TRIES = 100  # Kafka answers 14 while it asks its controller for a block of ids


class Sent(NamedTuple):
    """A request on its way."""

    number: int
    step: Values
    body: Values  # with this broker's own values in it
    link: Link


class Side:
    """One broker in one case."""

    is_connected = True  # there is a broker, not a recording of one

    def __init__(self, peer: Peer, router: Router, prefix: str, lasting: str, topic_ids: dict[bytes, str]) -> None:
        self.peer = peer
        self.router = router
        self.last_answer: Values = {}
        self.symbols = Symbols(prefix, lasting, topic_ids, peer.nodes > 1)
        self.environment: Environment = {"id:" + name: topic_id for topic_id, name in topic_ids.items()}
        self.links: dict[tuple[str, int], Link] = {}
        self.retired: list[Link] = []
        self.parked: list[Sent] = []

    # -- values

    def resolve(self, value: Plain) -> Plain:
        """A value of a step as this broker is to see it."""
        if isinstance(value, str):
            return self.symbols.name(value)
        if isinstance(value, list):
            return [self.resolve(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$" in value:
            return self._said(value)
        if "$f" in value:
            return getattr(self, "_make_" + value["$f"])(value)
        return {name: self.resolve(each) for name, each in value.items()}

    def _said(self, value: Values) -> Plain:
        if value["$"] not in self.environment:
            return self.resolve(value.get("d"))
        found = self.environment[value["$"]]
        return found + value.get("+", 0) if isinstance(found, int) else found

    def _make_hex(self, value: Values) -> bytes:
        return bytes.fromhex(value["x"])

    def _make_id(self, value: Values) -> bytes:
        """A topic id of no topic."""
        number: int = value["n"]
        return number.to_bytes(16, "big")

    def _make_now(self, value: Values) -> int:
        return self.peer.now_ms() + int(value["add"])

    def _make_batch(self, value: Values) -> bytes:
        found = b""
        for row in value["list"]:
            kept = {name: row[name] for name in row if name in ("recs", "fault", "raw")}
            resolved = {name: self.resolve(row[name]) for name in row if name not in kept}
            for name, least, most in (
                ("pid", -1 << 63, 1 << 63),
                ("epoch", -1 << 15, 1 << 15),
                ("seq", -1 << 31, 1 << 31),
            ):
                if name in resolved:
                    resolved[name] = min(max(resolved[name], least), most - 1)
            found += make_batch({**resolved, **kept})
        return found

    def _make_sub(self, value: Values) -> bytes:
        """What a classic consumer subscribes to."""
        owned = [{"Topic": self.resolve(topic), "Partitions": parts} for topic, parts in value.get("owned", [])]
        body = {
            "Topics": [self.resolve(topic) for topic in value["topics"]],
            "UserData": None,
            "OwnedPartitions": owned,
            "GenerationId": value.get("gen", -1),
            "RackId": value.get("rack"),
        }
        return encode_data("ConsumerProtocolSubscription", value.get("v", 1), body)

    def _make_assign(self, value: Values) -> Plain:
        """Assignments by the leader of a classic group, for all members that are named; from any other member none."""
        member = self.environment.get("mid:" + value["m"])
        leads = member is not None and member == self.environment.get("leader:" + value["m"])
        if leads == bool(value.get("not")):
            return []
        found = []
        for label in value["all"]:
            if member_id := self.environment.get("mid:" + label):
                parts = (value.get("parts") or {}).get(label)
                data = b"a-" + label.encode()
                if parts is not None:
                    assigned = [{"Topic": self.resolve(topic), "Partitions": each} for topic, each in parts]
                    data = encode_data(
                        "ConsumerProtocolAssignment", 1, {"AssignedPartitions": assigned, "UserData": None}
                    )
                found.append({"MemberId": member_id, "Assignment": data})
        return found

    def _make_acks(self, value: Values) -> list[Values]:
        """Acknowledgements of what a share consumer holds, or of the first part of each batch."""
        types: list[int] = value["types"]
        found = []
        for first, last in self.environment.get("held:" + value["m"], []):
            count = max(1, round((last - first + 1) * value["part"]))
            each = types if len(types) == 1 else [types[at % len(types)] for at in range(count)]
            found.append({"FirstOffset": first, "LastOffset": first + count - 1, "AcknowledgeTypes": each})
        return found

    # -- requests

    def send(self, number: int, step: Values) -> Sent:
        """Send a step's request. Kafka answers the requests of a connection in order, so one behind a request that
        waits gets a connection of its own."""
        body = self.resolve(step.get("b", {}))
        key = (step.get("c", "a"), self.router.node_for(step, body))
        if any(sent.link is self.links.get(key) for sent in self.parked):
            self.retired.append(self.links.pop(key))
        link = self.links.get(key)
        if link is None or not link.is_open:
            if link is not None:
                link.close()
            link = self.links[key] = self.peer.link(key[1])
        link.correlation_id += 1
        client_id = step.get("id", CLIENT_ID)
        link.send(encode_request(step["api"], step["v"], link.correlation_id, client_id, body))
        return Sent(number, step, body, link)

    def read(self, sent: Sent, data: bytes) -> Values:
        """A comparable answer; what later steps need of it is kept."""
        api, version = sent.step["api"], sent.step["v"]
        if data == CLOSED:
            return {"closed": True}
        try:
            answer = decode_response(api, version, data)
            if api == "InitProducerId" and answer["ErrorCode"] == 14 and self.peer.name == "kafka":
                answer = self._ask_again(sent, answer)
        except (MalformedError, IndexError, ValueError) as error:
            return {"undecodable": type(error).__name__, "bytes": data[:60].hex()}
        learn(sent.step, answer, self.environment, self.symbols)
        self.last_answer = answer
        normal = self.symbols.normal(answer, self.peer.now_ms())
        return trim(api, version, sent.step.get("b", {}), normal, self.symbols)

    def _ask_again(self, sent: Sent, answer: Values) -> Values:
        for _ in range(PRODUCER_ID_TRIES):
            try:
                answer = call(sent.link, sent.step["api"], sent.step["v"], sent.body)
            except LinkError:
                return answer
            if answer["ErrorCode"] != 14:
                break
            self.peer.pass_time(1)
        return answer

    def ask(self, api: str, version: int, body: Values, node: int = 0) -> Values:
        """A request of this machine's own, not compared."""
        return self.router.ask(api, version, body, node)

    def cut(self) -> None:
        """Forget connections and waiting requests: the broker has been killed."""
        self.close()
        self.links, self.retired, self.parked = {}, [], []
        self.environment = {key: value for key, value in self.environment.items() if not key.startswith("session:")}
        self.router.forget()

    def close(self) -> None:
        """Close all connections."""
        for link in [*self.links.values(), *self.retired]:
            link.close()
