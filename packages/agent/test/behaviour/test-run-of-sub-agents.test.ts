/** A test run includes the sub-agents of tools: their models, their tool executions and their crashes. */
import { agentTool, createAgent } from "@statewright/agent";
import { defineTool, type Model } from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import * as z from "zod";

const offline: Model = { id: "offline", respond: () => Promise.reject(new Error("there is no network here")) };
const look = defineTool({
  name: "look",
  description: "Look something up.",
  input: z.object({ what: z.string() }),
  effect: "once",
  run: ({ what }) => `${what} is fine`,
});
const scout = createAgent({ name: "scout", model: offline, tools: [look] });
const chief = createAgent({
  name: "chief",
  model: offline,
  tools: [agentTool(scout, { name: "ask_scout", description: "Ask the scout." })],
});

test("a test model answers for sub-agents too, and tool executions of sub-agents are counted across a crash", async () => {
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return say("done");
    const text = JSON.stringify(messages[0]);
    return text.includes("the bridge") ? call("look", { what: "bridge" }) : call("ask_scout", { task: "the bridge" });
  });
  const t = await testRun(chief, { input: "Is the way safe?", model });
  await t.until(({ trace }) => trace.entries.some((entry) => entry.type === "tool.executed" && entry.tool === "look"));
  await t.finish();
  expect(t).toHaveCalledTools([{ name: "ask_scout" }], { mode: "superset" });
  expect(t.trace.entries.filter((entry) => entry.type === "tool.executed" && entry.tool === "look")).toHaveLength(1);
});
