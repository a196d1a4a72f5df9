/** Who wrote a value, branches and forks, read without the graph. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { findPart, parseJsonPointer } from "../../../src/base/json-pointer.ts";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  edit,
  fork,
  memoryStore,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import {
  applyJsonPatch,
  blame,
  compareBranches,
  diffStates,
  getBranchTree,
  getStateAt,
  isSuperstep,
  listSupersteps,
  previewFork,
  pruneThread,
} from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";
import { moneyCodec, runThreadPlan, threadPlans } from "../../support/random-thread.ts";
import { call, createToolLoop } from "../../support/tool-loop.ts";

/** Lists the pointers of all parts of a value. */
function listPointers(value: unknown, pointer = ""): readonly string[] {
  if (typeof value !== "object" || value === null || value instanceof Map) return [pointer];
  return [
    ...(pointer === "" ? [] : [pointer]),
    ...Object.entries(value).flatMap(([key, part]) =>
      listPointers(part, `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`),
    ),
  ];
}

describe("blame", () => {
  test("the newest write of a value left it as it is, and no later superstep changed it, in random forks [ND4]", async () => {
    await fc.assert(
      fc.asyncProperty(threadPlans, fc.nat(1_000), async (plan, choice) => {
        const store = memoryStore();
        for (const branch of await runThreadPlan(store, plan)) {
          const { value, checkpoint } = await getStateAt(store, { thread: "t", branch });
          // Items of `doc.items` are plain numbers, whose moves are not told from writes.
          const pointers = listPointers(value).filter((each) => !each.startsWith("/doc/items/"));
          const path = pointers[choice % pointers.length] ?? "";
          const [write] = await blame(store, { thread: "t", at: checkpoint, path, limit: 1 });
          const current = findPart(value, parseJsonPointer("test", path)).value;
          const at = write?.superstep.id ?? 0;
          const written = await getStateAt(store, { thread: "t", at, path: write?.path ?? "" });
          expect(written.value).toEqual(current);
          const { parent } = write?.superstep ?? {};
          if (parent === undefined) return;
          const before = await getStateAt(store, { thread: "t", at: parent, path: write?.path ?? "" });
          expect(before.value).not.toEqual(current);
        }
      }),
      { numRuns: 60, seed: 20_26 },
    );
  });

  test("all writes of a value are listed through ancestors, newest first, with their operation [ND4]", async () => {
    const store = memoryStore();
    await runThreadPlan(store, {
      actions: [
        { kind: "notes", n: 1 },
        { kind: "log", n: 5 },
        { kind: "drop", n: 1 },
        { kind: "notes", n: 4 },
      ],
      forks: [{ at: 1, actions: [{ kind: "notes", n: 7 }] }],
    });
    const writes = await blame(store, { thread: "t", branch: "fork0", path: "/notes/k1" });
    expect(writes.map(({ op, superstep: { branch } }) => [op, branch])).toEqual([
      ["replace", "fork0"],
      ["add", "main"],
    ]);
    expect((await blame(store, { thread: "t", path: "/notes/k1" })).map(({ op }) => op)).toEqual([
      "add",
      "remove",
      "add",
    ]);
    expect(await blame(store, { thread: "t", path: "/notes/k1", limit: 1 })).toHaveLength(1);
    expect(await blame(store, { thread: "t", path: "/notes/none" })).toEqual([]);
    await getFailure(blame(store, { thread: "t", path: "" }), "invalid_option");
  });

  test("an item that moved in its list was written where it was added or changed [ND4]", async () => {
    const graph = defineGraph({
      name: "moving",
      state: defineState({ list: z.array(z.object({ id: z.string(), n: z.number() })) }),
    })
      .nodes({
        add: () => edit((draft: { list: object[] }) => void draft.list.unshift({ id: "new", n: 0 })),
        change: () => edit((draft: { list: { n: number }[] }) => void Object.assign(draft.list[2] ?? {}, { n: 9 })),
      })
      .edges({ [START]: "add", add: "change", change: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: { list: ["a", "b"].map((id) => ({ id, n: 1 })) } }).result;
    const getNodes = async (path: string) =>
      (await blame(store, { thread: "t", path })).map(({ op, path: at, superstep: { nodes } }) => [op, at, nodes[0]]);
    expect(await getNodes("/list/0")).toEqual([["add", "/list/0", "add"]]);
    expect(await getNodes("/list/1/n")).toEqual([["add", "/list/0/n", undefined]]);
    expect(await getNodes("/list/2/n")).toEqual([
      ["replace", "/list/2/n", "change"],
      ["add", "/list/1/n", undefined],
    ]);
  });

  test("a tool message names its task, its call and the person who approved the call [ND4]", async () => {
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      input: z.object({}),
      effect: "once",
      execution: { needsApproval: () => "money" },
      run: async () => "paid",
    });
    const look = defineTool({ name: "look", description: "Looks.", input: z.object({}), run: async () => "seen" });
    const store = memoryStore();
    const turns = [[call("pay", {}, "c1"), call("look", {}, "c2")], ["done"]];
    const loop = createToolLoop({ store, tools: [pay, look], turns });
    await loop.start().result;
    const answers = { approve: { approved: true } };
    await resume(loop.graph, { store, thread: "t", world: loop.world, context: {}, answers, by: "kim" }).result;
    const [paid] = await blame(store, { thread: "t", path: "/messages/2" });
    expect(paid).toMatchObject({ op: "add", task: "1:0", call: "c1", by: "kim" });
    const [seen] = await blame(store, { thread: "t", path: "/messages/3/content" });
    expect(seen).toMatchObject({ op: "add", task: "1:0", call: "c2" });
    expect(seen).not.toHaveProperty("by");
  });

  test("a value written before the oldest checkpoint that retention kept has no listed write [ND4]", async () => {
    const store = memoryStore();
    const actions = [{ kind: "notes", n: 1 } as const, ...[1, 2, 3, 4].map((n) => ({ kind: "log", n }) as const)];
    await runThreadPlan(store, { actions, forks: [] });
    await pruneThread(store, { thread: "t", keepLast: 2, codec: moneyCodec });
    expect(await blame(store, { thread: "t", path: "/notes/k1" })).toEqual([]);
    expect(await blame(store, { thread: "t", path: "/log/3" })).toHaveLength(1);
  });

  test("blame after a pruned range before a kept fork point names only kept writes [ND4]", async () => {
    const store = memoryStore();
    const logs = Array.from({ length: 6 }, (_, n) => ({ kind: "log", n }) as const);
    const actions = [{ kind: "notes", n: 1 } as const, ...logs, { kind: "notes", n: 4 } as const];
    await runThreadPlan(store, { actions, forks: [{ at: 6, actions: [{ kind: "log", n: 9 }] }] });
    const listWrites = async (path: string) =>
      (await blame(store, { thread: "t", branch: "main", path })).map(({ op, superstep: { id } }) => [op, id]);
    const before = { log: await listWrites("/log/5"), notes: await listWrites("/notes/k1") };
    const lost = await listWrites("/log/2");
    await pruneThread(store, { thread: "t", keepLast: 3, codec: moneyCodec });
    expect([before.log.length, lost.length]).toEqual([1, 1]);
    expect(
      (await listSupersteps(store, { thread: "t", branch: "main" })).filter(isSuperstep).map(({ id }) => id),
    ).toEqual([9, 8, 7, 2]);
    expect(await listWrites("/log/5")).toEqual(before.log);
    expect(await listWrites("/log/2")).toEqual([]);
    // The checkpoint before the fork point is pruned too.
    expect(before.notes).toEqual([
      ["replace", 9],
      ["add", 2],
    ]);
    expect(await listWrites("/notes/k1")).toEqual([["replace", 9]]);
    expect(await listWrites("/log")).toEqual([["replace", 8]]);
  });

  test("a write 300 supersteps ago is found [ND4]", async () => {
    const store = memoryStore();
    const actions = [
      { kind: "notes", n: 1 } as const,
      ...Array.from({ length: 300 }, (_, n) => ({ kind: "log", n }) as const),
    ];
    await runThreadPlan(store, { actions, forks: [] });
    const [write] = await blame(store, { thread: "t", path: "/notes/k1" });
    expect(write?.superstep.step).toBe(1);
  });
});

