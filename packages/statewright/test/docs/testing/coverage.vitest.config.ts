import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    setupFiles: ["@statewright/testing/vitest"],
    reporters: [
      "default",
      ["@statewright/testing/coverage", { threshold: { edges: 90 }, pictures: "coverage/graphs" }],
    ],
  },
});
