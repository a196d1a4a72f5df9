/** A thread moved to another store continues there with its waiting run, history and forks. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readThreadSnapshot } from "@statewright/testing/conformance";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  getState,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  sqliteStore,
  subgraph,
} from "statewright";
import { copyThread, exportThread, importThread } from "statewright/inspect";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as z from "zod";

let home: string;
let store: Store;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "statewright-moving-"));
  store = sqliteStore(join(home, "agent.db"), { durability: "normal" });
});

afterEach(async () => {
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

const Inner = defineState({ asked: z.string(), notes: channel.list(z.string()) });
const inner = defineGraph({ name: "inner", version: 1, state: Inner, interrupts: { sure: z.boolean() } })
  .nodes({
    think: async (state, { step }) => ({ notes: [await step("thought", async () => `thought of ${state.asked}`)] }),
    ask: async (_state, { interrupt }) => ({ notes: [(await interrupt("sure")) ? "sure" : "unsure"] }),
  })
  .edges({ [START]: "think", think: "ask", ask: END });

const Outer = defineState({ topic: z.string(), notes: channel.list(z.string()), result: z.string().default("") });
const outer = defineGraph({ name: "outer", version: 1, state: Outer })
  .nodes({
    research: subgraph(inner, {
      input: (state) => ({ asked: state.topic }),
      output: (result) => ({ notes: result.notes }),
    }),
    write: (state) => ({ result: state.notes.join(", ") }),
  })
  .edges({ [START]: "research", research: "write", write: END });

async function waiting(on: Store, thread: string): Promise<void> {
  const result = await run(outer, { store: on, thread, input: { topic: "owls" } }).result;
  expect(result.status).toBe("waiting");
}

test.each(["from a file to memory and back", "from memory to a file"])(
  "a waiting run continues in the store that its thread was moved to: %s [E46]",
  async (way) => {
    const memory = memoryStore();
    const [from, to] = way.startsWith("from memory") ? [memory, store] : [store, memory];
    await waiting(from, "t");
    await importThread(to, await exportThread(from, "t"));
    expect(await readThreadSnapshot(to, "t")).toEqual(await readThreadSnapshot(from, "t"));
    const branch = await fork(outer, {
      store: to,
      thread: "t",
      at: await getFirst(to),
      name: "b",
      update: { topic: "bats" },
    });
    const moved = await resume(outer, { store: to, thread: "t", answers: { "research.sure": true } }).result;
    expect(moved).toMatchObject({ status: "done", state: { result: "thought of owls, sure" } });
    expect(await resume(outer, { store: to, thread: "t", branch }).result).toMatchObject({ status: "waiting" });
    await importThread(from, await exportThread(to, "t"), { as: "back" });
    expect((await getState(outer, { store: from, thread: "back" })).state).toEqual(moved.state);
    const back = await resume(outer, { store: from, thread: "back", branch, answers: { "research.sure": false } })
      .result;
    expect(back).toMatchObject({ status: "done", state: { result: "thought of bats, unsure" } });
    expect((await getState(outer, { store: to, thread: "t" })).state).toEqual(moved.state);
  },
);

async function getFirst(on: Store): Promise<number> {
  let first = 0;
  for await (const entry of getHistory(outer, { store: on, thread: "t" })) first = entry.checkpointId;
  return first;
}

test("the state of a copied thread equals the original at every checkpoint", async () => {
  await waiting(store, "t");
  await resume(outer, { store, thread: "t", answers: { "research.sure": true } }).result;
  await copyThread(store, "t", "copy");
  for await (const { checkpointId: at } of getHistory(outer, { store, thread: "t" })) {
    const [one, other] = await Promise.all(["t", "copy"].map((thread) => getState(outer, { store, thread, at })));
    expect(other).toEqual(one);
  }
});
