/** A client of a few bytes. */

import { connect } from "node:net";
import type { Cluster } from "../src/index.js";

/** Sends an ApiVersions v0 and waits for the answer, or the end of the connection. */
export function greet(cluster: Cluster): Promise<void> {
  const [host, port] = cluster.addresses[0]!.split(":");
  return new Promise((resolve) => {
    const client = connect(Number(port), host);
    client.on("connect", () => client.write(Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255])));
    client.on("data", () => client.destroy()).on("error", () => {}).on("close", () => resolve());
  });
}
