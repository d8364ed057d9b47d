"""A registry without a broker: requests are decided, their records kept in a list and replayed at once."""

from __future__ import annotations

import json

from broker.registry.errors import RegistryError
from broker.registry.formats import checker
from broker.registry.jobs import SchemaFaultError, Server
from broker.registry.records import decode, encode
from broker.registry.releases import DEFAULT_RELEASE
from broker.registry.state import RegistryState
from broker.shell.registry.protoc import compiled
from broker.shell.registry.service import Call


def check(job):
    return checker.check(job, compiled)


class RegistryKit:
    """`ask` returns the answer, or (status, error_code, message) of a refusal."""

    def __init__(self, release=DEFAULT_RELEASE):
        self.server = Server("a-cluster", release)
        self.state = RegistryState()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.jobs = 0
        self.requests = 0

    def ask(self, method, target, body=None):
        try:
            call = Call(method, target, self.server)
            call.body = body or {}
            self.requests += 1
            call.drawn = self.requests.to_bytes(16, "big")
            if call.route.parted:
                answer = self.parted(call.route.load_parts()(call.ask(self.state)))
            else:
                answer = self.written(call.route.load()(self.state, call.ask(self.state)))
        except RegistryError as error:
            return error.status, error.as_of(self.server.release).code, str(error)
        return json.loads(json.dumps(answer))

    def written(self, made):
        """Append what was decided. Returns the answer."""
        decision = self.driven(made) if hasattr(made, "send") else made
        for record in decision.records:
            self.append(*encode(record))
        return decision.answer

    def parted(self, parts):
        try:
            part = next(parts)
            while True:
                try:
                    answer = self.written(part(self.state))
                except RegistryError as error:
                    part = parts.throw(error)
                else:
                    part = parts.send(answer)
        except StopIteration as end:
            return end.value

    def driven(self, steps):
        try:
            job = next(steps)
            while True:
                self.jobs += 1
                try:
                    found = check(job)
                except SchemaFaultError as error:
                    found = error
                job = steps.send(found)
        except StopIteration as end:
            return end.value

    def append(self, key, value):
        """What any program may write to the topic."""
        self.log.append((key, value))
        record = decode(key, value)
        if record is not None:
            self.state.replay(record)

    def register(self, subject, schema, **more):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.ask("POST", f"/subjects/{subject}/versions", {"schema": text, **more})

    def clean(self):
        """What the log's cleaner does: the last record of a key is left, and of those none that is a tombstone."""
        last = {key: number for number, (key, _) in enumerate(self.log)}
        self.log = [row for number, row in enumerate(self.log) if last[row[0]] == number and row[1] is not None]

    def restart(self):
        """Go on with what the records say."""
        self.state = self.replayed()

    def replayed(self):
        """The state that a start makes of the records."""
        state = RegistryState()
        for key, value in self.log:
            record = decode(key, value)
            if record is not None:
                state.replay(record)
        return state


def record_of(**fields):
    """An Avro record's schema: name -> type, or (type, default)."""
    rows = []
    for name, given in fields.items():
        kind, *default = given if isinstance(given, tuple) else (given,)
        rows.append({"name": name, "type": kind, **({"default": default[0]} if default else {})})
    return {"type": "record", "name": "Order", "fields": rows}
