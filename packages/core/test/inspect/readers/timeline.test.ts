/** Timelines and supersteps, read without the graph. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  approval,
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  getHistory,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  subgraph,
} from "../../../src/index.ts";
import {
  getBranchTree,
  getSuperstep,
  isSuperstep,
  listNamespaces,
  listSupersteps,
  type SuperstepSummary,
  streamEvents,
} from "../../../src/inspect.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { getFailure } from "../../support/failure.ts";
import { moneyCodec, randomGraph, runThreadPlan, threadPlans } from "../../support/random-thread.ts";
import { call, createToolLoop } from "../../support/tool-loop.ts";

/** Removes the optional reads, so that readers use the required reads only. */
function omitOptionalReads(store: Store): Store {
  const { snapshot: _snapshot, supersteps: _supersteps, ...required } = store;
  return required;
}

describe("timelines", () => {
  test("a page is the same with and without the optional reads of the store, in random threads [ND2]", async () => {
    await fc.assert(
      fc.asyncProperty(
        threadPlans,
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 9 }),
        async (plan, seq, limit) => {
          const store = memoryStore();
          const branches = await runThreadPlan(store, plan);
          for (const branch of [undefined, ...branches]) {
            const place = { thread: "t", ...(branch === undefined ? {} : { branch }) };
            for (const page of [
              { limit: 500 },
              { before: seq, limit },
              { after: seq, limit },
              { after: 0, limit: 500 },
            ])
              expect(await listSupersteps(omitOptionalReads(store), { ...place, ...page })).toEqual(
                await listSupersteps(store, { ...place, ...page }),
              );
          }
        },
      ),
      { numRuns: 25, seed: 20_26 },
    );
  });

  test("the pages of a branch together are its history and its events, in both directions [ND2]", async () => {
    await fc.assert(
      fc.asyncProperty(threadPlans, fc.integer({ min: 1, max: 7 }), async (plan, limit) => {
        const store = memoryStore();
        for (const branch of await runThreadPlan(store, plan)) {
          const history: number[] = [];
          for await (const { checkpointId } of getHistory(randomGraph, {
            store,
            thread: "t",
            branch,
            codec: moneyCodec,
          }))
            history.push(checkpointId);
          const newestFirst = await listPages(store, branch, { limit });
          expect(newestFirst.filter(isSuperstep).map(({ id }) => id)).toEqual(history);
          const oldestFirst = await listPages(store, branch, { after: 0, limit });
          expect(oldestFirst.toReversed()).toEqual(newestFirst);
        }
        const all = (await listSupersteps(store, { thread: "t", after: 0, limit: 1_000 })).map(({ seq }) => seq);
        const events: number[] = [];
        for await (const { seq } of streamEvents({ store, thread: "t", codec: moneyCodec })) events.push(seq);
        expect(all).toEqual(events);
      }),
      { numRuns: 20, seed: 20_26 },
    );
  });

  async function listPages(store: Store, branch: string, first: { readonly after?: number; readonly limit: number }) {
    const rows = [...(await listSupersteps(store, { thread: "t", branch, ...first }))];
    for (let page = rows; page.length === first.limit; ) {
      const last = rows.at(-1)?.seq ?? 0;
      const next = first.after === undefined ? { before: last } : { after: last };
      page = [...(await listSupersteps(store, { thread: "t", branch, limit: first.limit, ...next }))];
      rows.push(...page);
    }
    return rows;
  }

  test("a row has the number and size of its changes, and durable events stand between [ND2]", async () => {
    const store = memoryStore();
    await runThreadPlan(store, {
      actions: [
        { kind: "name", n: 4 },
        { kind: "log", n: 1 },
      ],
      forks: [],
    });
    const rows = await listSupersteps(store, { thread: "t" });
    expect(rows.map((row) => ("event" in row ? row.event.type : row.source))).toEqual([
      "run.completed",
      "step",
      "step",
      "input",
      "run.started",
    ]);
    const [, log, name, input] = rows as readonly SuperstepSummary[];
    expect(log).toMatchObject({ branch: "main", step: 2, nodes: ["work"], next: [END], parent: name?.id });
    expect(log?.changes.map(({ channel: each, kind, count }) => [each, kind, count])).toEqual([
      ["todo", "replace", 1],
      ["log", "append", 1],
    ]);
    expect(log?.changes.find(({ channel: each }) => each === "log")?.bytes).toBe('[{"id":"m1-0","n":1}]'.length);
    expect(name?.changes.map(({ channel: each }) => each)).toContain("doc");
    expect(input?.effects).toEqual({ calls: 0, attempts: 0, repeated: 0, open: 0 });
  });

  test("effects are counted: calls, attempts, those that two processes began, and those in doubt [ND2]", async () => {
    const store = memoryStore();
    const { epoch } = await store.claim({ thread: "t", graph: "g", version: 1, shape: "s", at: 1 });
    const effect = { step: 0, task: "0:0", name: "call", effect: "once", idempotencyKey: "k", startedAt: 1 } as const;
    const effects = [
      { ...effect, key: "a", kind: "tool", state: "ok", attempts: 3, endedAt: 2, processes: 2 },
      { ...effect, key: "b", kind: "model", state: "ok", attempts: 1, endedAt: 2 },
      { ...effect, key: "c", kind: "step", state: "started", attempts: 1 },
      { ...effect, key: "d", kind: "task", state: "ok", attempts: 1, endedAt: 2 },
    ] as const;
    const control = JSON.stringify({ machine: "on", tasks: [], inputs: [], joins: {} });
    const saveStep = (step: number): Promise<void> =>
      new Promise((resolve, reject) => {
        const place = { id: step + 1, branch: "main", step, parent: step === 0 ? undefined : step, seq: step + 1 };
        const row = { ...place, source: "step", nodes: [], control, run: "r", at: 1, durationMs: 1, bytes: 0 } as const;
        const commit = { thread: "t", branch: "main", epoch, seq: step + 1, checkpoint: { row, deltas: [] } };
        store.commit({ ...commit, effects: step === 0 ? [] : effects }, (failure) =>
          failure === undefined ? resolve() : reject(failure),
        );
      });
    await saveStep(0);
    await saveStep(1);
    const [row] = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    expect(row?.effects).toEqual({ calls: 3, attempts: 5, repeated: 1, open: 1 });
  });

  test("before and after together, an unknown thread, an unknown branch and a limit of 0 are refused [ND2]", async () => {
    const store = memoryStore();
    await runThreadPlan(store, { actions: [{ kind: "log", n: 1 }], forks: [] });
    await getFailure(listSupersteps(store, { thread: "t", before: 3, after: 1 }), "invalid_option");
    await getFailure(listSupersteps(store, { thread: "u" }), "unknown_thread");
    await getFailure(listSupersteps(store, { thread: "t", limit: 0 }), "invalid_option");
    await getFailure(listSupersteps(store, { thread: "t", branch: "other" }), "unknown_branch");
  });
});

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  input: z.object({ card: z.string() }),
  effect: "once",
  execution: { needsApproval: () => "money" },
  safety: { redact: { args: ["card"], result: (text) => text.replaceAll(/\d{4}/g, "####") } },
  run: async ({ card }) => `paid with ${card}`,
});

