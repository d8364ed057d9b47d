"""Consumer groups that an administrator does not want."""

from __future__ import annotations

from consumer_kit import Groups

from protocol.errors import ErrorCode as E
from protocol.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest


def test_protocol_that_is_not_listed_is_unsupported():
    g = Groups({"t": 1}, group_coordinator_rebalance_protocols="classic")
    assert g.member().join().error_code == E.UNSUPPORTED_VERSION
    assert g.describe().error_code == E.UNSUPPORTED_VERSION


def test_feature_at_level_zero_is_unsupported():
    g = Groups({"t": 1})
    update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    answer = g.client.call(UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[update]), 1)
    assert answer.error_code == 0, answer.error_message
    assert g.member().join().error_code == E.UNSUPPORTED_VERSION
