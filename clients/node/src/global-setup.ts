/**
 * One momus for all workers of a run: `globalSetup: "momus-kit/global-setup"` in the settings of vitest or jest. Without it each
 * worker starts one of its own.
 */

import { Momus } from "./momus.js";

export default async function setup(): Promise<() => Promise<void>> {
  if (process.env["MOMUS_ADDRESS"]) return async () => {};
  const started = await Momus.start();
  process.env["MOMUS_ADDRESS"] = started.address;
  return async () => {
    delete process.env["MOMUS_ADDRESS"];
    await started.close();
  };
}
