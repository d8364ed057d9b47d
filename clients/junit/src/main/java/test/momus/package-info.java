/** A Kafka cluster for each test, and all that a test may do with it. Begin at {@link test.momus.MomusCluster}. */
package test.momus;
