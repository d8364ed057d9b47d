"""Faults of groups and of logs themselves: owners and epochs, leaders that go back, records that are not there."""

from __future__ import annotations

from audit_fault_kit import CLEANED, CO, TOPIC_ID, Fault
from made_logs import STATES, Logs

from broker.coordinator.transactions.transaction import State
from pipeline.decode.records import uuid_text
from protocol.record_batch import build_batch


def two_owners(logs: Logs) -> Fault:
    log = f"{CO}-12"
    logs.consumer_group(log, "shared", 9)
    logs.member(log, "shared", "m1", 9, {0: 5, 1: 5}, TOPIC_ID)
    place = logs.member(log, "shared", "m2", 9, {1: 9, 2: 9}, TOPIC_ID)
    logs.member(log, "shared", "m1", 9, {0: 5}, TOPIC_ID)
    return Fault("two-owners", log, place, f"m2 got partition 1 of topic {uuid_text(TOPIC_ID)}, which m1 has")


def handed_over(logs: Logs) -> Fault:
    log = f"{CO}-13"
    logs.consumer_group(log, "handed", 9)
    logs.member(log, "handed", "m1", 9, {0: 5, 1: 5}, TOPIC_ID)
    logs.member(log, "handed", "m1", 10, {0: 5}, TOPIC_ID)
    logs.member(log, "handed", "m2", 10, {1: 10}, TOPIC_ID)
    gives = logs.member_record("handed", "m2", 11, {}, TOPIC_ID)
    takes = logs.member_record("handed", "m3", 11, {1: 11}, TOPIC_ID)
    logs.append(log, build_batch([gives, takes], timestamp_ms=logs.tick()), 2)  # at once
    return Fault(None)


def generation_back(logs: Logs) -> Fault:
    log = f"{CO}-14"
    logs.classic_group(log, "fell", 5)
    place = logs.classic_group(log, "fell", 3)
    return Fault("epoch-regression", log, place, "group fell went back from generation 5 to 3")


def group_epoch_back(logs: Logs) -> Fault:
    log = f"{CO}-15"
    logs.consumer_group(log, "fell2", 9)
    place = logs.consumer_group(log, "fell2", 8)
    return Fault("epoch-regression", log, place, "group fell2 went back from epoch 9 to 8")


def member_epoch_back(logs: Logs) -> Fault:
    log = f"{CO}-16"
    logs.consumer_group(log, "fell3", 9)
    logs.member(log, "fell3", "m7", 9, {0: 5}, TOPIC_ID)
    place = logs.member(log, "fell3", "m7", 8, {0: 5}, TOPIC_ID)
    return Fault("epoch-regression", log, place, "member m7 went back from epoch 9 to 8")


def began_again(logs: Logs) -> Fault:
    """A group and a member that were removed; a static member that has left."""
    log = f"{CO}-17"
    logs.classic_group(log, "anew", 5)
    logs.classic_group(log, "anew", None)
    logs.classic_group(log, "anew", 1)
    logs.consumer_group(log, "static", 9)
    logs.member(log, "static", "m8", 9, {0: 5}, TOPIC_ID)
    logs.member(log, "static", "m8", -2, {0: 5}, TOPIC_ID)
    logs.member(log, "static", "m8", 0, {0: 5}, TOPIC_ID)
    return Fault(None)


def leader_epoch_back(logs: Logs) -> Fault:
    log = "led-0"
    logs.data(log, 1, leader_epoch=3)
    logs.data(log, 1, leader_epoch=5)
    logs.data(log, 1, leader_epoch=5)
    place = logs.data(log, 1, leader_epoch=4)
    return Fault("leader-epoch-regression", log, place, "leader epoch 4 comes after 5")


def vanished(logs: Logs) -> Fault:
    log = f"{STATES}-5"
    logs.state(log, "gone", State.EMPTY, 66, 0)
    logs.state(log, "gone", State.ONGOING, 66, 0, {"vanished": [0]})
    place = logs.state(log, "gone", State.EMPTY, 66, 0)
    says = "gone of producer 66, epoch 0, was Ongoing, and then Empty"
    return Fault("transaction-vanished", log, place, says)


def overlapping(logs: Logs) -> Fault:
    log = "overlap-0"
    logs.data(log, 3)
    logs.ends[log] -= 1
    place = logs.data(log, 3)
    logs.data(log, 1)
    return Fault("overlapping-batches", log, place, "offsets 2 to 4 begin below 3")


def hole(logs: Logs) -> Fault:
    log = "hole-0"
    logs.skip(log, 2)  # removed by retention
    logs.data(log, 3)
    logs.skip(log, 1)
    place = logs.data(log, 3)
    return Fault("missing-records", log, place, "offsets 5 to 5 are not in the log, which nothing compacts")


def cleaned(logs: Logs) -> Fault:
    logs.data(CLEANED, 3)
    logs.skip(CLEANED, 2)
    logs.data(CLEANED, 3)
    return Fault(None)
