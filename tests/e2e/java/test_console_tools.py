"""Apache Kafka's own console tools, unmodified, against the broker."""

from __future__ import annotations

import json
import re

import pytest
from clientwork import CODECS, until
from confluent_kafka import Consumer

from broker.base.placement import shard_index

# One worker: one JVM runs all the tools.
pytestmark = pytest.mark.xdist_group("java")

TOOLS = "org.apache.kafka.tools."
TOPICS = TOOLS + "TopicCommand"
PRODUCER = TOOLS + "ConsoleProducer"
CONSUMER = TOOLS + "consumer.ConsoleConsumer"
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
OFFSETS = TOOLS + "GetOffsetShell"


def table(printed: str) -> list[list[str]]:
    """The rows under the last heading of what the groups tool prints."""
    lines = [line.split() for line in printed.splitlines()]
    headings = [number for number, words in enumerate(lines) if words[:1] in (["GROUP"], ["TOPIC"])]
    return [words for words in lines[headings[-1] + 1 :] if words]


def test_topic_tool_creates_describes_grows_and_deletes(tool, name):
    tool(TOPICS, "--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=1000")
    assert "already exists" in tool(TOPICS, "--create", "--topic", name, code=1)
    tool(TOPICS, "--alter", "--topic", name, "--partitions", "4")
    described = tool(TOPICS, "--describe", "--topic", name)
    assert "PartitionCount: 4" in described
    assert "retention.ms=1000" in described
    assert described.count("Leader: 1\tReplicas: 1\tIsr: 1") == 4
    assert name not in tool(TOPICS, "--describe", "--under-replicated-partitions")
    tool(TOPICS, "--delete", "--topic", name)
    assert name not in tool(TOPICS, "--list").split()


@pytest.mark.parametrize("codec", CODECS)
def test_console_consumer_reads_what_the_console_producer_wrote(tool, name, codec):
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    tool(PRODUCER, "--topic", name, "--compression-codec", codec, *keyed, text="h:1,g:2\tk\tone\nh:\tl\ttwo\n")
    shown = [f"print.{each}=true" for each in ("partition", "offset", "headers", "key")]
    printed = tool(
        CONSUMER,
        *("--topic", name, "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000"),
        *(word for each in shown for word in ("--formatter-property", each)),
    )
    assert "Partition:0\tOffset:0\th:1,g:2\tk\tone\n" in printed
    assert "Partition:0\tOffset:1\th:\tl\ttwo\n" in printed