/** Runs a loop that pays after an approval by kim. */
async function runPayment() {
  const store = memoryStore();
  const loop = createToolLoop({ store, tools: [pay], turns: [[call("pay", { card: "4111" }, "c1")], ["done"]] });
  await loop.start().result;
  const answers = { approve: { approved: true } };
  await resume(loop.graph, { store, thread: "t", world: loop.world, context: {}, answers, by: "kim" }).result;
  return { store, graph: loop.graph };
}

describe("supersteps", () => {
  test("a superstep shows its tasks, effects, the answered interrupt with its person, and its machine [ND3]", async () => {
    const { store, graph } = await runPayment();
    const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    const paid = rows.find(({ nodes }) => nodes.includes("tools"));
    const detail = await getSuperstep(store, { thread: "t", checkpoint: paid?.id ?? 0, graph });
    expect(detail?.tasks).toEqual([{ id: "1:0", node: "tools" }]);
    expect(detail?.effectRows.map(({ kind, name, state, outcome }) => [kind, name, state, typeof outcome])).toEqual([
      ["tool", "pay", "ok", "object"],
    ]);
    expect(detail?.asked).toMatchObject([{ key: "approve", answeredBy: "kim", answer: { approved: true } }]);
    expect(detail?.machine).toMatchObject({ from: { tools: "executing" }, to: { model: "executing" } });
    expect(detail?.patch).toMatchObject([{ op: "add", path: "/messages/2", value: { role: "tool", callId: "c1" } }]);
    expect(detail?.writtenBy).toMatchObject({ graph: "desk" });
    expect(detail?.effects).toEqual({ calls: 1, attempts: 1, repeated: 0, open: 0 });
    expect(await getSuperstep(store, { thread: "t", checkpoint: 99 })).toBeUndefined();
  });

  test("guards of a route are recomputed with the graph, and absent without [ND3]", async () => {
    const { store, graph } = await runPayment();
    const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    const asked = rows.find(({ nodes, next }) => nodes.includes("model") && next.includes("tools"));
    const place = { thread: "t", checkpoint: asked?.id ?? 0 };
    expect((await getSuperstep(store, place))?.machine).not.toHaveProperty("guards");
    expect((await getSuperstep(store, { ...place, graph }))?.machine.guards).toContainEqual(
      expect.objectContaining({ result: true }),
    );
  });

  test("the newest superstep of a waiting run shows its open interrupt [ND3]", async () => {
    const store = memoryStore();
    const loop = createToolLoop({ store, tools: [pay], turns: [[call("pay", { card: "4111" }, "c1")], ["done"]] });
    await loop.start().result;
    const newest = (await listSupersteps(store, { thread: "t" })).find(isSuperstep);
    const detail = await getSuperstep(store, { thread: "t", checkpoint: newest?.id ?? 0 });
    expect(detail?.open).toMatchObject([{ key: "approve", node: "tools" }]);
    expect(detail?.asked).toEqual([]);
  });

  test("a thread in the middle of a crashed run is read up to its last saved superstep [ND2, ND3]", async () => {
    const store = memoryStore();
    const dying = createCrashingStore(store.peer(), 3, "after");
    run(randomGraph, {
      store: dying.store,
      thread: "t",
      codec: moneyCodec,
      input: { todo: [1, 2, 3, 4, 5].map((n) => ({ kind: "log" as const, n })) },
    });
    await dying.dead;
    const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    expect(rows.length).toBeGreaterThan(0);
    expect(rows[0]?.next).toEqual(["work"]);
    expect((await getBranchTree(store, { thread: "t" }))[0]).toMatchObject({ name: "main", status: "crashed" });
  });
});

