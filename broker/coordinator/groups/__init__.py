"""Groups of every kind: their state, how requests and timers change it, and how it is rebuilt from the log.

classic/    groups of the classic protocol (JoinGroup, SyncGroup, Heartbeat)
consumer/   groups of the consumer protocol (KIP-848), with classic members and migration between both protocols
streams/    groups of the streams protocol (KIP-1071)
share/      groups of the share protocol (KIP-932)
common/     what these share: Outcome, and what consumer, streams and share groups have alike
assignors/  the assignors of consumer and share groups

GroupMachine, in machine.py, holds the groups of one shard and knows all of these rooms; none of them imports it.
offset_expiry.py decides which committed offsets have expired. The rooms may import protocol/, broker.config, the types
of broker.cluster.metadata, and facts, records, result and placement of broker.coordinator; machine.py and
offset_expiry.py also broker.coordinator.offsets. Start with classic/group.py, then common/group.py.
"""
