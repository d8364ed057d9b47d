"""Under random ACLs that change, a broker with shortcuts answers byte for byte as one without."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World, make_topic
from core_requests import commit_request, fetch_request, produce_request
from differential.authorization_cases import _acl
from hypothesis import given
from hypothesis import strategies as st

from broker.config.authorizer_setting import CLASS
from protocol.messages import acls
from protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

PRINCIPALS = ("User:alice", "User:bob", "User:admin")
TOPICS = ("orders", "order-items")
GROUPS = ("billing", "bill")
EVERYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
}


class Side:
    """One broker, and a connection of each principal."""

    def __init__(self, *, shortcuts: bool) -> None:
        self.world = World(
            "memory",
            shortcuts=shortcuts,
            authorizer_class_name=CLASS,
            super_users="User:admin",
            allow_everyone_if_no_acl_found="true",
        )
        self.clients: dict[str, Client] = {}
        for principal in PRINCIPALS:
            self.clients[principal] = client = Client(self.world)
            client.connection.principal = principal
        self.ids = {name: make_topic(self.clients["User:admin"], name) for name in TOPICS}

    def ask(self, principal: str, request: Any, version: int) -> bytes:
        client = self.clients[principal]
        before = len(client.transport.received)
        client.send(request, version)
        self.world.run()
        client.replies()
        return bytes(client.transport.received[before + 8 :])


STEP = st.one_of(
    st.tuples(st.just("acl"), st.randoms(use_true_random=False)),
    st.tuples(st.just("drop"), st.none()),
    st.tuples(st.just("again"), st.none()),
    st.tuples(
        st.sampled_from(("produce", "fetch", "commit", "offsets")),
        st.sampled_from(PRINCIPALS),
        st.sampled_from(TOPICS),
        st.sampled_from(GROUPS),
    ),
)


def request_of(side: Side, kind: str, topic: str, group: str) -> tuple[Any, int]:
    if kind == "produce":
        return produce_request(topic, 0, b"x"), 9
    if kind == "fetch":
        return fetch_request(topic, 0, 0), 12
    if kind == "commit":
        return commit_request(group, {0: 5}, topic), 8
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, member_id=None, topics=wanted)]), 8


@given(st.lists(STEP, min_size=4, max_size=25))
def test_shortcuts_deny_what_handlers_deny(steps):
    with_, without = Side(shortcuts=True), Side(shortcuts=False)
    asked: list[tuple[str, str, str, str]] = []
    for step in steps:
        if step[0] == "acl":
            request: Any = acls.CreateAclsRequest(creations=[_acl(step[1])])
            answers = [side.ask("User:admin", request, 2) for side in (with_, without)]
        elif step[0] == "drop":
            gone = acls.DeleteAclsFilter(**EVERYTHING, host_filter=None, operation=1, permission_type=1)
            answers = [side.ask("User:admin", acls.DeleteAclsRequest(filters=[gone]), 2) for side in (with_, without)]
        else:
            answers = [b"", b""]
            asked += [] if step[0] == "again" else [step]
        assert sorted(answers[0]) == sorted(answers[1])
        for kind, principal, topic, group in asked[-4:] * 2:  # the second time a shortcut has learnt it
            pairs = [(side, *request_of(side, kind, topic, group)) for side in (with_, without)]
            answers = [side.ask(principal, request, version) for side, request, version in pairs]
            assert answers[0] == answers[1], (kind, principal, topic, group)