describe("redaction on reading", () => {
  test("policies of given tools, or of the graph, hide arguments, results and outcomes [ND17]", async () => {
    const { store, graph } = await runPayment();
    const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    for (const { id } of rows) {
      for (const shown of [
        await getSuperstep(store, { thread: "t", checkpoint: id, graph }),
        await getSuperstep(store, { thread: "t", checkpoint: id, tools: [pay] }),
      ])
        expect(JSON.stringify(shown)).not.toContain("4111");
    }
    const saved = await Promise.all(rows.map(({ id }) => getSuperstep(store, { thread: "t", checkpoint: id })));
    expect(JSON.stringify(saved)).toContain("4111");
  });
});

describe("inner graphs", () => {
  const Inner = defineState({ topic: z.string(), notes: channel.list(z.string()) });
  const inner = defineGraph({ name: "inner", state: Inner, interrupts: { go: approval } })
    .nodes({ note: ({ topic }) => ({ notes: [topic] }) })
    .edges({ [START]: "note", note: END });
  const outer = defineGraph({
    name: "outer",
    state: defineState({ topic: z.string(), notes: channel.list(z.string()) }),
  })
    .nodes({
      research: subgraph(inner, {
        input: ({ topic }) => ({ topic }),
        output: ({ notes }) => ({ notes }),
      }),
      last: () => ({}),
    })
    .edges({ [START]: "research", research: "last", last: END });

  test("namespaces are listed with caller, path, task and graph, and their rows name their place [ND9]", async () => {
    const store = memoryStore();
    await run(outer, { store, thread: "t", input: { topic: "x" } }).result;
    const [call0, ...others] = await listNamespaces(store, { thread: "t" });
    expect(others).toEqual([]);
    expect(call0).toMatchObject({
      name: "main/0:0",
      branch: "main",
      parent: "main",
      task: "0:0",
      within: "research",
      graph: "inner",
      supersteps: 2,
    });
    const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    expect(rows.filter(({ within }) => within === "research").map(({ withinId }) => withinId)).toEqual(["0:0", "0:0"]);
    const own = (await listSupersteps(store, { thread: "t", branch: "main/0:0" })).filter(isSuperstep);
    expect(own.map(({ id }) => id)).toEqual(rows.filter(({ within }) => within !== undefined).map(({ id }) => id));
    const detail = await getSuperstep(store, { thread: "t", checkpoint: own[0]?.id ?? 0, graph: inner });
    expect(detail?.patch).toEqual([{ op: "add", path: "/notes", value: ["x"] }]);
  });

  test("a branch includes the inner graphs of its ancestors up to the fork [ND2, ND9]", async () => {
    const store = memoryStore();
    await run(outer, { store, thread: "t", input: { topic: "x" } }).result;
    const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    const at = rows.find(({ nodes }) => nodes.includes("research"))?.id ?? 0;
    await fork(outer, { store, thread: "t", at, name: "other" });
    await resume(outer, { store, thread: "t", branch: "other" }).result;
    const listed = (await listSupersteps(store, { thread: "t", branch: "other" })).filter(isSuperstep);
    expect(listed.filter(({ within }) => within === "research")).toHaveLength(2);
    expect(listed.filter(({ nodes }) => nodes.includes("last")).map(({ branch }) => branch)).toEqual(["other"]);
  });
});
