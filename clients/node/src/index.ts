/** A Kafka cluster for each test, and all that a test may do with it. Begin at `withCluster`. */

export { Cluster, Snapshot, type ClusterOptions, type Difference, type Side, type TopicOptions } from "./cluster.js";
export { MomusAssertionError, MomusError } from "./control.js";
export {
  Fault, Faults, type DiskFilters, type FaultState, type Filters, type Kind, type LetterFilters, type RegistryWords, type Trigger,
  onCall, once, times, withProbability,
} from "./faults.js";
export { find, platformPackage } from "./find.js";
export { Groups, type Group, type GroupState, type Offsets, type Waiting } from "./groups.js";
export { Journal, type JournalEntry, type JournalFilters, type Limits } from "./journal.js";
export { Momus, momus, type StartOptions } from "./momus.js";
export type { Key, Message, Place, Reading, Received } from "./records.js";
export { Acls, Certificates, Users, type Acl } from "./security.js";
export { Brokers, Clock, type Broker, type Span } from "./steering.js";
export { VERSION } from "./version.js";
export { clusterFixture, withCluster } from "./with-cluster.js";
