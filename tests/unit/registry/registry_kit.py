"""A registry without a broker: requests are decided, their records kept in a list and replayed at once."""

from __future__ import annotations

import json

from broker.registry.errors import RegistryError
from broker.registry.formats import checker
from broker.registry.jobs import Ask, SchemaFaultError
from broker.registry.records import decode, encode
from broker.registry.routes import find, words_of
from broker.registry.state import RegistryState
from broker.shell.registry.protoc import compiled


def check(job):
    return checker.check(job, compiled)


class RegistryKit:
    """`ask` returns the answer, or (status, error_code, message) of a refusal."""

    def __init__(self):
        self.state = RegistryState()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.jobs = 0

    def ask(self, method, target, body=None):
        path, _, query = target.partition("?")
        parameters = dict(pair.split("=", 1) for pair in query.split("&") if pair)
        try:
            route, words = find(method, words_of(path))
            made = route.load()(self.state, Ask(words, parameters, body or {}))
            decision = self.driven(made) if hasattr(made, "send") else made
        except RegistryError as error:
            return error.status, error.code, str(error)
        for record in decision.records:
            self.append(*encode(record))
        return json.loads(json.dumps(decision.answer))

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