def test_groups_tool_shows_resets_and_deletes_an_idle_group(tool, name):
    tool(TOPICS, "--create", "--topic", name)
    tool(PRODUCER, "--topic", name, text="one\ntwo\nthree\n")
    read = ("--topic", name, "--group", name, "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    tool(CONSUMER, *read, "--command-property", "max.poll.records=1")
    about = ("--group", name)
    assert table(tool(GROUPS, "--describe", *about)) == [[name, name, "0", "2", "3", "1", "-", "-", "-"]]
    assert table(tool(GROUPS, "--describe", *about, "--state"))[0][-2:] == ["Empty", "0"]
    assert [name, "Empty"] in table(tool(GROUPS, "--list", "--state"))
    assert [name, "Classic", "consumer"] in table(tool(TOOLS + "GroupsCommand", "--list"))
    reset = tool(GROUPS, *about, "--topic", name, "--reset-offsets", "--to-earliest", "--execute")
    assert table(reset) == [[name, name, "0", "0"]]
    assert table(tool(GROUPS, "--describe", *about))[0][2:6] == ["0", "0", "3", "3"]
    deleted = tool(GROUPS, *about, "--topic", name, "--delete-offsets")
    assert table(deleted) == [[name, "0", "Successful"]]
    assert "successful" in tool(GROUPS, "--delete", *about)
    assert "GroupIdNotFoundException" in tool(GROUPS, "--describe", *about)


def test_groups_tool_shows_the_members_of_a_running_group(tool, shared_broker, name):
    tool(TOPICS, "--create", "--topic", name, "--partitions", "2")
    settings = {"bootstrap.servers": shared_broker.bootstrap_servers, "group.id": name, "client.id": "me"}
    consumer = Consumer(settings | {"log_level": 0})
    try:
        consumer.subscribe([name])
        until(lambda: consumer.poll(0.05) is None and len(consumer.assignment()) == 2, "the member is in")
        ((group, member, host, client, owned, _, assigned, *_),) = table(
            tool(GROUPS, "--describe", "--group", name, "--members", "--verbose")
        )
        assert (group, host, client, owned, assigned) == (name, "/127.0.0.1", "me", "2", f"{name}:0,1")
        assert member.startswith("me-")
        assert table(tool(GROUPS, "--describe", "--group", name, "--state"))[0][-3:] == ["range", "Stable", "1"]
        assert "GroupNotEmptyException" in tool(GROUPS, "--delete", "--group", name)
    finally:
        consumer.close()


def test_configs_tool_alters_and_describes_topics_brokers_and_groups(tool, name):
    tool(TOPICS, "--create", "--topic", name)
    for kind, entity, key, value in [
        ("topics", name, "max.message.bytes", "2000"),
        ("brokers", "1", "log.cleaner.threads", "2"),
        ("groups", name, "consumer.session.timeout.ms", "50000"),
        ("broker-loggers", "1", "momus.broker", "DEBUG"),
    ]:
        about = ("--entity-type", kind, "--entity-name", entity)
        tool(CONFIGS, *about, "--alter", "--add-config", f"{key}={value}")
        assert f"  {key}={value} sensitive=false" in tool(CONFIGS, *about, "--describe")
        tool(CONFIGS, *about, "--alter", "--delete-config", key)
        assert f"  {key}={value} " not in tool(CONFIGS, *about, "--describe")
    refused = ("--entity-type", "topics", "--entity-name", name, "--alter", "--add-config", "retention.ms=soon")
    assert "InvalidConfigurationException" in tool(CONFIGS, *refused, code=1)


def test_tools_show_and_delete_offsets_sizes_and_records(tool, name, tmp_path):
    tool(TOPICS, "--create", "--topic", name, "--partitions", "2")
    tool(PRODUCER, "--topic", name, text="one\ntwo\nthree\n")
    ends = dict(re.findall(rf"{name}:(\d):(\d)", tool(OFFSETS, "--topic", name)))
    assert sorted(ends.values()) == ["0", "3"]
    (full,) = [partition for partition, end in ends.items() if end == "3"]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": name, "partition": int(full), "offset": 2}], "version": 1}))
    deleted = tool(TOOLS + "DeleteRecordsCommand", "--offset-json-file", str(file))
    assert f"partition: {name}-{full}\tlow_watermark: 2" in deleted
    assert f"{name}:{full}:2" in tool(OFFSETS, "--topic", name, "--time", "earliest")
    assert f"{name}:{full}:-1" not in tool(OFFSETS, "--topic", name, "--time", "max-timestamp")
    printed = tool(TOOLS + "LogDirsCommand", "--describe", "--topic-list", name)
    (broker,) = json.loads(printed.splitlines()[-1])["brokers"]
    (directory,) = broker["logDirs"]
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert set(sizes) == {f"{name}-0", f"{name}-1"}
    assert sizes[f"{name}-{full}"] > 0
    assert directory["logDir"].startswith("/")


def test_tools_describe_the_cluster(tool):
    versions = tool(TOOLS + "BrokerApiVersionsCommand")
    assert "(id: 1 rack: null isFenced: false)" in versions
    for usable in ("Produce(0): 0 to 13 [usable: 13]", "OffsetCommit(8): 0 to 10 [usable: 10]"):
        assert usable in versions
    assert re.search(r"Cluster ID: [\w-]{22}\n", tool(TOOLS + "ClusterTool", "cluster-id"))
    assert "unfenced" in tool(TOOLS + "ClusterTool", "list-endpoints")


def test_formatters_read_the_offsets_topic(tool, name):
    tool(PRODUCER, "--topic", name, text="one\n")
    tool(CONSUMER, "--topic", name, "--group", name, "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000")
    tool(GROUPS, "--group", name, "--topic", name, "--delete-offsets")
    described = tool(TOPICS, "--describe", "--topic", name)
    topic_id = re.search(r"TopicId: ([\w-]{22})", described)[1]
    partition = shard_index(name, 50)
    end = re.search(rf":{partition}:(\d+)$", tool(OFFSETS, "--topic", "__consumer_offsets"), re.MULTILINE)[1]
    read = ("--topic", "__consumer_offsets", "--partition", str(partition), "--offset", "earliest")
    read += ("--max-messages", end, "--timeout-ms", "60000", "--formatter")
    printed = tool(CONSUMER, *read, TOOLS + "consumer.OffsetsMessageFormatter")
    decoder, facts = json.JSONDecoder(), []
    for start in [match.start() for match in re.finditer(r'\{"key"', printed)]:
        fact, _ = decoder.raw_decode(printed, start)
        if fact["key"]["data"]["group"] == name:
            facts.append(fact)
    assert all(fact["key"] == {"type": 1, "data": {"group": name, "topic": name, "partition": 0}} for fact in facts)
    data = facts[0]["value"]["data"]
    assert (facts[0]["value"]["version"], data["offset"], data["leaderEpoch"]) == (4, 1, 0)
    assert (data["metadata"], data["topicId"]) == ("", topic_id)
    assert facts[-1]["value"] is None
    printed = tool(CONSUMER, *read, TOOLS + "consumer.GroupMetadataMessageFormatter")
    assert re.search(rf'"group":"{name}"}}}},"value":{{"version":3,"data":{{"protocolType":"consumer"', printed)


def test_dump_tool_reads_the_files_of_a_stopped_broker(toolbox, broker_factory, tmp_path):
    broker = broker_factory(data_dir=tmp_path, config={"group.initial.rebalance.delay.ms": 0})
    to = ("--bootstrap-server", broker.bootstrap_servers)
    toolbox.run(PRODUCER, "--topic", "t", "--compression-codec", "gzip", *to, text="one\ntwo\nthree\n")
    read = ("--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")
    toolbox.run(CONSUMER, *read, *to)
    broker.stop()
    (data,) = tmp_path.glob("**/t-0/*.log")
    (offsets,) = [each for each in tmp_path.glob("**/__consumer_offsets-*/*.log") if each.stat().st_size]
    metadata = next(tmp_path.glob("**/__cluster_metadata-0/*.log"))
    dump = (TOOLS + "DumpLogSegments", "--deep-iteration", "--print-data-log", "--files")
    code, printed = toolbox.run(*dump, str(data))
    assert code == 0
    assert re.findall(r"payload: (\w+)", printed) == ["one", "two", "three"]
    assert "compresscodec: gzip" in printed
    assert "isvalid: false" not in printed
    code, printed = toolbox.run(*dump, str(offsets), "--offsets-decoder")
    assert (code, '"group":"g","topic":"t","partition":0' in printed) == (0, True)
    code, printed = toolbox.run(*dump, str(metadata), "--cluster-metadata-decoder")
    assert (code, '"type":"TOPIC_RECORD"' in printed, '"name":"t"' in printed) == (0, True, True)
    for index in data.parent.glob("*.*index"):
        code, printed = toolbox.run(TOOLS + "DumpLogSegments", "--index-sanity-check", "--files", str(index))
        assert code == 0
        assert "passed sanity check" in printed or "is empty" in printed
