// The registry of one test: momus (-Dmomus=PROGRAM), or Confluent's in this process before the Kafka at -Dkafka.
package io.confluent.kafka.schemaregistry;

import io.confluent.kafka.schemaregistry.client.rest.RestService;
import io.confluent.kafka.schemaregistry.rest.SchemaRegistryRestApplication;
import io.confluent.kafka.schemaregistry.storage.SchemaRegistry;
import io.confluent.kafka.schemaregistry.storage.SchemaRegistryIdentity;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.eclipse.jetty.server.Server;
import org.mockito.Mockito;

public class RestApp {
  private static final String MOMUS = System.getProperty("momus");
  private static final String READY = "momus ready ";
  private static final String SERVES = "momus registry ";
  private static int number = 0;

  public final Properties prop = new Properties();
  public final Properties broker = new Properties();  // settings of its Kafka
  public RestService restClient;
  public SchemaRegistryRestApplication restApp;
  public Server restServer;
  public String restConnect;
  public String brokers = System.getProperty("kafka", "");  // momus is its own Kafka
  private final String level;
  private Process momus;

  public RestApp(int port, String zk, String topic) {
    this(port, zk, null, topic, "NONE", true, null);
  }

  public RestApp(int port, String zk, String topic, String level, Properties given) {
    this(port, zk, null, topic, level, true, given);
  }

  public RestApp(int port, String zk, String topic, String level, boolean leads, Properties given) {
    this(port, zk, null, topic, level, leads, given);
  }

  public RestApp(int port, String zk, String brokers, String topic, String level, boolean leads, Properties given) {
    if (given != null) {
      prop.putAll(given);
    }
    this.level = level;
    String own = ProcessHandle.current().pid() + "-" + number++;
    prop.setProperty("port", "" + port);
    prop.setProperty("kafkastore.bootstrap.servers", "PLAINTEXT://" + System.getProperty("kafka", ""));
    prop.put("kafkastore.topic", topic + "-" + own);
    prop.put("schema.registry.group.id", "registry-" + own);
    prop.put("schema.compatibility.level", level);
    prop.put("leader.eligibility", leads);
    prop.put("host.name", "127.0.0.1");
  }

  public void start() throws Exception {
    if (MOMUS != null) {
      startMomus();
      return;
    }
    makeTopic();
    restApp = new SchemaRegistryRestApplication(prop);
    restServer = restApp.createServer();
    restServer.start();
    restApp.postServerStart();
    restConnect = restServer.getURI().toString().replaceAll("/$", "");
    restClient = new RestService(restConnect);
  }

  /** The Kafka is there already, so what is set of it is set of the registry's topic. */
  private void makeTopic() throws Exception {
    if (!broker.containsKey("message.max.bytes")) {
      return;
    }
    Map<String, String> configs = Map.of("cleanup.policy", "compact", "max.message.bytes",
        broker.getProperty("message.max.bytes"));
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", System.getProperty("kafka", "")))) {
      NewTopic topic = new NewTopic(prop.getProperty("kafkastore.topic"), 1, (short) 1).configs(configs);
      admin.createTopics(List.of(topic)).all().get();
    }
  }

  private void startMomus() throws Exception {
    File data = Files.createTempDirectory("registry").toFile();
    List<String> words = new ArrayList<>(List.of(MOMUS, "serve", "--listen", "127.0.0.1:0", "--registry", "127.0.0.1:0",
        "--registry-as", "8.0", "-d", data.getPath(), "--flush", "memory"));
    for (String name : broker.stringPropertyNames()) {
      words.addAll(List.of("--set", name + "=" + broker.getProperty(name)));
    }
    ProcessBuilder builder = new ProcessBuilder(words);
    builder.redirectError(ProcessBuilder.Redirect.DISCARD);
    momus = builder.start();
    BufferedReader told = new BufferedReader(new InputStreamReader(momus.getInputStream()));
    for (String line = told.readLine(); line != null; line = told.readLine()) {
      if (line.startsWith(READY)) {
        brokers = line.substring(READY.length()).trim();
      } else if (line.startsWith(SERVES)) {
        restConnect = line.substring(SERVES.length()).trim();
        break;
      }
    }
    restClient = new RestService(restConnect);
    if (!level.equals("BACKWARD")) {  // a setting of the server there
      restClient.updateCompatibility(level, null);
      restClient.updateCompatibility(level, ":.__GLOBAL:");
    }
  }

  public void stop() throws Exception {
    if (restClient != null) {
      restClient.close();
      restClient = null;
    }
    if (momus != null) {
      momus.destroy();
      momus.waitFor();
    }
    if (restServer != null) {
      try {
        restServer.stop();
      } catch (TimeoutException busy) {  // a connection was still open, and the rest was left as it was
        restApp.onShutdown();
      }
      restServer.join();
    }
  }

  public void addConfigs(Properties given) {
    prop.putAll(given);
  }

  public boolean isLeader() {
    return restApp.schemaRegistry().isLeader();
  }

  public void setLeader(SchemaRegistryIdentity identity) throws Exception {
    restApp.schemaRegistry().setLeader(identity);
  }

  public SchemaRegistryIdentity myIdentity() {
    return restApp.schemaRegistry().myIdentity();
  }

  public SchemaRegistryIdentity leaderIdentity() {
    return restApp.schemaRegistry().leaderIdentity();
  }

  public SchemaRegistry schemaRegistry() {
    return MOMUS != null ? Mockito.mock(SchemaRegistry.class) : restApp.schemaRegistry();
  }
}
