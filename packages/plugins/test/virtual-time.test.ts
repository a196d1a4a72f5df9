/** A plugin shared by all tests of a file: virtual time waits for its calls. */
import process from "node:process";
import { toolTest } from "@statewright/testing/vitest";
import { expect, onTestFinished, test } from "vitest";
import { loadPlugin } from "../src/index.ts";

const program = `
const say = (message) => console.log(JSON.stringify(message));
const parameters = { type: "object", properties: {} };
let rest = "";
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const { type } of lines.map((line) => JSON.parse(line)))
    if (type === "describe") say({ name: "slow", description: "Takes its time.", parameters });
    else setTimeout(() => say({ content: [{ type: "text", text: "here" }] }), 50);
});`;

test("a call of a plugin loaded before the first virtual-time run does not time out during its work", async () => {
  const plugin = await loadPlugin({ command: process.execPath, args: ["-e", program], timeoutMs: 10_000 });
  onTestFinished(() => plugin.close());
  for (const tool of plugin.tools) expect((await toolTest(tool, { args: {} })).text).toBe("here");
  expect(plugin.tools).toHaveLength(1);
});
