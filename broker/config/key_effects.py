"""What each of Kafka's settings does here: obeyed, without effect, or refused at the start (refused_keys.py).

The keys are all those of brokers and topics of Apache Kafka 4.4.0.
`python -m broker.supported` makes a table of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.config.config_values import format_value, parse_value
from broker.config.settings import BROKER_KEYS

_OBEYED = """
    advertised.listeners authorizer.class.name auto.create.topics.enable broker.id broker.rack cleanup.policy
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    connection.failed.authentication.delay.ms connections.max.idle.ms connections.max.reauth.ms
    controller.listener.names controller.quota.window.num controller.quota.window.size.seconds
    default.replication.factor delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
    delegation.token.max.lifetime.ms delegation.token.secret.key delete.retention.ms delete.topic.enable
    errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.group.enable
    errors.deadletterqueue.topic.name.prefix
    fetch.max.bytes flush.messages flush.ms group.consumer.assignment.interval.ms group.consumer.assignors
    group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms
    group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size
    group.consumer.migration.policy group.consumer.min.assignment.interval.ms
    group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
    group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
    group.coordinator.rebalance.protocols group.initial.rebalance.delay.ms group.max.session.timeout.ms
    group.max.size group.min.session.timeout.ms group.share.assignment.interval.ms
    group.share.delivery.count.limit group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms
    group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
    group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
    group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.max.share.sessions
    group.share.max.size group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
    group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
    group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
    group.share.partition.max.record.locks group.share.record.lock.duration.ms group.share.session.timeout.ms
    group.streams.acceptable.recovery.lag group.streams.assignors group.streams.max.warmup.replicas
    group.streams.min.task.offset.interval.ms group.streams.rack.aware.assignment.tags
    group.streams.task.offset.interval.ms
    group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms
    group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
    group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
    group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
    group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
    group.streams.num.standby.replicas group.streams.session.timeout.ms index.interval.bytes
    internal.segment.bytes listener.security.protocol.map listeners log.cleaner.backoff.ms
    log.cleaner.delete.retention.ms log.cleaner.enable log.cleaner.max.compaction.lag.ms
    log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleanup.policy log.dir log.dirs
    log.flush.interval.messages log.flush.interval.ms log.flush.offset.checkpoint.interval.ms
    log.flush.scheduler.interval.ms log.index.interval.bytes log.index.size.max.bytes
    log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms log.message.timestamp.type
    log.retention.bytes log.retention.check.interval.ms log.retention.hours log.retention.minutes
    log.retention.ms log.roll.hours log.roll.ms log.segment.bytes max.compaction.lag.ms
    max.connection.creation.rate max.connections max.connections.per.ip max.connections.per.ip.overrides
    max.decompressed.message.bytes
    max.incremental.fetch.session.cache.slots max.message.bytes max.request.partition.size.limit
    message.max.bytes message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.type
    min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas node.id num.partitions
    offset.metadata.max.bytes offsets.retention.check.interval.ms offsets.retention.minutes
    offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes
    producer.id.expiration.ms quota.window.num quota.window.size.seconds remote.storage.enable
    replica.lag.time.max.ms retention.bytes retention.ms sasl.enabled.mechanisms sasl.jaas.config
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.server.max.receive.size segment.bytes
    segment.index.bytes segment.ms share.coordinator.cold.partition.snapshot.interval.ms
    share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
    share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
    socket.request.max.bytes ssl.cipher.suites ssl.client.auth ssl.enabled.protocols ssl.key.password
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.keystore.type ssl.principal.mapping.rules ssl.truststore.certificates ssl.truststore.location
    ssl.truststore.password ssl.truststore.type transaction.max.timeout.ms
    transaction.partition.verification.enable transaction.remove.expired.transaction.cleanup.interval.ms
    transaction.state.log.num.partitions transaction.state.log.replication.factor
    transaction.state.log.segment.bytes transactional.id.expiration.ms unclean.leader.election.enable
