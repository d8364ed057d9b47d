export default { test: { include: ["runners/vitest.spec.mjs"], globalSetup: "momus-kit/global-setup", testTimeout: 60_000 } };
