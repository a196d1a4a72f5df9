/**
 * One process whose agent and two sub-agents share a budget, over a SQLite file. The run waits at the limit, and the
 * next process answers. An external log records every model request.
 */
import process from "node:process";
import { call, crashPoints, logEffect, restartExitCode, say, scriptedModel } from "@statewright/testing";
import { agentTool, createAgent, sqliteStore } from "statewright";
import { budget } from "statewright/middleware";

const thread = "frugal";
const tenTokens = { usage: { inputTokens: 10, outputTokens: 0 } };
const store = crashPoints(sqliteStore("agent.db", { durability: "normal" }));

const researcher = createAgent({
  name: "researcher",
  model: scriptedModel(() => {
    logEffect("asked");
    return say("found", tenTokens);
  }),
});
const lead = createAgent({
  name: "lead",
  model: scriptedModel(({ messages }) => {
    logEffect("asked");
    if (messages.some(({ role }) => role === "tool")) return say("summed up", tenTokens);
    return [say("", tenTokens), call("research", { task: "one" }), call("research", { task: "two" })];
  }),
  tools: [agentTool(researcher, { name: "research", description: "Researches." })],
  middleware: [budget({ turns: 3, tokens: 1_000, onExceeded: "ask" })],
  store,
});

const hasStarted = (await store.head(thread)) !== undefined;
let result = hasStarted ? await lead.resume({ thread }).result : await lead.run({ thread, input: "Find out." }).result;
if (hasStarted && result.status === "waiting") {
  const answers = Object.fromEntries(result.interrupts.map(({ id }) => [id, { turns: 2 }]));
  result = await lead.resume({ thread, answers }).result;
}
if (result.status === "waiting") process.exitCode = restartExitCode;
else {
  const { turns, tokens, extended } = Reflect.get(result.state, "budgetSpent");
  console.log(JSON.stringify({ status: result.status, turns, tokens, extended }));
}
await store.close();
