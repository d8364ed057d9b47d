// Starts a registry for each test; the sources' own starts a Kafka too, whose test jars are not published.
package io.confluent.kafka.schemaregistry;

import java.util.Properties;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;

public class ClusterTestHarness implements SchemaRegistryTestHarness {
  public static final String KAFKASTORE_TOPIC = "_schemas";
  public static final int DEFAULT_NUM_BROKERS = 1;

  protected String compatibilityType;
  protected Properties schemaRegistryProperties = new Properties();
  protected Integer schemaRegistryPort;
  protected RestApp restApp;
  protected String brokerList = System.getProperty("kafka", "");
  private final boolean setup;

  public ClusterTestHarness() {
    this(1);
  }

  public ClusterTestHarness(int brokers) {
    this(brokers, false);
  }

  public ClusterTestHarness(int brokers, boolean setup) {
    this(brokers, setup, "NONE");
  }

  public ClusterTestHarness(int brokers, boolean setup, String compatibility) {
    this.setup = setup;
    this.compatibilityType = compatibility;
  }

  @BeforeEach
  public void setUpTest(TestInfo info) throws Exception {
    setUp();
  }

  public void setUp() throws Exception {
    if (!setup) {
      return;
    }
    Properties given = getSchemaRegistryProperties();
    if (!given.containsKey("listeners")) {
      given.put("listeners", getSchemaRegistryProtocol() + "://127.0.0.1:" + getSchemaRegistryPort());
    }
    given.put("mode.mutability", true);
    given.put("jetty.legacy.uri.compliance", true);
    given.put("shutdown.graceful.ms", "10");
    restApp = new RestApp(getSchemaRegistryPort(), null, brokerList, KAFKASTORE_TOPIC, compatibilityType, true, given);
    injectProperties(restApp.broker);
    restApp.start();
    brokerList = restApp.brokers;
  }

  public Properties getSchemaRegistryProperties() throws Exception {
    return schemaRegistryProperties;
  }

  public void injectSchemaRegistryProperties(Properties given) {
    schemaRegistryProperties.putAll(given);
  }

  public void injectProperties(Properties given) {
  }

  public String getSchemaRegistryProtocol() {
    return "http";
  }

  public String getBrokerList() {
    return brokerList;
  }

  public RestApp getRestApp() {
    return restApp;
  }

  public Integer getSchemaRegistryPort() {
    if (schemaRegistryPort == null) {
      schemaRegistryPort = choosePort();
    }
    return schemaRegistryPort;
  }

  @AfterEach
  public void tearDown() throws Exception {
    if (restApp != null) {
      restApp.stop();
    }
  }
}
