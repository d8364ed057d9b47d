"""`momus decode`: what it takes for frames, what it shows, and its exit codes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momus.cli.main import cli
from protocol.codegen import codec
from protocol.header import encode_request_header, encode_response_header
from protocol.messages.cluster import MetadataResponse
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

ROW = OffsetCommitRequestPartition(partition_index=1, committed_offset=500)
COMMIT = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="orders", partitions=[ROW])])
FRAME = encode_request_header(8, 8, 7, "kcat") + codec(OffsetCommitRequest, 8).encode(COMMIT)
SIZED = len(FRAME).to_bytes(4, "big") + FRAME
TREE = """\
OffsetCommitRequest v8, 52 bytes
 0  header
 0    api_key 8 OFFSET_COMMIT
 2    api_version 8
 4    correlation_id 7
 8    client_id 'kcat'
14    tagged_fields (none)
15  body
15    group_id 'g'
17    generation_id_or_member_epoch -1
21    member_id ''
22    group_instance_id null
23    topics (1)
24      [0]
24        name 'orders'
31        partitions (1)
32          [0]
32            partition_index 1
36            committed_offset 500
44            committed_leader_epoch -1
48            committed_metadata ''
49            tagged_fields (none)
50        tagged_fields (none)
51    tagged_fields (none)
"""


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["decode", *arguments], input=stdin)
    return done.exit_code, done.output


@pytest.mark.parametrize("data", [FRAME, SIZED], ids=["bare", "sized"])
def test_frame_is_shown_however_it_is_given(data, tmp_path):
    raw, text = tmp_path / "frame.bin", tmp_path / "frame.hex"
    raw.write_bytes(data)
    text.write_text(data.hex(" ", 4) + "\n")
    for arguments in ([data.hex()], data.hex(" ").split(), [data.hex(":")], [str(raw)], [str(text)]):
        assert run(*arguments) == (0, TREE)
    assert run("-", stdin=data) == (0, TREE)


def test_several_frames_behind_their_sizes_are_shown_one_after_another():
    code, text = run((SIZED + SIZED).hex())
    assert code == 0
    assert text == f"frame 1, at byte 0 of the input\n{TREE}\nframe 2, at byte {len(SIZED)} of the input\n{TREE}"


@pytest.mark.parametrize("data", [FRAME, SIZED], ids=["bare", "sized"])
def test_malformed_frame_is_shown_up_to_its_fault_and_exits_1(data):
    code, text = run(data[:-10].hex())
    read = TREE.replace("52 bytes", "42 bytes").replace(" (1)", "").partition("36  ")[0]
    fault = "topics[0].partitions[0].committed_offset at byte 36: expected 8 bytes, 6 are left"
    assert code == 1
    assert text == f"{read}36            committed_offset ?\nmalformed: OffsetCommitRequest v8: {fault}\n"


def test_size_that_is_larger_than_what_follows_is_malformed():
    code, text = run("--sized", ((99).to_bytes(4, "big") + FRAME).hex())
    assert code == 1
    assert (
        text
        == f"{TREE}malformed: OffsetCommitRequest v8: size at byte -4: expected 0 to 52, found 99, 52 bytes follow\n"
    )


def test_bytes_after_the_message_are_counted():
    assert run(FRAME.hex() + "0102") == (0, TREE.replace("52 bytes", "54 bytes") + "52  2 bytes after the message\n")


@pytest.mark.parametrize("api", ["3:12", "Metadata:12", "METADATA:12"])
def test_response_is_shown_for_the_api_it_answers(api):
    data = encode_response_header(3, 12, 9) + codec(MetadataResponse, 12).encode(MetadataResponse(cluster_id="here"))
    code, text = run("--response", api, data.hex())
    assert code == 0
    assert text.startswith("MetadataResponse v12, ")
    assert "cluster_id 'here'" in text


def test_json_has_types_positions_values_and_the_fault():
    code, text = run("--json", FRAME[:-10].hex())
    assert code == 1
    (tree,) = json.loads(text)
    assert (tree["message"], tree["bytes"], tree["position"]) == ("OffsetCommitRequest v8", 42, 0)
    assert tree["body"][0] == {"name": "group_id", "type": "String", "start": 15, "end": 17, "value": "g"}
    partition = tree["body"][-1]["fields"][0]["fields"][1]["fields"][0]
    assert partition["fields"][0] == {"name": "partition_index", "type": "Int32", "start": 32, "end": 36, "value": 1}
    assert tree["fault"]["path"] == "topics[0].partitions[0].committed_offset"
    assert (tree["fault"]["position"], tree["fault"]["found"]) == (36, "6 are left")


@pytest.mark.parametrize("arguments", [["zz"], ["123"], ["00", "--response", "Nothing:1"], ["00", "--response", "3"]])
def test_what_is_no_frame_or_no_api_is_bad_usage(arguments):
    assert run(*arguments)[0] == 2
