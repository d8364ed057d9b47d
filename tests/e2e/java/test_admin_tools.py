"""Apache Kafka's own tools for whoever runs a cluster: reassignment, elections, quorum, users, quotas, ACLs, groups."""

from __future__ import annotations

import json

import pytest

# One worker: one JVM runs all the tools.
pytestmark = pytest.mark.xdist_group("java")

TOOLS = "org.apache.kafka.tools."
TOPICS = TOOLS + "TopicCommand"
REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand"
ELECT = TOOLS + "LeaderElectionCommand"
QUORUM = TOOLS + "MetadataQuorumCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
TOKENS = TOOLS + "DelegationTokenCommand"
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"


@pytest.fixture
def on_trio(toolbox, trio):
    """Run a tool against three virtual brokers."""

    def run(name: str, *words: str) -> str:
        code, printed = toolbox.run(name, "--bootstrap-server", trio.bootstrap_servers, *words)
        assert code == 0, printed
        return printed

    return run


def test_reassign_tool_moves_partitions_and_the_election_tool_gives_them_back(on_trio, name, tmp_path):
    on_trio(TOPICS, "--create", "--topic", name, "--replica-assignment", "1:2,1:2")
    plan = tmp_path / "plan.json"
    moves = [
        {"topic": name, "partition": 0, "replicas": [2, 1]},
        {"topic": name, "partition": 1, "replicas": [3]},
        {"topic": "__consumer_offsets", "partition": 0, "replicas": [3]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    assert "Successfully started" in on_trio(REASSIGN, "--reassignment-json-file", str(plan), "--execute")
    verified = on_trio(REASSIGN, "--reassignment-json-file", str(plan), "--verify")
    assert verified.count("is completed") == 3
    assert "No partition reassignments found" in on_trio(REASSIGN, "--list")
    described = on_trio(TOPICS, "--describe", "--topic", name)
    assert "Partition: 0\tLeader: 1\tReplicas: 2,1\tIsr: 2,1" in described
    assert "Partition: 1\tLeader: 3\tReplicas: 3\tIsr: 3" in described
    elected = on_trio(ELECT, "--election-type", "preferred", "--topic", name, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {name}-0" in elected
    assert "Partition: 0\tLeader: 2\tReplicas: 2,1" in on_trio(TOPICS, "--describe", "--topic", name)


def test_quorum_tool_shows_the_first_node_and_its_observers(on_trio):
    status = on_trio(QUORUM, "describe", "--status")
    assert '"id": 1' in next(line for line in status.splitlines() if line.startswith("CurrentVoters"))
    replication = on_trio(QUORUM, "describe", "--replication")
    assert [line.split()[-1] for line in replication.splitlines()[1:]] == ["Leader", "Observer", "Observer"]


def test_configs_tool_keeps_users_and_quotas(on_trio, name):
    user = ("--entity-type", "users", "--entity-name", name)
    for scram in ("SCRAM-SHA-256=[iterations=8192,password=secret]", "SCRAM-SHA-512=[password=secret]"):
        on_trio(CONFIGS, "--alter", *user, "--add-config", scram)
    on_trio(CONFIGS, "--alter", *user, "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    described = on_trio(CONFIGS, "--describe", *user)
    for told in ("producer_byte_rate=1024.0", "request_percentage=12.5", "SCRAM-SHA-256=iterations=8192"):
        assert told in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    for gone in ("SCRAM-SHA-256", "producer_byte_rate"):
        on_trio(CONFIGS, "--alter", *user, "--delete-config", gone)
    described = on_trio(CONFIGS, "--describe", *user)
    assert "SCRAM-SHA-256" not in described
    assert "producer_byte_rate" not in described
    assert "request_percentage=12.5" in described


def test_acls_tool_is_told_that_there_is_no_authorizer(toolbox, shared_broker, name):
    for words in (["--list"], ["--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", name]):
        _, printed = toolbox.run(ACLS, "--bootstrap-server", shared_broker.bootstrap_servers, *words)
        assert "SecurityDisabledException: No Authorizer is configured" in printed
        assert "UnsupportedVersionException" not in printed


def test_tokens_tool_is_told_that_tokens_are_not_allowed_here(toolbox, shared_broker, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("")
    words = ["--describe", "--command-config", str(config)]
    _, printed = toolbox.run(TOKENS, "--bootstrap-server", shared_broker.bootstrap_servers, *words)
    assert "DelegationTokenAuthorizationException" in printed or "not allowed" in printed
    assert "UnsupportedVersionException" not in printed


def test_groups_tool_deletes_the_offsets_and_then_the_group(toolbox, shared_broker, name):
    def run(tool: str, *words: str) -> str:
        code, printed = toolbox.run(tool, "--bootstrap-server", shared_broker.bootstrap_servers, *words)
        assert code == 0, printed
        return str(printed)

    run(TOPICS, "--create", "--topic", name, "--partitions", "1")
    run(GROUPS, "--reset-offsets", "--to-earliest", "--group", name, "--topic", name, "--execute")
    assert "Successful" in run(GROUPS, "--delete-offsets", "--group", name, "--topic", name)
    assert "has no active members" in run(GROUPS, "--describe", "--group", name, "--state")
    assert "was successful" in run(GROUPS, "--delete", "--group", name)
