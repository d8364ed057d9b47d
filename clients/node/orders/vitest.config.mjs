export default { test: { include: ["runners/vitest.spec.mjs", "runners/fixture.spec.ts", "documents/*.spec.js"], globalSetup: "momus-kit/global-setup", testTimeout: 60_000 } };
