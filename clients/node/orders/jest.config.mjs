export default { testMatch: ["**/runners/jest.spec.mjs"], transform: {}, testTimeout: 60_000, globalSetup: "momus-kit/global-setup" };
