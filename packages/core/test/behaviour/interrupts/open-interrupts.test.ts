/** Open interrupts, whatever the status of their runs: lists, states, forks, and updates of graphs with subgraphs. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getState,
  listInterrupts,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  type SubgraphPersistence,
  subgraph,
  updateState,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** Graph with two interrupts; the node `slow` runs until its gate opens. */
function createPair() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const graph = defineGraph({ name: "pair", state: Log, interrupts: { one: z.string(), two: z.string() } })
    .nodes({
      one: async (_state, { interrupt }) => {
        const answer = await interrupt("one");
        if (answer === "slow") await opened;
        if (answer === "fail") throw new Error("no");
        return { log: [answer] };
      },
      two: async (_state, { interrupt }) => ({ log: [await interrupt("two")] }),
    })
    .edges({ [START]: ["one", "two"], one: END, two: END });
  return { graph, open };
}

const listKeys = async (store: Store) => (await listInterrupts(store)).map(({ key }) => key);

describe("open interrupts", () => {
  test("an interrupt stays in lists and states while the run of its thread is running, crashed, failed and paused [FX5]", async () => {
    const world = createVirtualWorld();
    const { graph } = createPair();
    const store = memoryStore();
    const at = { store, thread: "t" };
    const seen = async (reader: Store) => [
      await listKeys(reader),
      (await getState(graph, { store: reader, thread: "t" })).interrupts.map(({ key }) => key),
    ];
    await run(graph, { ...at, world }).result;
    expect(await seen(store)).toEqual([
      ["two", "one"],
      ["one", "two"],
    ]);
    await getFailure(resume(graph, { ...at, world, answers: { one: "fail" } }).result, "node_failed");
    expect(await seen(store)).toEqual([["two"], ["two"]]);
    const other = createPair();
    const second = memoryStore();
    await run(other.graph, { store: second, thread: "t", world }).result;
    const running = resume(other.graph, { store: second, thread: "t", world, answers: { one: "slow" } });
    await world.waitUntilIdle();
    expect(await seen(second)).toEqual([["two"], ["two"]]);
    second.crash();
    other.open();
    await expect(running.result).rejects.toMatchObject({ kind: "store" });
    const peer = second.peer();
    expect((await peer.runs({ thread: "t" })).map(({ status }) => status)).toEqual(["crashed"]);
    expect(await seen(peer)).toEqual([["two"], ["two"]]);
    expect(
      (await resume(other.graph, { store: peer, thread: "t", world, answers: { two: "yes" } }).result).status,
    ).toBe("done");
    expect(await seen(peer)).toEqual([[], []]);
  });

  test("an interrupt of a cancelled or finished run is in no list and no state [FX5]", async () => {
    const { graph } = createPair();
    const store = memoryStore();
    const at = { store, thread: "t" };
    await run(graph, at).result;
    const unwanted = resume(graph, at);
    unwanted.cancel();
    await unwanted.result;
    expect([await listKeys(store), (await getState(graph, at)).interrupts]).toEqual([[], []]);
  });

  test("a fork changes no open interrupt of its origin, and raises its own when it runs [FX5]", async () => {
    const { graph } = createPair();
    const store = memoryStore();
    const at = { store, thread: "t" };
    await run(graph, at).result;
    const { checkpointId } = await getState(graph, at);
    await fork(graph, { ...at, at: checkpointId, name: "side" });
    const branches = async () => (await listInterrupts(store)).map(({ branch, key }) => `${branch} ${key}`).sort();
    expect(await branches()).toEqual(["main one", "main two"]);
    await resume(graph, { ...at, branch: "side" }).result;
    expect(await branches()).toEqual(["main one", "main two", "side one", "side two"]);
    await resume(graph, { ...at, branch: "side", answers: { one: "a", two: "b" } }).result;
    expect(await branches()).toEqual(["main one", "main two"]);
    expect((await getState(graph, { ...at, branch: "main" })).interrupts).toHaveLength(2);
  });
});

