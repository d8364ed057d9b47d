"""`momus group seek|delete` and `momus topic alter` against a running broker, and what clients then see."""

from __future__ import annotations

import json

import pytest
from clientwork import seen_by
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka import TopicPartition as Place
from kafka.structs import OffsetAndMetadata
from momus_command import run_momus

from protocol.messages.share_group import ShareGroupHeartbeatRequest

HOUR_MS = 3_600_000
BASE_MS = 1_700_000_000_000


def commit(broker, group, offsets):
    consumer = KafkaConsumer(group_id=group, enable_auto_commit=False, **broker.client_config("kafka-python"))
    consumer.commit({Place(t, p): OffsetAndMetadata(offset, "", -1) for (t, p), offset in offsets.items()})
    consumer.close()


@pytest.fixture
def seek(trio, name):
    """Two partitions with ten records an hour apart each; the group has committed 4 and 5."""
    trio.create_topic(name, partitions=2)
    for partition in (0, 1):
        rows = [{"value": str(n), "timestamp_ms": BASE_MS + n * HOUR_MS, "partition": partition} for n in range(10)]
        _produce(trio, name, rows)
    commit(trio, name, {(name, 0): 4, (name, 1): 5})

    def move(*words: str, code: int = 0) -> str:
        done = run_momus("group", "seek", name, "-b", trio.bootstrap_servers, *words)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return move


def _produce(broker, topic, rows):
    lines = "\n".join(map(json.dumps, rows))
    assert run_momus("produce", "-t", topic, "--json", "-b", broker.bootstrap_servers, data=lines).returncode == 0


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 10]),
        (("--to-current",), [4, 5]),
        (("--to-offset", "7"), [7, 7]),
        (("--to-offset", "70"), [10, 10]),
        (("--shift-by", "2"), [6, 7]),
        (("--shift-by", "-5"), [0, 0]),
        (("--to-datetime", "2023-11-15T01:00:00.000"), [3, 3]),
        (("--by-duration", "PT1H"), [10, 10]),
        (("--by-duration", "P36500D"), [0, 0]),
    ],
)
def test_word_moves_what_the_group_has_committed(trio, name, seek, words, offsets):
    shown = json.loads(seek("--all-topics", *words, "--dry-run", "--json"))
    assert [row["offset"] for row in shown] == offsets
    assert trio.committed(name) == {(name, 0): 4, (name, 1): 5}
    seek("--all-topics", *words)
    assert trio.committed(name) == {(name, 0): offsets[0], (name, 1): offsets[1]}


def test_scope_of_some_partitions_leaves_the_others(trio, name, seek):
    seek("-t", f"{name}:1", "--to-earliest")
    assert trio.committed(name) == {(name, 0): 4, (name, 1): 0}
    assert "has no partition 7, but 0 to 1" in seek("-t", f"{name}:7", "--to-earliest", code=1)


def test_exported_plan_is_read_back_from_a_file(trio, name, seek, tmp_path):
    file = tmp_path / "plan.csv"
    file.write_text(seek("--all-topics", "--to-offset", "8", "--export", "--dry-run"))
    assert file.read_text() == f"{name},0,8\n{name},1,8\n"
    seek("--from-file", str(file))
    assert trio.committed(name) == {(name, 0): 8, (name, 1): 8}


def test_consumer_goes_on_where_its_group_was_sent(trio, name, seek):
    seek("--all-topics", "--to-offset", "9")
    consumer = KafkaConsumer(name, group_id=name, **trio.client_config("kafka-python"))
    seen_by(consumer, name)
    assert [next(consumer).offset for _ in range(2)] == [9, 9]
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_with_members_is_refused_and_nothing_moves(trio, name, seek, protocol):
    member = Consumer(
        {**trio.client_config("confluent"), "group.id": name, "group.protocol": protocol, "enable.auto.commit": False}
    )
    member.subscribe([name])
    while not member.assignment():
        member.poll(0.1)
    assert f"group {name} is Stable: stop its members first" in seek("--all-topics", "--to-earliest", code=1)
    refused = run_momus("group", "delete", name, "-b", trio.bootstrap_servers)
    assert (refused.returncode, "NON_EMPTY_GROUP" in refused.stderr) == (1, True)
    member.close()
    assert trio.committed(name) == {(name, 0): 4, (name, 1): 5}


@pytest.mark.parametrize("words", [("-t", "{t}"), ("-t", "{t}:0")])
def test_group_that_has_committed_nothing_begins_where_it_is_sent(trio, name, seek, words):
    group = name + "-new"
    words = tuple(word.replace("{t}", name) for word in words)
    assert (
        "nothing is committed"
        in run_momus("group", "seek", group, *words, "--shift-by", "1", "-b", trio.bootstrap_servers).stderr
    )
    assert run_momus("group", "seek", group, *words, "--to-offset", "3", "-b", trio.bootstrap_servers).returncode == 0
    assert trio.committed(group)[name, 0] == 3