const sent: string[] = [];
const orders = defineGraph({
  name: "orders",
  state: defineState({ log: channel.list(z.string()) }),
  interrupts: { go: z.boolean() },
})
  .nodes({
    plan: () => ({ log: ["plan"] }),
    ask: async (_state, { interrupt }) => ({ log: [(await interrupt("go")) ? "yes" : "no"] }),
    send: async ({ log }, { step }) => {
      await step("mail", () => sent.push(log.join(" ")), { effect: "once" });
      await step("note", () => 1, { effect: "idempotent" });
      return { log: ["sent"] };
    },
  })
  .edges({ [START]: "plan", plan: "ask", ask: "send", send: END });

/** Runs the orders on `main` with yes, and on the fork `other` with no up to its question about the mail. */
async function runOrders(): Promise<{ readonly store: Store; readonly at: number }> {
  const store = memoryStore();
  await run(orders, { store, thread: "t" }).result;
  const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
  const at = rows.find(({ next }) => next.includes("ask"))?.id ?? 0;
  await resume(orders, { store, thread: "t", answers: { go: true } }).result;
  await fork(orders, { store, thread: "t", at, name: "other" });
  await resume(orders, { store, thread: "t", branch: "other" }).result;
  await resume(orders, { store, thread: "t", branch: "other", answers: { go: false } }).result;
  return { store, at };
}