"""

_WITHOUT_EFFECT = """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
    auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms broker.session.timeout.ms
    controlled.shutdown.enable controller.performance.always.log.threshold.ms
    controller.performance.sample.period.ms controller.quorum.append.linger.ms
    controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
    controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
    controller.quorum.voters controller.socket.timeout.ms cordoned.log.dirs
    delete.records.purgatory.purge.interval.requests early.start.listeners
    group.consumer.assignor.offload.enable group.share.assignor.offload.enable
    group.streams.assignor.offload.enable group.streams.num.warmup.replicas
    fetch.purgatory.purge.interval.requests file.delete.delay.ms follower.fetch.last.tiered.offset.enable
    follower.replication.throttled.replicas group.coordinator.append.linger.ms
    group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes group.coordinator.threads
    group.share.assignors group.share.dlq.manager.class.name group.share.persister.class.name
    initial.broker.registration.timeout.ms
    inter.broker.listener.name internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
    internal.metadata.max.batch.size.in.bytes kafka.metrics.polling.interval.secs kafka.metrics.reporters
    leader.imbalance.check.interval.seconds leader.replication.throttled.replicas local.retention.bytes
    local.retention.ms log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor
    log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads
    log.dir.failure.timeout.ms log.flush.start.offset.checkpoint.interval.ms log.initial.task.delay.ms
    log.local.retention.bytes log.local.retention.ms log.remote.copy.lag.bytes log.remote.copy.lag.ms
    log.preallocate log.roll.jitter.hours log.roll.jitter.ms
    log.segment.delete.delay.ms metadata.log.dir metadata.log.max.record.bytes.between.snapshots
    metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
    metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms num.io.threads
    num.network.threads num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads
    num.replica.fetchers offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.compression.codec
    preallocate process.roles producer.id.expiration.check.interval.ms
    producer.purgatory.purge.interval.requests queued.max.requests remote.fetch.max.wait.ms
    remote.copy.lag.bytes remote.copy.lag.ms
    remote.list.offsets.request.timeout.ms remote.log.copy.disable remote.log.delete.on.disable
    remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
    remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
    remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
    remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
    remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
    remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
    remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
    remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
    remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
    remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
    remote.log.storage.manager.class.name remote.log.storage.manager.class.path
    remote.log.storage.manager.impl.prefix remote.log.storage.system.enable replica.fetch.backoff.ms
    replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.selector.class
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds request.timeout.ms sasl.client.callback.handler.class
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
    security.inter.broker.protocol segment.jitter.ms server.max.startup.time.ms
    share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
    share.coordinator.load.buffer.size share.coordinator.state.topic.compression.codec share.coordinator.threads
    share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.listen.backlog.size
    socket.receive.buffer.bytes socket.send.buffer.bytes ssl.allow.dn.changes ssl.allow.san.changes
    ssl.endpoint.identification.algorithm ssl.keymanager.algorithm ssl.protocol ssl.secure.random.implementation
    ssl.trustmanager.algorithm telemetry.max.bytes transaction.abort.timed.out.transaction.cleanup.interval.ms
    transaction.state.log.load.buffer.size transaction.state.log.min.isr transaction.two.phase.commit.enable
    unclean.leader.election.interval.ms unstable.api.versions.enable
    unstable.feature.versions.enable
"""

OBEYED: Final = frozenset(_OBEYED.split())
# Threads, buffers, replication, quorum, tiered storage, quotas, metrics: this broker has none of them.
WITHOUT_EFFECT: Final = frozenset(_WITHOUT_EFFECT.split())


def set_without_effect(props: Mapping[str, str]) -> list[str]:
    """The keys among these settings that change nothing, and are set to something else than the default."""
    return [key for key, text in props.items() if key in WITHOUT_EFFECT and not _is_default(key, text)]


def _is_default(key: str, text: str) -> bool:
    row = BROKER_KEYS.get(key)
    if row is None:
        return False
    default = None if row[2] is None else parse_value(key, row[1], row[3], row[2])
    return format_value(parse_value(key, row[1], row[3], text)) == (format_value(default) or "")
