/** Tool calls of aborted runs, and tools that succeed after a retry. */
import { getEventListeners } from "node:events";
import process from "node:process";
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  memoryStore,
  run,
  START,
  ToolError,
  toolNode,
} from "../../../src/index.ts";
import { call, checkTranscript, createToolLoop, user } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Number of aborted runs; all of them with STATEWRIGHT_WHOLE=1. */
const aborts = process.env["STATEWRIGHT_WHOLE"] === "1" ? 10_000 : 300;

const Chat = defineState({ messages: channel.messages() });
const input = z.object({});

test("a run aborted at any point settles each tool call once and leaks no timer, listener, handle or claim [F11]", async () => {
  let settled: string[] = [];
  let [now, turns] = [0, 0];
  const pause = async (times: number): Promise<void> => {
    for (let turn = 0; turn < times; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const tool = (name: string, effect: "once" | "idempotent", times: number) =>
    defineTool({
      name,
      description: name,
      input,
      effect,
      timeoutMs: 60_000,
      ...(effect === "idempotent" ? { retry: { attempts: 2, initialMs: 1 } } : {}),
      run: async (_args, { signal, attempt }) => {
        await pause(times);
        if (effect === "idempotent" && attempt === 1) throw ToolError.unavailable("not yet");
        signal.throwIfAborted();
        return name;
      },
    });
  const calls = [call("one"), call("two"), call("three")];
  const graph = defineGraph({ name: "aborted", state: Chat })
    .nodes({
      ask: () => ({ messages: [{ role: "assistant" as const, id: "a1", content: calls, finish: "calls" as const }] }),
      tools: toolNode({ tools: [tool("one", "once", 1), tool("two", "idempotent", 2), tool("three", "once", 3)] }),
      look: ({ messages: all }) => checkTranscript(all),
    })
    .edges({ [START]: "ask", ask: "tools", tools: "look", look: END });
  const before = process.getActiveResourcesInfo().length;
  const ends = new Map<string, number>();
  const store = memoryStore();
  for (let nth = 0; nth < aborts; nth++) {
    const world = createVirtualWorld();
    const controller = new AbortController();
    const thread = `t${nth}`;
    settled = [];
    const handle = run(graph, { store, world, thread, signal: controller.signal, input: { messages: [user("go")] } });
    handle.on((event) => {
      if (event.type === "tool.completed" || event.type === "tool.failed") settled.push(event.callId);
    });
    // Deterministic pseudo-random number.
    now = (Math.imul(now, 1_664_525) + 1_013_904_223) >>> 0;
    turns = now % 24;
    for (let turn = 0; turn < turns; turn++)
      await (turn % 3 === 0 ? pause(1) : turn % 3 === 1 ? Promise.resolve() : world.advance(1));
    controller.abort();
    const { status } = await handle.result;
    ends.set(status, (ends.get(status) ?? 0) + 1);
    await world.waitUntilIdle();
    expect(new Set(settled).size).toBe(settled.length);
    expect([world.timers, getEventListeners(controller.signal, "abort").length]).toEqual([0, 0]);
    // The thread is free for the next owner.
    if (nth % 50 === 0) expect((await store.claim(next(thread))).previousOwner).toBe("released");
  }
  expect([...ends.keys()].toSorted()).toEqual(["cancelled", "done"]);
  await pause(5);
  expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(before);
});

function next(thread: string) {
  return { thread, graph: "aborted", version: 1, shape: "s", at: 0 };
}

test("a transient failure is retried as attempts of one journal row; a once tool is retried only after its own unavailable error [F18]", async () => {
  const ran: string[] = [];
  const failing = (name: string, effect: "once" | "idempotent", fail: () => unknown) =>
    defineTool({
      name,
      description: name,
      input,
      effect,
      timeoutMs: 50,
      retry: { attempts: 3, initialMs: 1, on: effect === "once" ? ["unavailable"] : ["unavailable", "timeout"] },
      run: (_args, { attempt }) => {
        ran.push(`${name} ${attempt}`);
        return attempt < 3 ? (fail() as never) : "done";
      },
    });
  const throwUnavailable = (): never => {
    throw ToolError.unavailable("away");
  };
  const world = createVirtualWorld();
  const loop = createToolLoop({
    world,
    tools: [
      failing("away", "once", throwUnavailable),
      failing("late", "once", () => new Promise(() => undefined)),
      failing("broken", "once", () => Promise.reject(new Error("broken"))),
      failing("again", "idempotent", throwUnavailable),
      failing("slow", "idempotent", () => new Promise(() => undefined)),
    ],
    turns: [[call("away"), call("late"), call("broken"), call("again"), call("slow")], ["ok"]],
  });
  const handle = loop.start();
  let status: string | undefined;
  handle.result.then((result) => (status = result.status), String);
  while (status === undefined) await world.advance(10);
  expect(status).toBe("done");
  expect(ran.toSorted()).toEqual(
    [
      "away 1",
      "away 2",
      "away 3",
      "late 1",
      "broken 1",
      "again 1",
      "again 2",
      "again 3",
      "slow 1",
      "slow 2",
      "slow 3",
    ].toSorted(),
  );
  const rows = (await loop.store?.effects("t", "main"))?.filter(({ kind }) => kind === "tool") ?? [];
  expect(rows.map(({ key, attempts }) => `${key} ${attempts}`).toSorted()).toEqual([
    "id_again 3",
    "id_away 3",
    "id_broken 1",
    "id_late 1",
    "id_slow 3",
  ]);
});
