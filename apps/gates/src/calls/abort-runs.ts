/** `aborts`: cancels runs at random points. Each call must finish once, without leaked handles or listeners. */
import { getEventListeners } from "node:events";
import process from "node:process";
import { setImmediate as turn } from "node:timers/promises";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  memoryStore,
  run,
  START,
  ToolError,
  toolNode,
} from "@statewright/core";
import { type Chance, createChance } from "@statewright/testing";
import * as z from "zod";

/** Result of a series of aborts. */
export interface AbortsReport {
  readonly aborts: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

const input = z.object({ turns: z.int() });
const cooperative = defineTool({
  name: "cooperative",
  description: "Stops when its signal is aborted.",
  input,
  effect: "pure",
  timeoutMs: 60_000,
  run: async ({ turns }, { signal }) => {
    for (let each = 0; each < turns; each++) {
      await turn();
      signal.throwIfAborted();
    }
    return "done";
  },
});
const unresponsive = defineTool({
  name: "unresponsive",
  description: "Ignores its signal and runs for a while.",
  input,
  effect: "idempotent",
  timeoutMs: 60_000,
  run: async ({ turns }) => {
    for (let each = 0; each < turns; each++) await turn();
    return "done";
  },
});
const forever = defineTool({
  name: "forever",
  description: "Never ends.",
  input,
  timeoutMs: 60_000,
  graceMs: 1,
  run: () => new Promise<never>(() => undefined),
});
const failing = defineTool({
  name: "failing",
  description: "Fails, and is retried.",
  input,
  effect: "pure",
  retry: { attempts: 3, initialMs: 1, jitter: 0 },
  run: async ({ turns }) => {
    for (let each = 0; each < turns; each++) await turn();
    throw ToolError.unavailable("not there");
  },
});
const tools = [cooperative, unresponsive, forever, failing];
const Chat = defineState({ messages: channel.messages() });
const graph = defineGraph({ name: "aborts", state: Chat })
  .nodes({ tools: toolNode({ tools }), model: async () => undefined })
  .edges({ [START]: "tools", tools: "model", model: END });

/** Cancels `count` runs, then checks for leaks. */
export async function abortRuns(count: number, from = 0): Promise<AbortsReport> {
  const ends: Record<string, number> = {};
  const violations: string[] = [];
  await abortRun(createChance(1), []);
  await turn();
  const before = countHandles();
  for (let seed = from; seed < from + count; seed++) {
    const runViolations: string[] = [];
    const end = await abortRun(createChance(seed), runViolations);
    ends[end] = (ends[end] ?? 0) + 1;
    for (const violation of runViolations) violations.push(`seed ${seed}: ${violation}`);
  }
  for (let each = 0; each < 20; each++) await turn();
  const after = countHandles();
  if (after > before) violations.push(`expected at most ${before} open handles, got ${after}`);
  return { aborts: count, ends, violations };
}

async function abortRun(chance: Chance, violations: string[]): Promise<string> {
  const controller = new AbortController();
  const calls = Array.from({ length: 1 + chance.getInteger(4) }, (_, index) => ({
    ...{ type: "call" as const, id: `c${index}` },
    name: chance.pick(tools).name,
    args: { turns: chance.getInteger(6) },
  }));
  const callMessage: Message = { role: "assistant", id: "a", finish: "calls", content: calls };
  const handle = run(graph, {
    input: { messages: [callMessage] },
    signal: controller.signal,
    ...(chance.flip(0.5) ? { store: memoryStore(), thread: "t" } : {}),
  });
  const finishedCalls = new Map<string, number>();
  handle.on((event) => {
    if (event.type === "tool.completed" || event.type === "tool.failed")
      finishedCalls.set(event.callId, (finishedCalls.get(event.callId) ?? 0) + 1);
  });
  const hops = chance.getInteger(12);
  for (let hop = 0; hop < hops; hop++) await (chance.flip(0.5) ? turn() : Promise.resolve());
  controller.abort();
  if (chance.flip(0.2)) handle.cancel("twice");
  const end = await handle.result;
  const results = end.state.messages.filter(({ role }) => role === "tool");
  const started = end.state.messages.length > 0;
  if (started && results.length !== calls.length)
    violations.push(`expected ${calls.length} tool results, got ${results.length}`);
  for (const [id, times] of finishedCalls)
    if (times !== 1) violations.push(`the call ${id} finished ${times} times, expected once`);
  if (started && finishedCalls.size !== calls.length)
    violations.push(`expected ${calls.length} finished calls, got ${finishedCalls.size}`);
  if (getEventListeners(controller.signal, "abort").length > 0)
    violations.push("a listener leaked on the caller's signal");
  return end.status;
}

function countHandles(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout" || kind === "Immediate").length;
}
