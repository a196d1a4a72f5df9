/** Idempotency keys: stable for one effect, different in every thread. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  fork,
  getState,
  inputNode,
  memoryStore,
  recover,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import { copyThread, deleteThread, exportThread, importThread } from "../../../src/inspect.ts";
import { ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** Graph that records the idempotency key of a step; with `ask` it waits before the step. */
function createCharge() {
  const keys: string[] = [];
  const graph = defineGraph({ name: "charge", state: Log, interrupts: { ok: z.boolean() } })
    .nodes({
      ask: async ({ log }, { interrupt }) => {
        if (log[0] === "ask") await interrupt("ok");
      },
      pay: async (_state, { step }) => {
        await step("charge", ({ idempotencyKey }) => void keys.push(idempotencyKey), { effect: "once" });
      },
    })
    .edges({ [START]: "ask", ask: "pay", pay: END });
  return { graph, keys };
}

describe("idempotency keys", () => {
  test("a new thread of the id of a deleted thread, the same id in another store, and a run without a store have other keys [FX75]", async () => {
    const { graph, keys } = createCharge();
    const store = memoryStore();
    await run(graph, { store, thread: "t" }).result;
    await deleteThread(store, "t");
    await run(graph, { store, thread: "t" }).result;
    await run(graph, { store: memoryStore(), thread: "t" }).result;
    await run(graph, { thread: "t" }).result;
    await run(graph, { thread: "t" }).result;
    expect(new Set(keys).size).toBe(5);
    for (const key of keys) expect(key).toMatch(/^t\/[0-9a-z]{12}\/main\/1:0\/charge$/);
  });

  test("the random part of the keys stays the same in later runs, forks, exports, imports and copies of a thread [FX75]", async () => {
    const { graph, keys } = createCharge();
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: { log: ["ask"] } }).result;
    const { checkpointId } = await getState(graph, { store, thread: "t" });
    await fork(graph, { store, thread: "t", at: checkpointId, name: "side" });
    const other = memoryStore();
    await importThread(other, await exportThread(store, "t"));
    await copyThread(store, "t", "copy");
    const finish = async (where: Store, thread: string, branch = "main") => {
      const at = { store: where, thread, branch, onPriorEffect: "repeat" } as const;
      const first = await resume(graph, at).result;
      if (first.status === "waiting") await resume(graph, { ...at, answers: { ok: true } }).result;
    };
    await finish(store, "t");
    await finish(other, "t");
    await finish(store, "t", "side");
    await finish(store, "copy");
    const parts = keys.map((key) => key.split("/"));
    expect(parts.map(([thread, , branch, ...rest]) => [thread, branch, rest.join("/")])).toEqual([
      ["t", "main", "1:0/charge"],
      ["t", "main", "1:0/charge"],
      ["t", "side", "1:0/charge"],
      ["copy", "main", "1:0/charge"],
    ]);
    expect(new Set(parts.map(([, salt]) => salt)).size).toBe(1);
  });

  test("the in_doubt payload of a once node has its idempotency key and its input, and the body gets the same key [FX75]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const keys: string[] = [];
    let dies = true;
    const graph = defineGraph({ name: "pays", state: Log })
      .nodes({
        plan: () => undefined,
        pay: {
          ...inputNode(z.object({ cents: z.number() }), async (_state, { idempotencyKey }) => {
            keys.push(idempotencyKey);
            if (dies) await new Promise<never>(() => undefined);
            return { log: ["paid"] };
          }),
          effect: "once" as const,
        },
      })
      .edges({ [START]: "plan", plan: fanOut("pay", () => [{ cents: 900 }]), pay: END });
    ignoreResult(run(graph, { store, world, thread: "t" }).result);
    await world.waitUntilIdle();
    store.crash();
    const peer = store.peer();
    const [recovered] = await recover({ store: peer, graphs: [graph], world });
    expect(await recovered?.result).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "in_doubt", payload: { node: "pay", idempotencyKey: keys[0], input: { cents: 900 } } }],
    });
    dies = false;
    const answers = { in_doubt: { happened: false } };
    expect((await resume(graph, { store: peer, world, thread: "t", answers }).result).state.log).toEqual(["paid"]);
    expect(keys).toEqual([keys[0], keys[0]]);
    expect(keys[0]).toMatch(/^t\/[0-9a-z]{12}\/main\/1:0\/$/);
  });
});
