import process from "node:process";
import { defineConfig } from "vitest/config";

const strict = process.env["STRICT"] === "1";

export default defineConfig({
  test: {
    setupFiles: ["@statewright/testing/vitest"],
    reporters: [
      "default",
      ["@statewright/testing/coverage", strict ? { threshold: { edges: 100 } } : { pictures: "graphs" }],
    ],
  },
});
