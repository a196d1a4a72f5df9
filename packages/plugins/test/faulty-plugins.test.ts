/** Plugins with faults planted by `faults.plugin` of the test kit. */
import { join } from "node:path";
import { getMessageText } from "@statewright/core";
import { faults } from "@statewright/testing";
import { expect, test } from "vitest";
import { loadPlugin } from "../src/index.ts";
import { collectAnswers } from "./support/calls.ts";
import { keep } from "./support/plugins.ts";

const echo = { command: process.execPath, args: [join(import.meta.dirname, "fixtures/plugin.mjs"), "echo"] };

test.each([
  ["malformed", expect.stringContaining("echo")],
  ["cut", expect.any(String)],
] as const)("a plugin answers the first call and fails the second: %s", async (how, text) => {
  const plugin = await loadPlugin(faults.plugin(echo, { failNth: 2, how }));
  keep(plugin);
  const callSay = (id: string) => collectAnswers(plugin.tools, [{ id, args: { say: "hello" } }]);
  const [first] = await callSay("c1");
  expect(first && [first.isError, getMessageText(first)]).toEqual([false, "hello"]);
  const [second] = await callSay("c2");
  expect(second && [second.isError, getMessageText(second)]).toEqual([true, text]);
});
