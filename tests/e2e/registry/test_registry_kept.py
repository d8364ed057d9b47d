"""Answers that are kept as bytes beside answers that are made: the same, whatever has happened in between.

Each request is sent twice over one connection as it is, so that the second may be taken from what is kept, and once
with a header of its own, so that it cannot be.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import urllib.parse

import pytest
from registry_client import RegistryClient

from momus import Broker
from momus.faults import once

PATHS = (
    "/subjects",
    "/subjects?deleted=true",
    "/schemas/ids/1",
    "/schemas/ids/2/schema",
    "/schemas/ids/1/versions",
    "/subjects/a-value/versions/latest",
    "/subjects/b-value/versions",
    "/config/a-value?defaultToGlobal=true",
    "/mode",
)
NUMBERS = itertools.count()


class Line:
    """A connection that is kept."""

    def __init__(self, url, login=None):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
        self.headers = RegistryClient(url, login).headers

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.connection.close()

    def get(self, path, **headers):
        self.connection.request("GET", path, headers={**self.headers, **headers})
        reply = self.connection.getresponse()
        return reply.status, reply.read()

    def same(self, path):
        """The answer, which is that of three requests."""
        kept = [self.get(path) for _ in range(2)]
        made = self.get(path, **{"X-Number": str(next(NUMBERS))})
        assert kept == [made, made], path
        return made


class Story:
    """What may happen to a registry, drawn by a seed."""

    def __init__(self, broker, registry, draw):
        self.broker, self.registry, self.draw = broker, registry, draw
        self.taken = None

    def register(self):
        subject, size = self.draw.choice(("a-value", "b-value")), self.draw.randrange(4)
        fields = [{"name": f"f{each}", "type": "int", "default": 0} for each in range(size)]
        self.registry.register(subject, {"type": "record", "name": "R", "fields": fields})

    def delete(self):
        self.registry.ask("DELETE", f"/subjects/{self.draw.choice(('a-value', 'b-value'))}")

    def configure(self):
        level = self.draw.choice(("FULL", "NONE", "BACKWARD"))
        self.registry.ask("PUT", f"/config{self.draw.choice(('', '/a-value'))}", {"compatibility": level})

    def change_mode(self):
        self.registry.ask("PUT", "/mode", {"mode": self.draw.choice(("READONLY", "READWRITE"))})

    def write_directly(self):
        number = self.draw.randrange(1, 4)
        key = {"keytype": "SCHEMA", "subject": "a-value", "version": number, "magic": 1}
        value = {"subject": "a-value", "version": number, "id": 40 + number, "schema": '"int"', "deleted": False}
        if self.registry.ask("GET", "/subjects"):  # the topic is there
            self.broker.produce("_schemas", json.dumps(value), key=json.dumps(key))

    def begin_anew(self):
        self.broker.reset()
        self.taken = None

    def take(self):
        self.taken = self.broker.snapshot()

    def restore(self):
        if self.taken is not None:
            self.broker.restore(self.taken)


DEEDS = ("register",) * 4 + ("delete", "configure", "change_mode", "write_directly", "begin_anew", "take", "restore")


@pytest.fixture(scope="module")
def plain():
    with Broker(registry=True) as broker:  # without a journal, which sees every request
        yield broker


@pytest.mark.parametrize("seed", range(4))
def test_kept_answers_are_those_that_would_be_made(plain, seed):
    plain.reset()
    draw = random.Random(seed)
    story = Story(plain, RegistryClient(plain.registry_url), draw)
    with Line(plain.registry_url) as line:
        for _ in range(40):
            for path in draw.sample(PATHS, 3):
                line.same(path)
            getattr(story, draw.choice(DEEDS))()
            for path in draw.sample(PATHS, 3):
                line.same(path)


def test_fault_meets_a_request_whose_answer_is_kept(plain):
    plain.reset()
    with Line(plain.registry_url) as line:
        assert line.same("/subjects") == (200, b"[]")
        plain.faults.registry("error", route="ListSubjects", trigger=once)
        assert line.get("/subjects")[0] == 500
        assert line.same("/subjects") == (200, b"[]")


def test_journal_has_a_request_whose_answer_was_kept(plain):
    plain.reset()
    with Line(plain.registry_url) as line:
        line.same("/subjects")
        plain.journal.keep(1)
        line.get("/subjects")
        assert len(plain.journal.entries(api="Registry")) == 1
        plain.journal.keep(0)


def test_change_of_user_or_acl_ends_what_was_kept():
    acls = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root",
        "allow.everyone.if.no.acl.found": False,
    }
    with Broker(security="sasl_plaintext", users={"root": "r", "alice": "a"}, config=acls, registry=True) as broker:
        RegistryClient(broker.registry_url, "root:r").register("orders-value", '"int"')
        with Line(broker.registry_url, "root:r") as root, Line(broker.registry_url, "alice:a") as alice:
            assert root.same("/schemas/ids/1")[0] == 200
            assert alice.same("/subjects") == (200, b"[]")
            assert alice.same("/schemas/ids/1")[0] == 403
            broker.acls.allow("alice", "describe", topic="orders")
            assert alice.same("/subjects") == (200, b'["orders-value"]')
            assert alice.same("/schemas/ids/1")[0] == 200
            broker.users.add("alice", "b")
            assert alice.same("/schemas/ids/1")[0] == 401
            assert root.same("/schemas/ids/1")[0] == 200
