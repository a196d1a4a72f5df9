/**
 * One process with a batch of tool calls, one per possible state at a crash. The first process reaches the point `all
 * stand` when one call is answered, one has not started, and the others hang in their tools. Each later process
 * continues and prints the answers and the requests.
 */
import process from "node:process";
import { call, crashPoint, logEffect, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, type EffectClass, getMessageText, sqliteStore, ToolError } from "statewright";
import * as z from "zod";

const thread = "batch";
const store = sqliteStore("batch.db", { durability: "normal" });
const isFirst = (await store.head(thread)) === undefined;
const startedCalls = new Set<string>();

/** Records the call; hangs in the first process after its start, unless `answers` is set. */
function tool(name: string, effect: EffectClass, options: { readonly answers?: true; readonly lock?: string } = {}) {
  const { answers = false, lock } = options;
  return defineTool({
    name,
    description: `Do ${name}.`,
    input: z.object({}),
    effect,
    ...(lock === undefined ? {} : { execution: { lock: () => [lock] } }),
    run: (_args, { idempotencyKey }) => {
      logEffect({ tool: name, key: idempotencyKey, isFirst });
      startedCalls.add(name);
      return isFirst && !answers ? new Promise<string>(() => undefined) : `ran ${name}`;
    },
  });
}

/** Creates a `once` tool with a reconcile function. */
function reconciled(name: string, found: () => unknown) {
  return {
    ...tool(name, "once"),
    reconcile: (_state: unknown, { idempotencyKey }: { readonly idempotencyKey: string }) => {
      logEffect({ asked: name, key: idempotencyKey });
      return Promise.resolve().then(found);
    },
  };
}

const tools = [
  tool("answered", "once", { answers: true }),
  tool("pure", "pure"),
  tool("idempotent", "idempotent"),
  reconciled("happened", () => "the other side has it"),
  reconciled("not_happened", () => undefined),
  reconciled("failed_there", () => ({ content: "the other side refused it", isError: true })),
  reconciled("unknown", () => Promise.reject(new ToolError("unknown_outcome", "nobody can say"))),
  tool("doubtful", "once", { lock: "desk" }),
  tool("never_started", "once", { lock: "desk" }),
];
const names = tools.map(({ spec }) => spec.name);

const agent = createAgent({
  name: "batch",
  model: scriptedModel([names.map((name) => call(name, {})), say("Done")]),
  tools,
  store,
});

if (isFirst) {
  agent.run({ thread, input: "go" }).result.catch(fail);
  while (!(await hasAllStates())) await new Promise((resolve) => setImmediate(resolve));
  crashPoint("all stand");
  throw new Error("this life was to die");
}

const asked: unknown[] = [];
let result = await agent.resume({ thread }).result;
if (result.status === "waiting") {
  asked.push(...result.interrupts.map(({ key, payload }) => ({ key, tool: (payload as { tool: string }).tool })));
  const answers = { in_doubt: { happened: true, content: "ann saw it in the log" } };
  result = await agent.resume({ thread, answers }).result;
}
const said = result.state.messages.flatMap((message) =>
  message.role === "tool" ? [[message.name, message.isError, getMessageText(message)]] : [],
);
process.stdout.write(JSON.stringify({ status: result.status, asked, said }));
await store.close();

/**
 * Whether every call has reached its final state for this process: all but one have started, and one has its outcome.
 */
async function hasAllStates(): Promise<boolean> {
  if (startedCalls.size < names.length - 1) return false;
  const rows = await store.effects(thread, "main");
  return rows.some(({ name, state }) => name === "answered" && state === "ok");
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
