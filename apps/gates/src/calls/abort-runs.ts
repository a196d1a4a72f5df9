/** `aborts`: runs that are cancelled at random points. Each call settles once, and nothing of a run is left behind. */
import { getEventListeners } from "node:events";
import process from "node:process";
import { setImmediate as turn } from "node:timers/promises";
import {
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  memoryStore,
  messages,
  run,
  START,
  ToolError,
  toolNode,
} from "@statewright/core";
import { type Chance, chanceOf } from "@statewright/testing";
import * as z from "zod";

/** What some aborts came to. */
export interface AbortsReport {
  readonly aborts: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

const input = z.object({ turns: z.int() });
const heeding = defineTool({
  name: "heeding",
  description: "Stops when it is told to.",
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
const deaf = defineTool({
  name: "deaf",
  description: "Goes on whatever it is told, for a while.",
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
  description: "Fails, and is tried again.",
  input,
  effect: "pure",
  retry: { attempts: 3, initialMs: 1, jitter: 0 },
  run: async ({ turns }) => {
    for (let each = 0; each < turns; each++) await turn();
    throw ToolError.unavailable("not there");
  },
});
const tools = [heeding, deaf, forever, failing];
const Chat = defineState({ messages: messages() });
const graph = defineGraph({ name: "aborts", state: Chat })
  .nodes({ tools: toolNode({ tools }), model: async () => undefined })
  .edges({ [START]: "tools", tools: "model", model: END });

/** Cancel so many runs; then count what is left of them. */
export async function abortRuns(count: number, from = 0): Promise<AbortsReport> {
  const ends: Record<string, number> = {};
  const violations: string[] = [];
  await abortOne(chanceOf(1), []);
  await turn();
  const before = handles();
  for (let seed = from; seed < from + count; seed++) {
    const found: string[] = [];
    const end = await abortOne(chanceOf(seed), found);
    ends[end] = (ends[end] ?? 0) + 1;
    for (const violation of found) violations.push(`seed ${seed}: ${violation}`);
  }
  for (let each = 0; each < 20; each++) await turn();
  const after = handles();
  if (after > before) violations.push(`${after} handles are open where ${before} were`);
  return { aborts: count, ends, violations };
}

async function abortOne(chance: Chance, violations: string[]): Promise<string> {
  const quit = new AbortController();
  const calls = Array.from({ length: 1 + chance.below(4) }, (_, index) => ({
    ...{ type: "call" as const, id: `c${index}` },
    name: chance.of(tools).name,
    args: { turns: chance.below(6) },
  }));
  const asking: Message = { role: "assistant", id: "a", finish: "calls", content: calls };
  const handle = run(graph, {
    input: { messages: [asking] },
    signal: quit.signal,
    ...(chance.share(0.5) ? { store: memoryStore(), thread: "t" } : {}),
  });
  const settled = new Map<string, number>();
  handle.on((event) => {
    if (event.type === "tool.completed" || event.type === "tool.failed")
      settled.set(event.callId, (settled.get(event.callId) ?? 0) + 1);
  });
  const hops = chance.below(12);
  for (let hop = 0; hop < hops; hop++) await (chance.share(0.5) ? turn() : Promise.resolve());
  quit.abort();
  if (chance.share(0.2)) handle.cancel("twice");
  const end = await handle.result;
  const answers = end.state.messages.filter(({ role }) => role === "tool");
  const begun = end.state.messages.length > 0;
  if (begun && answers.length !== calls.length) violations.push(`${answers.length} answers to ${calls.length} calls`);
  for (const [id, times] of settled) if (times !== 1) violations.push(`the call ${id} settled ${times} times`);
  if (begun && settled.size !== calls.length) violations.push(`${settled.size} of ${calls.length} calls settled`);
  if (getEventListeners(quit.signal, "abort").length > 0) violations.push("a listener is left on the caller's signal");
  return end.status;
}

function handles(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout" || kind === "Immediate").length;
}
