export default { test: { include: ["runners/failing.spec.ts"], globalSetup: "momus-kit/global-setup", testTimeout: 60_000 } };
