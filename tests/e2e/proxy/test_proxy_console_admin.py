"""Apache Kafka's console tools print through a proxy what they print without: cluster, settings, rights, members."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from java_checks import JVM, compiled
from tools_twice import OWN, Twice

pytestmark = [pytest.mark.java, pytest.mark.proxy]
TOPICS = "TopicCommand"
CONFIGS = "ConfigCommand"
QUORUM = "MetadataQuorumCommand"
FEATURES = "FeatureCommand"
ACLS = "AclCommand"
TOKENS = "DelegationTokenCommand"
REASSIGN = "reassign.ReassignPartitionsCommand"
ELECT = "LeaderElectionCommand"
TRANSACTIONS = "TransactionsCommand"
SHARES = "consumer.group.ShareGroupCommand"
GROUPS = "consumer.group.ConsumerGroupCommand"
METRICS = "ClientMetricsCommand"
STREAMS = "streams.StreamsGroupCommand"


def test_tools_that_describe_the_cluster_name_the_proxy(twice):
    for tool, line in (
        ("BrokerApiVersionsCommand", ""),
        ("ClusterTool", "list-endpoints"),
        ("ClusterTool", "list-endpoints --include-fenced-brokers"),
        ("ClusterTool", "api-versions"),
    ):
        twice.read(tool, line, shows=rf"127.0.0.1(:| +){twice.port}\b")
    twice.read("ClusterTool", "cluster-id", shows="momusmomusmomusmomusAA")
    twice.change("ClusterTool", "unregister --id 99", shows="99")
    twice.read(QUORUM, "describe --status", shows=f"CONTROLLER://127.0.0.1:{twice.port}")
    twice.read(QUORUM, "describe --replication", shows="Leader")
    twice.read(QUORUM, "describe --replication --human-readable", shows="Leader")
    absent = "--controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ"
    twice.change(QUORUM, f"remove-controller {absent}", shows="^1")
    twice.read(FEATURES, "describe", shows="group.version +.*FinalizedVersionLevel: 1")
    twice.change(FEATURES, "upgrade --feature group.version=1 --dry-run", shows="group.version")
    twice.change(FEATURES, "downgrade --feature share.version=1 --dry-run", shows="share.version")
    twice.change(FEATURES, "disable --feature absent.version", shows="absent.version")


def test_configs_tool(twice):
    twice.change(TOPICS, "--create --topic $-c", shows="Created")
    for about, setting in (
        ("--entity-type topics --entity-name $-c", "max.message.bytes=2000"),
        ("--entity-type brokers --entity-name 1", "log.cleaner.threads=2"),
        ("--entity-type brokers --entity-default", "log.retention.ms=100000000"),
        ("--entity-type groups --entity-name $-c", "consumer.session.timeout.ms=50000"),
        ("--entity-type client-metrics --entity-name $-c", "interval.ms=60000"),
        ("--entity-type users --entity-name $-c", "SCRAM-SHA-256=[iterations=8192,password=secret]"),
        ("--entity-type users --entity-name $-c", "producer_byte_rate=1024,request_percentage=12.5"),
        ("--entity-type users --entity-default --entity-type clients --entity-name $-c", "consumer_byte_rate=99"),
        ("--entity-type clients --entity-default", "producer_byte_rate=1000000000"),
        ("--entity-type ips --entity-name 127.0.0.9", "connection_creation_rate=5"),
        ("--entity-type broker-loggers --entity-name 1", "kafka.server.KafkaApis=DEBUG"),
    ):
        twice.change(CONFIGS, f"{about} --alter --add-config {setting}", shows="Completed updating")
        key = setting.partition("=")[0]
        twice.read(CONFIGS, f"{about} --describe", shows=re.escape(key) + "=")
        if "$" in about:  # else the first has taken it away from both
            twice.change(CONFIGS, f"{about} --alter --delete-config {key}", shows="Completed updating")
    twice.read(CONFIGS, "--entity-type topics --entity-name $-c --describe --all", shows="compression.type=producer")
    twice.read(CONFIGS, "--entity-type users --describe", shows="^0")
    wrong = "--entity-type topics --entity-name $-c --alter --add-config retention.ms=soon"
    twice.change(CONFIGS, wrong, shows="InvalidConfigurationException")


def test_what_the_node_has_been_told_of_its_listeners_passes_as_it_is(twice):
    about = "--entity-type brokers --entity-name 1 --describe --all"
    directly, through = (twice.run(place, CONFIGS, about) for place in (0, 1))
    assert "  listeners=DIRECT://127.0.0.1" in directly
    assert sorted(directly.splitlines()) == sorted(through.splitlines())


def test_acls_tool(twice):
    allow = "--add --allow-principal User:$ --operation Read --operation Describe"
    twice.change(ACLS, f"{allow} --topic $-a", shows="Adding ACLs", in_order=False)
    twice.change(ACLS, f"{allow} --group $- --resource-pattern-type prefixed", shows="Adding ACLs", in_order=False)
    twice.change(
        ACLS, "--add --deny-principal User:$ --deny-host 127.0.0.9 --cluster", shows="Adding ACLs", in_order=False
    )
    twice.change(ACLS, "--add --allow-principal User:$ --producer --topic $-b", shows="Adding ACLs", in_order=False)
    for which in ("--topic $-a", "--group $-x --resource-pattern-type match", "--principal User:$"):
        twice.read(ACLS, f"--list {which}", shows="User:without", in_order=False)
    twice.change(ACLS, "--remove --force --topic $-a", shows="^0")
    twice.change(ACLS, "--remove --force --cluster --deny-principal User:$ --deny-host 127.0.0.9", shows="^0")
    twice.read(ACLS, "--list --topic $-a", shows="^0\n+$")


def test_delegation_tokens_tool(twice):
    twice.change(TOKENS, "--create --max-life-time-period 3600000 --renewer-principal User:$", shows="Created")
    twice.read(TOKENS, "--describe --owner-principal User:admin", shows="Total number of tokens")
    twice.change(TOKENS, "--renew --renew-time-period 1000 --hmac AAAA", shows="DelegationTokenNotFoundException")
    twice.change(TOKENS, "--expire --expiry-time-period -1 --hmac AAAA", shows="DelegationTokenNotFoundException")


def test_reassignment_and_election(twice):
    twice.change(TOPICS, "--create --topic $-m --replica-assignment 1,1", shows="Created")
    keyed = "--reader-property parse.key=true"
    twice.change("ConsoleProducer", f"--topic $-m --sync {keyed}", shows="^0\n$", text="a\tone\n")
    for place in OWN:
        topics = twice.folder / f"{place}-topics.json"
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": f"{place}-m"}]}))
        rows = [
            {"topic": f"{place}-m", "partition": index, "replicas": [1], "log_dirs": [f"{twice.folder}/logs-2"]}
            for index in (0, 1)
        ]
        plan = twice.folder / f"{place}-plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    generate = f"--generate --broker-list 1 --topics-to-move-json-file {twice.folder}/$-topics.json"
    twice.read(REASSIGN, generate, shows="Proposed partition reassignment")
    plan = f"--reassignment-json-file {twice.folder}/$-plan.json"
    twice.change(REASSIGN, f"--execute {plan} --throttle 1000000", shows="Successfully started partition reassign")
    twice.read(REASSIGN, f"--verify {plan}", shows="Clearing topic-level throttles on topic without-m")
    twice.read(REASSIGN, "--list", shows="No partition reassignments found")
    twice.change(REASSIGN, f"--cancel {plan}", shows="^0")
    twice.read("LogDirsCommand", "--describe --topic-list $-m", shows="logs-1.*logs-2|logs-2.*logs-1")
    for kind in ("preferred", "unclean"):
        twice.change(ELECT, f"--election-type {kind} --topic $-m --partition 0", shows="Valid replica already elected")
    twice.change(ELECT, "--election-type preferred --topic $-absent --partition 0", shows="^1")


def test_client_metrics_tool(twice):
    alter = "--alter --name $-s --metrics org.apache.kafka.consumer. --interval 60000 --match client_id=a.*"
    twice.change(METRICS, alter, shows="Altered client metrics config")
    twice.read(METRICS, "--list", shows="without-s")
    twice.read(METRICS, "--describe --name $-s", shows="interval.ms=60000")
    twice.change(METRICS, "--delete --name $-s", shows="Deleted|Altered")


def test_share_groups_tool(twice):
    twice.change(TOPICS, "--create --topic $-q", shows="Created")
    settings = "share.auto.offset.reset=earliest"
    twice.change(CONFIGS, f"--entity-type groups --entity-name $-q --alter --add-config {settings}", shows="^0")
    twice.change("ConsoleProducer", "--topic $-q", shows="^0\n$", text="one\ntwo\nthree\n")
    share = "--topic $-q --group $-q --max-messages 3 --timeout-ms 60000"
    twice.change("consumer.ConsoleShareConsumer", share, shows="one\ntwo\nthree\n")
    twice.read(SHARES, "--list", shows="without-q")
    twice.read(SHARES, "--list --state empty", shows="without-q +Empty")
    twice.read(SHARES, "--describe --group $-q", shows="without-q +without-q +0")
    twice.read(SHARES, "--describe --group $-q --members", shows="no active members")
    twice.read(SHARES, "--describe --group $-q --state", shows=rf"127.0.0.1:{twice.port}")
    twice.read("GroupsCommand", "--list --share", shows="without-q +Share +share")
    reset = "--reset-offsets --group $-q --topic $-q --to-earliest"
    for how in ("--dry-run", "--execute"):
        twice.change(SHARES, f"{reset} {how}", shows="without-q +0 +0")
    twice.change(SHARES, "--delete-offsets --group $-q --topic $-q", shows="Successful")
    twice.change(SHARES, "--delete --group $-q", shows="successful")


@contextmanager
def members(twice: Twice, protocol: str) -> Iterator[None]:
    """A consumer of group and topic $-w at both places."""
    kept = []
    for place, own in enumerate(OWN):
        made = Consumer(
            {**twice.settings(place), "group.id": f"{own}-w", "client.id": "me", "group.protocol": protocol}
        )
        made.subscribe([f"{own}-w"])
        while not made.assignment():
            made.poll(0.1)
        kept.append(made)
    try:
        yield
    finally:
        for each in kept:
            each.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_tool_on_a_running_group(twice, protocol):
    twice.change(TOPICS, "--create --topic $-w --if-not-exists", shows="^0")
    with members(twice, protocol):
        for part in ("", "--members", "--members --verbose", "--state", "--offsets --verbose"):
            twice.read(GROUPS, f"--describe --group $-w {part}", shows="without-w")
        twice.read(GROUPS, "--describe --group $-w --state", shows=rf"127.0.0.1:{twice.port} .*Stable +1")
        twice.change(GROUPS, "--delete --group $-w", shows="GroupNotEmptyException")
        reset = "--reset-offsets --group $-w --all-topics --to-earliest --execute"
        twice.change(GROUPS, reset, shows="current state is Stable")
    twice.change(GROUPS, "--delete --group $-w", shows="successful|GroupIdNotFound")


def test_transactions_tool(twice):
    twice.change(TOPICS, "--create --topic $-x", shows="Created")
    kept = []  # else they would abort what they have begun
    for place, own in enumerate(OWN):
        made = Producer({**twice.settings(place), "transactional.id": f"{own}-x"})
        made.init_transactions(60)
        made.begin_transaction()
        made.produce(f"{own}-x", b"open")
        made.flush(60)
        kept.append(made)
    twice.read(TRANSACTIONS, "list", shows="without-x.*Ongoing")
    twice.read(TRANSACTIONS, "list --duration-filter 3600000", shows="TransactionalId")
    twice.read(TRANSACTIONS, "describe --transactional-id $-x", shows="Ongoing.*without-x-0")
    twice.read(TRANSACTIONS, "describe-producers --topic $-x --partition 0", shows="CurrentTransactionStartOffset")
    twice.read(TRANSACTIONS, "find-hanging --broker-id 1 --max-transaction-timeout 1", shows="Topic")
    twice.read(TRANSACTIONS, "find-hanging --topic $-x --max-transaction-timeout 1", shows="Topic")
    twice.change(TRANSACTIONS, "abort --topic $-x --partition 0 --start-offset 0", shows="^0")
    committed = "--isolation-level read_committed --timeout-ms 2000 --from-beginning"
    twice.read("consumer.ConsoleConsumer", f"--topic $-x {committed}", shows="Processed a total of 0")
    twice.change(TRANSACTIONS, "forceTerminateTransaction --transactionalId $-x", shows="^0")
    assert len(kept) == len(OWN)


@contextmanager
def word_counts(classes: str, twice: Twice) -> Iterator[None]:
    """An application at both places, through the proxy, until it has begun."""
    made = []
    for place, own in enumerate(OWN):
        words = [f"{own}-f", f"{own}-lines", f"{own}-counts", f"{twice.folder}/{own}-state", f"localhost:700{place}"]
        command = [*JVM, "-cp", classes, "WordCount", twice.servers[1], *words, "at_least_once"]
        made.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for process in made:
            assert "STATE RUNNING\n" in iter(process.stdout.readline, "")
        yield
        for process in made:
            process.communicate(timeout=120)  # the end of its input ends it in good order
    finally:
        for process in made:
            process.kill()
            process.communicate()


def test_streams_groups_tool(twice, kafka_libs):
    for topic in ("lines", "counts"):
        twice.change(TOPICS, f"--create --topic $-{topic}", shows="Created")
    twice.change("ConsoleProducer", "--topic $-lines", shows="^0\n$", text="a b\na\n")
    with word_counts(compiled(kafka_libs, "../../streams/WordCount"), twice):
        twice.read(STREAMS, "--describe --group $-f --state", shows=rf"127.0.0.1:{twice.port} .*Stable")
        for part in ("--members", "--members --verbose", "--offsets", "--offsets --verbose", "--state --verbose"):
            twice.read(STREAMS, f"--describe --group $-f {part}", shows="without-f", in_order=False)
        twice.change(STREAMS, "--delete --group $-f", shows="is not EMPTY")
    twice.read(STREAMS, "--list --state empty", shows="without-f +Empty", in_order=False)
    twice.read("GroupsCommand", "--list --streams", shows="without-f +Streams +streams", in_order=False)
    for how in ("--dry-run", "--execute"):
        reset = f"--reset-offsets --group $-f --all-input-topics --to-earliest {how}"
        twice.change(STREAMS, reset, shows="without-f +without-lines +0 +0")
    twice.change(STREAMS, "--delete-offsets --group $-f --input-topic $-lines", shows="Successful")
    twice.change(STREAMS, "--delete --group $-f", shows="successful")
    reset = "--application-id $-f --input-topics $-lines --to-earliest --force"
    twice.change("StreamsResetter", reset, shows="Done.|without-lines")
