"""No response of any API in any version tells a client what it may not see: every declared field, and what is left out.

Requests are drawn from the declarations (named_fields.py) and sent to a cluster full of names (secrets_kit.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from functools import cache
from typing import Any

import pytest
from budget import heavy
from core_broker import Client, frame
from named_fields import Requests, declared, kind_of, values
from secrets_kit import GROUP_KINDS, LITERAL, OF_GROUP, OF_ID, OF_TOPIC, PREFIXED, Secrets

from broker.authorization.table import RULES
from broker.cluster.acls import GROUP, TOPIC, TRANSACTIONAL_ID
from broker.handlers import make_routes
from protocol.api import ApiKey, response_class
from protocol.declare import Message

ROUTES = make_routes()
DRAWS = 60  # requests of one API, shared among its versions; at least MIN_DRAWS a version
MIN_DRAWS = 6
# Who asks -> what it may do with all things of the kind, beside all it likes with what begins with "open".
CLIENTS = {
    "nothing": None,
    "own": frozenset[str](),
    "topics": frozenset((OF_TOPIC,)),
    "groups": frozenset((OF_GROUP, OF_ID)),
}
RESOURCES = {TOPIC: OF_TOPIC, GROUP: OF_GROUP, TRANSACTIONAL_ID: OF_ID}
ASK_IN_HANDLER = {
    ApiKey.FETCH,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}
# What a client says of itself to a group, later requests of it are told.
STATEFUL = {
    ApiKey.JOIN_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
}
NEED_NOTHING = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS}
_NODES = ("subtopologies.nodes", "global_stores.source", "global_stores.processor")
_OF_A_NODE = ("name", "source_topics", "sink_topic", "stores", "successors")
_DESCRIPTION = "STREAMS_GROUP_DESCRIBE.groups.topology_description"
# Fields in which an administrator is told no name of this cluster, and why.
UNTOLD = {
    **{f"{_DESCRIPTION}.{at}.{field}": "no description is stored" for at in _NODES for field in _OF_A_NODE},
    f"{_DESCRIPTION}.subtopologies.subtopology_id": "no description is stored",
    "CREATE_TOPICS.topics.topic_id": "the id of what was made just now",
    "CREATE_DELEGATION_TOKEN.token_id": "the same",
    "CREATE_DELEGATION_TOKEN.hmac": "the same",
    "CREATE_DELEGATION_TOKEN.token_requester_principal_name": "who asks",
    "LIST_PARTITION_REASSIGNMENTS.topics.name": "reassignments are done at once",
    "STREAMS_GROUP_HEARTBEAT.standby_tasks.subtopology_id": "this group has no standby tasks",
    "STREAMS_GROUP_HEARTBEAT.warmup_tasks.subtopology_id": "there are no warm-up tasks yet",
    "STREAMS_GROUP_HEARTBEAT.partitions_by_user_endpoint.standby_partitions.topic": "this group has no standby tasks",
    "STREAMS_GROUP_DESCRIBE.groups.members.assignment.standby_tasks.subtopology_id": "this group has none",
    "STREAMS_GROUP_DESCRIBE.groups.members.assignment.warmup_tasks.subtopology_id": "there are none yet",
    "STREAMS_GROUP_DESCRIBE.groups.members.target_assignment.standby_tasks.subtopology_id": "this group has none",
    "STREAMS_GROUP_DESCRIBE.groups.members.target_assignment.warmup_tasks.subtopology_id": "there are none yet",
}


def name_of(route: Any) -> str:
    return ApiKey(route.api_key).name


def client_who_may(secrets: Secrets, rights: frozenset[str] | None) -> str:
    """Give alice her rights."""
    if rights is not None:
        wide = {resource for resource, kind in RESOURCES.items() if kind in rights}
        secrets.allow(*((each, "*", LITERAL) if each in wide else (each, "open", PREFIXED) for each in RESOURCES))
    return "User:alice"


def conversation(
    route: Any, secrets: Secrets, principal: str, *, by_id: bool = True, draws: int = DRAWS
) -> Iterator[tuple[bytes, Any]]:
    """What a client asks, as bytes, and each answer."""
    requests, key = Requests(secrets, by_id=by_id), route.api_key
    versions = range(route.min_version, route.max_version + 1)
    for version in versions:
        for seed in range(max(draws // len(versions), MIN_DRAWS)):
            yield from _asked(secrets, principal, [requests.draw(key, version, seed)], key, version)
    for script in secrets.scripts:
        if key in {each.API_KEY for each in script}:
            yield from _asked(secrets, principal, script, key)


def _asked(
    secrets: Secrets, principal: str, requests: list[Any], key: int, version: int | None = None
) -> Iterator[tuple[bytes, Any]]:
    client = secrets.client(principal)
    for request in requests:
        asked = request.MAX_VERSION if version is None else version
        client.send(request, asked)
        answers = _answers(secrets, client)
        for answer in answers if key == request.API_KEY else ():
            yield frame(request, asked), answer
    client.leave()
    secrets.world.run()


def _answers(secrets: Secrets, client: Client) -> list[Any]:
    secrets.world.run()
    secrets.world.advance(2)
    return client.replies()


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_every_declared_field_is_classified(route):
    unknown = [path for path in declared(response_class(route.api_key), name_of(route)) if kind_of(path) is None]
    assert not unknown, f"say in named_fields.py whether these name something: {unknown}"


def test_every_api_has_a_rule():
    assert {route.api_key for route in ROUTES} == set(RULES) | ASK_IN_HANDLER | NEED_NOTHING


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_administrator_is_told_names_in_every_field_that_names_something(route):
    """Otherwise the test below would prove nothing for that field."""
    secrets = Secrets("open", "hidden", mixed=True)
    paths = [*declared(response_class(route.api_key), name_of(route))]
    told: dict[str, set[bytes]] = {path: set() for path in paths}
    find = re.compile(b"|".join(map(re.escape, secrets.tokens))).findall
    for _, answer in conversation(route, secrets, "User:admin", draws=300):
        for path, value in values(answer, name_of(route)):
            told[path].update(find(value))
    wanted = {path for path in paths if kind_of(path) in ("named", "of group", "of member")}
    assert {path for path in wanted if not told[path]} == wanted & UNTOLD.keys()
    assert not {path: told[path] for path in paths if kind_of(path) == "word" and told[path]}


@pytest.mark.parametrize("who", [who if who in ("nothing", "own") else heavy(who) for who in CLIENTS])
@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_client_is_told_no_name_that_it_may_not_see(route, who, caplog):
    secrets = Secrets("open", "hidden", mixed=True)
    rights = CLIENTS[who]
    principal = client_who_may(secrets, rights)
    before = secrets.world.broker.metadata.fingerprint()
    is_telling = re.compile(b"|".join(map(re.escape, secrets.hidden))).search
    said: set[bytes] = set()
    answered = 0
    for asked, answer in conversation(route, secrets, principal):
        answered += 1
        named = {token for token in secrets.hidden if token in asked}
        said |= {token for token in named if secrets.hidden[token] == {OF_GROUP}}
        for path, value in values(answer, name_of(route)):
            if is_telling(value) is None:
                continue
            for token in secrets.hidden.keys() - named - (said if route.api_key in STATEFUL else set()):
                if token in value:
                    ok = may_be_told(secrets, rights, kind_of(path), token, named)
                    assert ok, f"{path} tells {token!r}: {asked!r} -> {answer}"
    assert answered
    assert not [record.exc_text for record in caplog.records if record.exc_info]
    may_write = rights is not None or route.api_key == ApiKey.CREATE_DELEGATION_TOKEN  # of its own
    assert may_write or secrets.world.broker.metadata.fingerprint() == before


def may_be_told(
    secrets: Secrets, rights: frozenset[str] | None, kind: str | None, token: bytes, named: set[bytes]
) -> bool:
    """Whether a field of this kind may tell a client something that its request has not named."""
    if rights is None:
        return False
    if kind == "of member" and not named & {f"hidden-{each}".encode() for each in GROUP_KINDS}:
        return True  # the group is one of its own
    return secrets.hidden[token] <= rights or (OF_GROUP in rights and kind in ("of group", "of member"))


# Drawn at random, or counted over the whole cluster, in Kafka too.
NEW_EACH_TIME = {"session_id", "finalized_features_epoch", "producer_id", "token_id", "hmac", "member_id", "leader"}


def settled(value: Any) -> Any:
    """A response without what differs from cluster to cluster."""
    if isinstance(value, list):
        return [settled(each) for each in value]
    if not isinstance(value, Message):
        return value
    return {f.name: settled(getattr(value, f.name)) for f in value.FIELDS if f.name not in NEW_EACH_TIME}


@cache
def both() -> Secrets:
    """A cluster to take names from; it is not asked."""
    return Secrets("open", "hidden")


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_answers_are_the_same_where_there_is_nothing_hidden(route):
    """Counts, cursors, codes and sentences of a cluster with hidden things are those of one without."""
    given = []
    for prefixes in (("open", "hidden"), ("open",)):
        secrets = Secrets(*prefixes)
        principal = client_who_may(secrets, CLIENTS["own"])
        asked = copy(both())  # both clusters are asked about the same names
        asked.world = secrets.world
        given.append([(ask, settled(reply)) for ask, reply in conversation(route, asked, principal, by_id=False)])
    assert len(given[0]) == len(given[1])
    for (ask, full), (_, bare) in zip(*given, strict=True):
        assert full == bare, ask
