import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Copies "in" to "out", exactly once. Arguments: broker, folder of checkpoints, and the checkpoint to go on from. */
public class Job {
    private static final int CHECKPOINT_MS = 4000;

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, "file://" + arguments[1]);
        settings.set(CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
                ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
        if (arguments.length > 2) {
            settings.set(StateRecoveryOptions.SAVEPOINT_PATH, "file://" + arguments[2]);
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        environment.enableCheckpointing(CHECKPOINT_MS, CheckpointingMode.EXACTLY_ONCE);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(arguments[0])
                .setTopics("in")
                .setGroupId("job")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(arguments[0])
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("job")
                .setProperty("transaction.timeout.ms", "60000")
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic("out")
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "in").uid("source").sinkTo(sink).uid("sink");
        environment.execute("copy");
    }
}
