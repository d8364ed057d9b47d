import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The admin client: topics, configs, groups, offsets and records, made, seen, changed and deleted. */
final class Admins {
    private interface Work {
        void run(Admin admin, Checks.Cluster cluster, String name) throws Exception;
    }

    static void register() {
        put(Checks.ON_ONE, "topic-is-created-described-grown-and-deleted", Admins::topics);
        put(Checks.ON_ONE, "topics-that-cannot-be-are-refused", Admins::refusals);
        put(Checks.ON_ONE, "topic-configs-are-set-appended-and-deleted", Admins::configs);
        put(Checks.ON_ONE, "cluster-features-and-log-dirs-are-described", Admins::cluster);
        put(Checks.ON_ONE, "offsets-are-listed-and-records-deleted", Admins::offsets);
        put(Checks.ON_ONE, "running-group-is-described-and-protected", Admins::runningGroup);
        put(Checks.ON_ONE, "offsets-of-idle-groups-are-altered-listed-and-deleted", Admins::idleGroups);
        put(Checks.ON_THREE, "leaders-and-coordinators-spread-over-three-brokers", Admins::three);
    }

    private static void put(Map<String, Checks.Check> checks, String name, Work work) {
        checks.put(name, (cluster, topic) -> {
            try (Admin admin = Admin.create(cluster.with("default.api.timeout.ms", 120_000, "request.timeout.ms", 60_000))) {
                work.run(admin, cluster, topic);
            }
        });
    }

