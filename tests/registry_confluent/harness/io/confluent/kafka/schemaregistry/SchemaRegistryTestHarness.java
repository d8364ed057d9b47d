// What the tests ask of whatever starts a registry for them, instead of the interface of that name in the sources.
package io.confluent.kafka.schemaregistry;

import java.util.concurrent.atomic.AtomicInteger;

public interface SchemaRegistryTestHarness {
  AtomicInteger NEXT = new AtomicInteger(Integer.getInteger("portbase", 31300));

  RestApp getRestApp();

  Integer getSchemaRegistryPort();

  String getSchemaRegistryProtocol();

  default int choosePort() {
    return NEXT.getAndIncrement();
  }

  static int[] choosePorts(int count) {
    int[] found = new int[count];
    for (int i = 0; i < count; i++) {
      found[i] = NEXT.getAndIncrement();
    }
    return found;
  }
}