describe("branches", () => {
  test("the tree of branches names origins, heads, sizes and states of runs [ND4]", async () => {
    const { store, at } = await runOrders();
    const [main, other] = await getBranchTree(store, { thread: "t" });
    expect(main).toMatchObject({ name: "main", isHead: true, supersteps: 4, status: "done" });
    expect(main).not.toHaveProperty("from");
    expect(other).toMatchObject({ name: "other", from: at, parent: "main", isHead: false, status: "waiting" });
  });

  test("two branches are compared by first difference, state, answers and effects since their ancestor [ND4]", async () => {
    const { store, at } = await runOrders();
    const found = await compareBranches(store, { thread: "t", a: "main", b: "other" });
    expect(found.ancestor).toBe(at);
    expect(found.first).toMatchObject({
      a: { branch: "main", nodes: ["ask"] },
      b: { branch: "other", nodes: ["ask"] },
    });
    const states = await Promise.all(["main", "other"].map((branch) => getStateAt(store, { thread: "t", branch })));
    expect(applyJsonPatch(states[0]?.value, found.state)).toEqual(states[1]?.value);
    expect(found.answers.filter(({ key }) => key === "go")).toMatchObject([{ a: true, b: false }]);
    expect(found.effects.onlyA.map(({ key }) => key)).toContain("mail");
    const reverse = await compareBranches(store, { thread: "t", a: "other", b: "main" });
    expect([reverse.ancestor, reverse.first?.a?.branch]).toEqual([at, "other"]);
    expect(reverse.effects.onlyB).toEqual(found.effects.onlyA);
    const same = await compareBranches(store, { thread: "t", a: "main", b: "main" });
    expect([same.first, same.state, same.answers, same.effects.onlyA]).toEqual([undefined, [], [], []]);
    await getFailure(compareBranches(store, { thread: "t", a: "main", b: "none" }), "unknown_checkpoint");
  });

  test("a random fork has the ancestor that it was forked from, and equal branches have no difference [ND4]", async () => {
    await fc.assert(
      fc.asyncProperty(threadPlans, async (plan) => {
        const store = memoryStore();
        const branches = await runThreadPlan(store, plan);
        for (const { name, from, parent } of await getBranchTree(store, { thread: "t" })) {
          if (parent === undefined) continue;
          const found = await compareBranches(store, { thread: "t", a: parent, b: name });
          expect(found.ancestor).toBe(from);
          const states = await Promise.all([parent, name].map((branch) => getStateAt(store, { thread: "t", branch })));
          expect(applyJsonPatch(states[0]?.value, found.state)).toEqual(states[1]?.value);
        }
        expect(branches[0]).toBe("main");
      }),
      { numRuns: 20, seed: 20_26 },
    );
  });
});

