import { join } from "node:path";
import { loadPlugin } from "@statewright/plugins";
import { type ToolPack, toolConformance } from "@statewright/testing/conformance";
import { afterAll, describe, test } from "vitest";

const program = join(import.meta.dirname, "echo-plugin.mjs");

describe("custom plugins", async () => {
  const plugin = await loadPlugin({ command: "node", args: [program] });
  afterAll(() => plugin.close());
  const pack = (): ToolPack => ({
    tools: plugin.tools,
    samples: { echo: { good: { say: "hello" }, failing: { say: "out of order", error: true } } },
  });
  for (const { name, run } of toolConformance) test(name, () => run(pack));
});
