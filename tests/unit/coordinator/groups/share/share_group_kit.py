"""Share groups as requests name them."""

from __future__ import annotations

from unit.coordinator.share.kit import GROUP

from protocol.messages.share_group import ShareGroupDescribeRequest


def describe(world, group=GROUP):
    return world.client.call(ShareGroupDescribeRequest(group_ids=[group]), 1).groups[0]