    private static TopicDescription describe(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private static void topics(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        var created = admin.createTopics(List.of(
            new NewTopic(name, Optional.of(3), Optional.empty()).configs(Map.of("retention.ms", "5000"))));
        created.all().get();
        Checks.equal(3, created.numPartitions(name).get());
        Checks.equal("5000", created.config(name).get().get("retention.ms").value());
        Uuid id = created.topicId(name).get();
        Checks.equal(id, describe(admin, name).topicId());
        Checks.equal(1, describe(admin, name).partitions().get(2).isr().size());
        admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5))).all().get();
        Checks.equal(5, admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id)
            .partitions().size());
        admin.deleteTopics(List.of(name)).all().get();
        Checks.that(!admin.listTopics().names().get().contains(name), "the topic is gone");
        Checks.equal(UnknownTopicIdException.class, Checks.refusal(
            () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get()));
        admin.createTopics(List.of(new NewTopic(name, Map.of(0, List.of(1), 1, List.of(1))))).all().get();
        Checks.equal(2, describe(admin, name).partitions().size());
    }

    private static void refusals(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, 2, (short) 1))).all().get();
        Map<NewTopic, Class<?>> refused = Map.of(
            new NewTopic(name, 2, (short) 1), TopicExistsException.class,
            new NewTopic("a b", 2, (short) 1), InvalidTopicException.class,
            new NewTopic(name + "1", 0, (short) 1), InvalidPartitionsException.class,
            new NewTopic(name + "2", 1, (short) 4), InvalidReplicationFactorException.class,
            new NewTopic(name + "3", 1, (short) 1).configs(Map.of("retention.ms", "soon")),
            InvalidConfigurationException.class);
        for (var each : refused.entrySet()) {
            Checks.equal(each.getValue(), Checks.refusal(() -> admin.createTopics(List.of(each.getKey())).all().get()));
        }
        Checks.equal(InvalidPartitionsException.class, Checks.refusal(
            () -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(1))).all().get()));
        Checks.equal(UnknownTopicOrPartitionException.class, Checks.refusal(
            () -> admin.deleteTopics(List.of(name + "1")).all().get()));
        Checks.equal(UnknownTopicOrPartitionException.class, Checks.refusal(() -> describe(admin, name + "1")));
    }

    private static void configs(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, 1, (short) 1).configs(Map.of("retention.ms", "5000"))))
            .all().get();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        Collection<AlterConfigOp> changes = List.of(
            new AlterConfigOp(new ConfigEntry("max.message.bytes", "1000"), OpType.SET),
            new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), OpType.APPEND),
            new AlterConfigOp(new ConfigEntry("retention.ms", null), OpType.DELETE));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
        Config found = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        Checks.equal("1000", found.get("max.message.bytes").value());
        Checks.equal("delete,compact", found.get("cleanup.policy").value());
        Checks.equal("604800000", found.get("retention.ms").value());
        Checks.equal(ConfigEntry.ConfigSource.DEFAULT_CONFIG, found.get("retention.ms").source());
        Checks.equal(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, found.get("max.message.bytes").source());
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        Checks.equal("0", admin.describeConfigs(List.of(broker)).all().get().get(broker)
            .get("group.initial.rebalance.delay.ms").value());
    }

    private static void cluster(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        try (var producer = Records.producer(cluster)) {
            producer.send(new ProducerRecord<>(name, new byte[1000])).get();
        }
        var described = admin.describeCluster();
        Checks.equal(22, described.clusterId().get().length());
        Checks.equal(1, described.controller().get().id());
        Checks.equal(List.of(1), described.nodes().get().stream().map(Node::id).toList());
        Checks.that(admin.describeFeatures().featureMetadata().get().finalizedFeatures()
            .containsKey("metadata.version"), "metadata.version is finalized");
        var replicas = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values().iterator().next()
            .replicaInfos();
        Checks.that(replicas.get(new TopicPartition(name, 0)).size() > 1000, "the partition has its size");
    }

    private static void offsets(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        try (var producer = Records.producer(cluster)) {
            for (long time : new long[] {1000, 3000, 2000}) {
                producer.send(new ProducerRecord<>(name, 0, time, null, Records.bytes("x"))).get();
            }
        }
        TopicPartition partition = new TopicPartition(name, 0);
        Map<OffsetSpec, Long> asked = Map.of(OffsetSpec.earliest(), 0L, OffsetSpec.latest(), 3L,
            OffsetSpec.maxTimestamp(), 1L, OffsetSpec.forTimestamp(1500), 1L, OffsetSpec.forTimestamp(4000), -1L);
        for (var each : asked.entrySet()) {
            Checks.equal(each.getValue(),
                admin.listOffsets(Map.of(partition, each.getKey())).partitionResult(partition).get().offset());
        }
        Checks.equal(2L, admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(2)))
            .lowWatermarks().get(partition).get().lowWatermark());
        Checks.equal(OffsetOutOfRangeException.class, Checks.refusal(
            () -> admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(9))).all().get()));
        Checks.equal(2L,
            admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).partitionResult(partition).get().offset());
    }

    private static boolean listed(Admin admin, String group) throws Exception {
        return admin.listConsumerGroups().all().get().stream().anyMatch(each -> each.groupId().equals(group));
    }

    private static void runningGroup(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 2, Map.of());
        var member = new Groups.Member(cluster, name, "client.id", "me");
        Checks.until(() -> member.assigned.size() == 2, "the member owns the topic");
        ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
        Checks.equal("Stable", described.state().toString());
        Checks.equal("range", described.partitionAssignor());
        Checks.equal(1, described.coordinator().id());
        var seen = described.members().iterator().next();
        Checks.equal("me", seen.clientId());
        Checks.equal("/127.0.0.1", seen.host());
        Checks.equal(2, seen.assignment().topicPartitions().size());
        Checks.that(listed(admin, name), "the group is listed");
        Checks.equal(GroupNotEmptyException.class,
            Checks.refusal(() -> admin.deleteConsumerGroups(List.of(name)).all().get()));
        Checks.equal(GroupSubscribedToTopicException.class, Checks.refusal(
            () -> admin.deleteConsumerGroupOffsets(name, Set.of(new TopicPartition(name, 0))).all().get()));
        member.leave();
        admin.deleteConsumerGroups(List.of(name)).all().get();
        Checks.that(!listed(admin, name), "the group is gone");
        Checks.equal(GroupIdNotFoundException.class,
            Checks.refusal(() -> admin.deleteConsumerGroups(List.of(name)).all().get()));
    }

    private static void idleGroups(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 2, Map.of());
        TopicPartition first = new TopicPartition(name, 0);
        TopicPartition second = new TopicPartition(name, 1);
        Map<TopicPartition, OffsetAndMetadata> told =
            Map.of(first, new OffsetAndMetadata(3, "note"), second, new OffsetAndMetadata(4));
        admin.alterConsumerGroupOffsets(name, told).all().get();
        String unknown = name + "-unknown";
        var found = admin.listConsumerGroupOffsets(Map.of(name, new ListConsumerGroupOffsetsSpec(),
            unknown, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(first)))).all().get();
        Checks.equal(told, found.get(name));
        Checks.equal(null, found.get(unknown).get(first));
        admin.deleteConsumerGroupOffsets(name, Set.of(second)).all().get();
        Checks.equal(Map.of(0, 3L), Groups.committed(cluster, name));
        Checks.equal("Empty",
            admin.describeConsumerGroups(List.of(name)).all().get().get(name).state().toString());
    }

    private static void three(Admin admin, Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 6, Map.of());
        Checks.equal(3, admin.describeCluster().nodes().get().size());
        Map<Integer, Long> leaders = describe(admin, name).partitions().stream()
            .collect(Collectors.groupingBy(partition -> partition.leader().id(), Collectors.counting()));
        Checks.equal(3, leaders.size());
        Checks.equal(Set.of(2L), Set.copyOf(leaders.values()));
        List<String> groups = IntStream.range(0, 12).mapToObj(number -> name + "-" + number).toList();
        for (String group : groups) {
            Groups.commit(cluster, group, name, 7);
        }
        var described = admin.describeConsumerGroups(groups).all().get();
        Checks.equal(3L, described.values().stream().map(group -> group.coordinator().id()).distinct().count());
        Checks.that(listed(admin, groups.get(5)), "groups of all brokers are listed");
        admin.deleteConsumerGroups(groups).all().get();
        try (var producer = Records.producer(cluster)) {
            for (int partition = 0; partition < 6; partition++) {
                producer.send(new ProducerRecord<>(name, partition, null, Records.bytes("x"))).get();
            }
        }
    }
}