describe("updateState of a graph with an open interrupt in a subgraph", () => {
  const createNested = (persistence: SubgraphPersistence, depth: 1 | 2) => {
    const leaf = defineGraph({ name: "leaf", state: Log, interrupts: { ok: z.string(), more: z.string() } })
      .nodes({
        ask: async (_state, { interrupt }) => ({ log: [`asked ${await interrupt("ok")}`] }),
        also: async (_state, { interrupt }) => ({ log: [`also ${await interrupt("more")}`] }),
      })
      .edges({ [START]: ["ask", "also"], ask: END, also: END });
    const middle = defineGraph({
      name: "middle",
      state: Log,
      interrupts: { "leaf.ok": z.string(), "leaf.more": z.string() },
    })
      .nodes({ leaf: subgraph(leaf, { persistence, input: () => ({ log: [] }), output: ({ log }) => ({ log }) }) })
      .edges({ [START]: "leaf", leaf: END });
    const inner = depth === 1 ? leaf : middle;
    return defineGraph({ name: "outer", state: Log })
      .nodes({
        a: () => ({ log: ["a"] }),
        sub: subgraph(inner as typeof leaf, {
          persistence,
          input: () => ({ log: [] }),
          output: ({ log }) => ({ log }),
        }),
        b: () => ({ log: ["b"] }),
      })
      .edges({ [START]: "a", a: "sub", sub: "b", b: END });
  };

  for (const persistence of ["per-call", "per-thread"] as const)
    for (const depth of [1, 2] as const)
      test(`an update as another node is refused and keeps the interrupts, an update as the node before raises them again, and an update as the subgraph closes them: ${persistence}, depth ${depth} [FX4]`, async () => {
        const graph = createNested(persistence, depth);
        const store = memoryStore();
        const at = { store, thread: "t" };
        await run(graph, at).result;
        const open = (await listInterrupts(store)).map(({ id }) => id);
        expect(open).toHaveLength(2);
        const refused = await getFailure(updateState(graph, { ...at, as: "b" }), "invalid_option");
        expect(refused.message).toContain('Pass as: "sub"');
        expect((await listInterrupts(store)).map(({ id }) => id)).toEqual(open);
        expect((await getState(graph, at)).interrupts).toHaveLength(2);

        await updateState(graph, { ...at, as: "a", values: { log: ["again"] } });
        expect([await listInterrupts(store), (await getState(graph, at)).interrupts]).toEqual([[], []]);
        const again = await resume(graph, at).result;
        expect(again.status).toBe("waiting");
        const raised = await listInterrupts(store);
        expect(raised).toHaveLength(2);
        const answers = Object.fromEntries(raised.map(({ id }, index) => [id, `answer ${index}`]));
        const partly = await resume(graph, { ...at, answers: Object.fromEntries(Object.entries(answers).slice(0, 1)) })
          .result;
        expect([partly.status, (await listInterrupts(store)).length]).toEqual(["waiting", 1]);

        await updateState(graph, { ...at, as: "sub", values: { log: ["by an update"] } });
        expect([await listInterrupts(store), (await getState(graph, at)).interrupts]).toEqual([[], []]);
        const end = await resume(graph, at).result;
        expect([end.status, end.state.log]).toEqual(["done", ["a", "again", "by an update", "b"]]);
        // The next run of the thread calls the subgraph anew.
        expect((await run(graph, at).result).status).toBe("waiting");
        expect(await listInterrupts(store)).toHaveLength(2);
      });

  test("an update beside a pending subgraph keeps its interrupts, and its answers continue the call [FX4]", async () => {
    const leaf = defineGraph({ name: "leaf", state: Log, interrupts: { ok: z.string() } })
      .nodes({
        first: () => ({ log: ["first"] }),
        ask: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
      })
      .edges({ [START]: "first", first: "ask", ask: END });
    const graph = defineGraph({ name: "outer", state: Log, interrupts: { own: z.string() } })
      .nodes({
        sub: subgraph(leaf, { input: () => ({ log: [] }), output: ({ log }) => ({ log }) }),
        own: async (_state, { interrupt }) => ({ log: [await interrupt("own")] }),
        last: () => ({ log: ["last"] }),
      })
      .edges({ [START]: ["sub", "own"], sub: END, own: "last", last: END });
    const store = memoryStore();
    const at = { store, thread: "t" };
    await run(graph, at).result;
    await updateState(graph, { ...at, as: "own", values: { log: ["by an update"] } });
    expect(await listKeys(store)).toEqual(["sub.ok"]);
    await updateState(graph, { ...at, as: "last", values: { log: ["last by an update"] } });
    expect(await listKeys(store)).toEqual(["sub.ok"]);
    const end = await resume(graph, { ...at, answers: { "sub.ok": "answered" } }).result;
    expect([end.status, end.state.log]).toEqual(["done", ["by an update", "last by an update", "first", "answered"]]);
  });
});
