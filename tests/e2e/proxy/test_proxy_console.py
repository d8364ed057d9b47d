"""Apache Kafka's console tools print through a proxy what they print without: topics, records, offsets, groups."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.java, pytest.mark.proxy]

TOPICS = "TopicCommand"
PRODUCER = "ConsoleProducer"
CONSUMER = "consumer.ConsoleConsumer"
GROUPS = "consumer.group.ConsumerGroupCommand"
OFFSETS = "GetOffsetShell"


def test_topics_tool(twice):
    twice.change(TOPICS, "--create --topic $-t --partitions 2 --config retention.ms=100000", shows="Created topic")
    twice.change(TOPICS, "--create --topic $-t", shows="already exists")
    twice.change(TOPICS, "--create --topic $-t --if-not-exists", shows="^0")
    twice.change(TOPICS, "--create --topic $-u --replica-assignment 1,1,1", shows="Created topic")
    twice.change(TOPICS, "--create --topic $-v --replication-factor 3", shows="Unable to replicate")
    twice.read(TOPICS, "--list", shows="without-t\nwithout-u\n")
    twice.read(TOPICS, "--describe --topic $-t", shows="Leader: 1\tReplicas: 1\tIsr: 1")
    twice.change(TOPICS, "--alter --topic $-t --partitions 4", shows="^0")
    twice.change(TOPICS, "--alter --topic $-t --partitions 3", shows="would not be an increase")
    twice.read(TOPICS, "--describe --topic $-t", shows="PartitionCount: 4")
    twice.read(TOPICS, "--describe", shows="PartitionCount: 3")
    twice.read(TOPICS, "--describe --topics-with-overrides --topic $.*", shows="retention.ms=100000")
    for which in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        twice.read(TOPICS, f"--describe --{which}-partitions --topic $-t", shows="^0")
    twice.change(TOPICS, "--delete --topic $-t", shows="^0")
    twice.read(TOPICS, "--describe --topic $-t", shows="does not exist")
    twice.change(TOPICS, "--delete --topic $-u", shows="^0")


def test_producer_and_consumer(twice):
    twice.change(TOPICS, "--create --topic $-r", shows="Created")
    keyed = "--reader-property parse.key=true --reader-property parse.headers=true"
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        text = f"h:1,g:2\tk\t{codec}\nh:\tl\ttwo\n"
        twice.change(PRODUCER, f"--topic $-r --compression-codec {codec} {keyed}", shows="^0\n$", text=text)
    twice.change(PRODUCER, "--topic $-r --request-required-acks 0", shows="^0\n$", text="none\n")
    twice.change(PRODUCER, "--topic $-absent --max-block-ms 1000", shows="^0\n$", text="x\n")
    shown = " ".join(f"--formatter-property print.{each}=true" for each in ("partition", "offset", "headers", "key"))
    all_of = "--from-beginning --max-messages 11 --timeout-ms 20000"
    twice.change(CONSUMER, f"--topic $-r {all_of} {shown}", shows="Partition:0\tOffset:9\th:\tl\ttwo\n")
    twice.change(CONSUMER, f"--topic $-r {all_of} --isolation-level read_committed", shows="Processed a total of 11")
    some = "--partition 0 --offset 8 --max-messages 2 --timeout-ms 20000"
    twice.change(CONSUMER, f"--topic $-r {some}", shows="\nzstd\ntwo\n")
    member = "--command-property group.protocol=consumer"
    twice.change(CONSUMER, f"--topic $-r --group $-k {all_of} {member}", shows="Processed a total of 11")


def test_offsets_records_and_sizes(twice):
    twice.change(TOPICS, "--create --topic $-o", shows="Created")
    twice.change(PRODUCER, "--topic $-o", shows="^0\n$", text="one\n")
    twice.read(OFFSETS, "--topic $-o --time max-timestamp", shows="without-o:0:0")
    twice.change(PRODUCER, "--topic $-o", shows="^0\n$", text="two\nthree\n")
    for time in ("latest", "earliest", "earliest-local", "latest-tiered", "0"):
        twice.read(OFFSETS, f"--topic $-o --time {time}", shows="without-o:0:|^0")
    twice.read(OFFSETS, "--topic-partitions $-.*:0-1 --exclude-internal-topics", shows="without-o:0:3")
    for place in ("without", "through"):
        file = twice.folder / f"{place}-offsets.json"
        rows = [{"topic": f"{place}-o", "partition": 0, "offset": 2}]
        file.write_text(json.dumps({"partitions": rows, "version": 1}))
    file = f"--offset-json-file {twice.folder}/$-offsets.json"
    twice.change("DeleteRecordsCommand", file, shows="low_watermark: 2")
    twice.read(OFFSETS, "--topic $-o --time earliest", shows="without-o:0:2")
    twice.read("LogDirsCommand", "--describe --broker-list 1,2 --topic-list $-o", shows="^1")


def test_groups_tool(twice):
    twice.change(TOPICS, "--create --topic $-g", shows="Created")
    twice.change(PRODUCER, "--topic $-g", shows="^0\n$", text="one\ntwo\nthree\n")
    read = "--topic $-g --from-beginning --max-messages 2 --timeout-ms 20000 --command-property max.poll.records=1"
    for group, kind in (("$-g", "classic"), ("$-h", "consumer")):
        twice.change(CONSUMER, f"{read} --group {group} --command-property group.protocol={kind}", shows="one\ntwo\n")
        about = f"--group {group}"
        for part in ("", "--offsets", "--members --verbose", "--state", "--offsets --verbose"):
            twice.read(GROUPS, f"--describe {about} {part}", shows="has no active members")
    twice.read(GROUPS, "--describe --group $-g --state", shows=r"127.0.0.1:\d+ +\(1\)")
    twice.read(GROUPS, "--list", shows="without-g", in_order=False)
    twice.read(GROUPS, "--list --state", shows=r"without-g +Empty", in_order=False)
    twice.read(GROUPS, "--list --type consumer", shows="without-h", in_order=False)
    twice.read(GROUPS, "--describe --all-groups", shows="without-h", in_order=False)
    twice.read("GroupsCommand", "--list", shows=r"without-h +Consumer +consumer", in_order=False)
    reset = "--reset-offsets --group $-g --topic $-g"
    for to in ("--to-earliest", "--shift-by 1", "--to-offset 9", "--to-current", "--by-duration PT1H", "--to-latest"):
        for how in ("--dry-run", "--execute", "--dry-run --export"):
            twice.change(GROUPS, f"{reset} {to} {how}", shows="without-g")
    twice.change(GROUPS, "--delete-offsets --group $-g --topic $-g", shows="Successful")
    twice.change(GROUPS, "--delete --group $-g --group $-h", shows="successful")
    twice.read(GROUPS, "--describe --group $-g", shows="GroupIdNotFoundException")
