/** What each runner must do with a test of the kit: pass, fail for a fault that never acted, and use the momus of the run. */

import { momus, withCluster } from "momus-kit";

export function cases(test, expect) {
  test("a test has its cluster", withCluster({ topics: { orders: 1 } }, async (cluster) => {
    await cluster.produce("orders", "one coffee");
    expect((await cluster.consume("orders", 1))[0].value.toString()).toBe("one coffee");
  }));

  test("a fault that never acted fails a test", async () => {
    const failing = withCluster({}, async (cluster) => void (await cluster.faults.hold("EndTxn")));
    await expect(failing()).rejects.toThrow("never acted");
  });

  test("all workers use one momus", async () => {
    expect(process.env.MOMUS_ADDRESS).toBe((await momus()).address);
  });
}
