/**
 * One process with four parallel tool calls. The first process hangs when two calls are done and two are running; each
 * later process continues and prints the requests and the answers.
 */
import process from "node:process";
import { call, crashPoint, logEffect, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, type EffectClass, getMessageText, sqliteStore } from "statewright";
import * as z from "zod";

const thread = "four";
const store = sqliteStore("four.db", { durability: "normal" });
const isFirst = (await store.head(thread)) === undefined;

const script = scriptedModel([
  [call("read_done", {}), call("pay_done", {}), call("read_running", {}), call("pay_running", {})],
  say("All four are answered."),
]);
const model: typeof script = {
  ...script,
  respond: (request, options) => {
    logEffect({ model: request.messages.length });
    return script.respond(request, options);
  },
};

function tool(name: string, effect: EffectClass, isDone: boolean) {
  return defineTool({
    name,
    description: `Do ${name}.`,
    input: z.object({}),
    effect,
    run: (_args, { idempotencyKey }) => {
      logEffect({ tool: name, key: idempotencyKey, isFirst });
      return isFirst && !isDone ? new Promise<string>(() => undefined) : `${name} ran`;
    },
  });
}

const agent = createAgent({
  name: "four",
  model,
  tools: [
    tool("read_done", "pure", true),
    tool("pay_done", "once", true),
    tool("read_running", "pure", false),
    tool("pay_running", "once", false),
  ],
  store,
});

if (isFirst) {
  agent.run({ thread, input: "go" }).result.catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
  while (!(await hasTwoResults())) await new Promise((resolve) => setImmediate(resolve));
  crashPoint("two done, two running");
  throw new Error("this life was to die");
}

let result = await agent.resume({ thread }).result;
const asked: unknown[] = [];
if (result.status === "waiting") {
  asked.push(...result.interrupts.map(({ key, payload }) => ({ key, tool: (payload as { tool: string }).tool })));
  result = await agent.resume({ thread, answers: { in_doubt: { happened: true, content: "the bank has it" } } }).result;
}
const said = result.state.messages.flatMap((message) =>
  message.role === "tool" ? [[message.name, message.isError, getMessageText(message)]] : [],
);
process.stdout.write(JSON.stringify({ status: result.status, asked, said }));
await store.close();

/** Returns whether the file has the outcomes of two calls and the starts of the other two. */
async function hasTwoResults(): Promise<boolean> {
  const calls = (await store.effects(thread, "main")).filter(({ kind }) => kind === "tool");
  return calls.length === 4 && calls.filter(({ state }) => state === "ok").length === 2;
}