describe("fork previews", () => {
  test("effects after the checkpoint are sorted by what the rule about prior effects does [ND18]", async () => {
    const { store, at } = await runOrders();
    const preview = await previewFork(store, { thread: "t", at });
    expect(preview.again.map(({ key }) => key)).toContain("note");
    expect(preview.asks.map(({ key, effect }) => [key, effect])).toEqual([["mail", "once"]]);
    expect(preview).not.toHaveProperty("fits");
    const reuse = await previewFork(store, { thread: "t", at, onPriorEffect: "reuse" });
    expect([reuse.asks, reuse.reused.map(({ key }) => key)]).toEqual([[], ["mail"]]);
    const repeat = await previewFork(store, { thread: "t", at, onPriorEffect: "repeat" });
    expect([repeat.asks, repeat.again.map(({ key }) => key)]).toEqual([[], expect.arrayContaining(["mail", "note"])]);
  });

  test("the preview matches the run of the fork: the mail is asked about and not sent again [ND18]", async () => {
    sent.length = 0;
    const { store } = await runOrders();
    expect(sent).toEqual(["plan yes"]);
    const [open] = (await store.openInterrupts({ thread: "t" })).filter(({ branch }) => branch === "other");
    expect(open?.key).toBe("in_doubt");
  });

  test("at the end of a branch nothing is repeated, and everything is kept [ND18]", async () => {
    const { store } = await runOrders();
    const head = (await getStateAt(store, { thread: "t", branch: "main" })).checkpoint;
    const preview = await previewFork(store, { thread: "t", at: head });
    expect([preview.again, preview.asks]).toEqual([[], []]);
    expect(preview.kept).toBeGreaterThan(0);
  });

  test("with a graph the preview tells whether the fork and its update would be accepted, and writes nothing [ND18]", async () => {
    const { store, at } = await runOrders();
    const branches = await store.branches("t");
    expect((await previewFork(store, { thread: "t", at, graph: orders })).fits).toBe(true);
    expect((await previewFork(store, { thread: "t", at, graph: orders, update: { log: ["x"] } })).fits).toBe(true);
    const unfit = await previewFork(store, { thread: "t", at, graph: orders, update: { log: [1] as never } });
    expect(unfit.fits).toMatchObject({ code: "invalid_update" });
    const other = defineGraph({ name: "foreign", state: defineState({}) })
      .nodes({ n: () => ({}) })
      .edges({ [START]: "n", n: END });
    expect((await previewFork(store, { thread: "t", at, graph: other })).fits).toMatchObject({ code: "graph_changed" });
    expect(await store.branches("t")).toEqual(branches);
  });
});

test("a checkpoint of another branch and an unknown branch are refused by the readers [ND4]", async () => {
  const store = memoryStore();
  const actions = [1, 2, 3].map((n) => ({ kind: "log", n }) as const);
  await runThreadPlan(store, { actions, forks: [{ at: 2, actions: [{ kind: "log", n: 9 }] }] });
  const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
  const mine = rows.find(({ branch }) => branch === "fork0")?.id ?? 0;
  const later = rows.find(({ branch }) => branch === "main")?.id ?? 0;
  const place = { thread: "t", branch: "fork0" };
  expect((await getStateAt(store, { ...place, at: 1 })).checkpoint).toBe(1);
  expect((await getStateAt(store, { ...place, at: mine })).checkpoint).toBe(mine);
  for (const read of [getStateAt(store, { ...place, at: later }), blame(store, { ...place, at: later, path: "/log" })])
    expect((await getFailure(read, "unknown_checkpoint")).message).toContain(
      `the checkpoint ${later} of thread "t" is on the branch "main", not on "fork0"`,
    );
  await getFailure(getStateAt(store, { thread: "t", branch: "none", at: 1 }), "unknown_checkpoint");
  await getFailure(listSupersteps(store, { thread: "t", branch: "none" }), "unknown_branch");
  expect(await listSupersteps(store, { ...place, after: 1_000 })).toEqual([]);
});

test("a difference without one of its checkpoints is refused with the name of the option [ND4]", async () => {
  const store = memoryStore();
  await runThreadPlan(store, { actions: [{ kind: "log", n: 1 }], forks: [] });
  const options = { thread: "t", from: 1 } as Parameters<typeof diffStates>[1];
  expect((await getFailure(diffStates(store, options), "invalid_option")).message).toContain("`to` must be an integer");
});