def test_all_groups_moves_the_empty_ones(broker, name, wires):
    broker.create_topic(name)
    broker.produce(name, "one")
    for epoch in (0, -1):  # a share group without members, which has no committed offsets
        beat = ShareGroupHeartbeatRequest(
            group_id="s", member_id="A" * 22, member_epoch=epoch, subscribed_topic_names=[name] if not epoch else None
        )
        assert wires(broker.bootstrap_servers).call(beat, 1).error_code == 0
    for group in ("a", "b"):
        commit(broker, group, {(name, 0): 1})
    member = Consumer({**broker.client_config("confluent"), "group.id": "busy"})
    member.subscribe([name])
    while not member.assignment():
        member.poll(0.1)
    moved = run_momus(
        "group", "seek", "--all-groups", "--all-topics", "--to-earliest", "--export", "-b", broker.bootstrap_servers
    )
    assert moved.stdout == f"a,{name},0,0\nb,{name},0,0\n"
    assert moved.returncode == 0
    member.close()
    assert [broker.committed(group) for group in ("a", "b")] == [{(name, 0): 0}] * 2


def test_deleted_group_is_gone(trio, name, seek):
    assert run_momus("group", "delete", name, "-b", trio.bootstrap_servers).stdout == f"deleted {name}\n"
    admin = AdminClient(trio.client_config("confluent"))
    request = ConsumerGroupTopicPartitions(name, [TopicPartition(name, 0)])
    (found,) = admin.list_consumer_group_offsets([request])[name].result().topic_partitions
    assert found.offset == -1001
    again = run_momus("group", "delete", name, "-b", trio.bootstrap_servers)
    assert (again.returncode, "GROUP_ID_NOT_FOUND" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--all-topics",), "where to? One of --to-earliest"),
        (("--to-earliest",), "which partitions?"),
        (("--all-topics", "--to-earliest", "--to-latest"), "one reset, not 2: --to-earliest, --to-latest"),
        (("--all-topics", "-t", "x", "--to-latest"), "--topic or --all-topics"),
        (("-t", "x:y", "--to-latest"), "'x:y' is not TOPIC"),
        (("--all-topics", "--by-duration", "7d"), "'7d' is no duration"),
        (("--all-topics", "--to-datetime", "noon"), "'noon' is no time"),
        (("--all-topics", "--to-latest", "--dry-run", "--execute"), "not both"),
        (("--all-groups", "--all-topics", "--to-latest"), "name groups, or say --all-groups"),
    ],
)
def test_words_that_are_not_understood_exit_2_with_the_reason(words, said):
    done = run_momus("group", "seek", "g", *words)
    assert done.returncode == 2
    assert said in done.stderr


# ---- topic alter


def test_altered_topic_has_more_partitions_and_other_settings(trio, name):
    trio.create_topic(name, partitions=1, config={"cleanup.policy": "compact"})
    address = ("-b", trio.bootstrap_servers)
    tried = run_momus("topic", "alter", name, "-p", "3", "-c", "retention.ms=1000", "--dry-run", *address)
    assert tried.stdout == f"could alter {name}\n"
    assert _described(name, address) == (1, {"cleanup.policy": "compact"})
    done = run_momus(
        "topic", "alter", name, "-p", "3", "-c", "retention.ms=1000", "--unset", "cleanup.policy", *address
    )
    assert (done.returncode, done.stdout) == (0, f"altered {name}\n")
    assert _described(name, address) == (3, {"retention.ms": "1000"})


def _described(name, address):
    (found,) = json.loads(run_momus("topic", "describe", name, "--json", *address).stdout)
    return len(found["partitions"]), found["configs"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-p", "1"), 1, "INVALID_PARTITIONS"),
        (("-c", "retention.sm=1"), 1, "Did you mean retention.ms?"),
        (("-c", "retention.ms=soon"), 1, "INVALID_CONFIG"),
        ((), 2, "change what?"),
        (("-c", "retention.ms"), 2, "is not KEY=VALUE"),
        (("-p", "0"), 2, "0 is not in the range"),
    ],
)
def test_change_that_cannot_be_made_is_told(trio, name, words, code, said):
    trio.create_topic(name, partitions=2)
    done = run_momus("topic", "alter", name, *words, "-b", trio.bootstrap_servers)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_topic_whose_settings_are_refused_does_not_grow(trio, name):
    trio.create_topic(name, partitions=1)
    address = ("-b", trio.bootstrap_servers)
    assert run_momus("topic", "alter", name, "-p", "3", "-c", "retention.ms=soon", *address).returncode == 1
    assert _described(name, address) == (1, {})
