/** Retention deletes old checkpoints and keeps every row that the thread, a fork or a copy needs later. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  memoryStore,
  resume,
  route,
  run,
  START,
  subgraph,
  updateState,
} from "../../../src/index.ts";
import { exportThread, importThread, pruneThread } from "../../../src/inspect.ts";

const Log = defineState({ pay: z.boolean().default(false), log: channel.list(z.string()) });

test("a once effect on a branch is known to a later fork after the branch was pruned past it [E44]", async () => {
  let paid = 0;
  const graph = defineGraph({ name: "shop", state: Log })
    .nodes({
      look: () => ({}),
      pay: async (_state, { step }) => void (await step("pay", () => ++paid, { effect: "once" })),
      after: () => ({ log: ["after"] }),
    })
    .edges({
      [START]: "look",
      look: route(["pay", "after"], ({ pay }) => (pay ? "pay" : "after")),
      pay: "after",
      after: END,
    });
  const at = { store: memoryStore(), thread: "t" } as const;
  await run(graph, { ...at, input: {} }).result;
  await fork(graph, { ...at, at: 1, name: "one", update: { pay: true } });
  await resume(graph, { ...at, branch: "one" }).result;
  await pruneThread(at.store, { keepLast: 1 });
  await fork(graph, { ...at, at: 1, name: "two", update: { pay: true } });
  expect(await resume(graph, { ...at, branch: "two" }).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "in_doubt", payload: { step: "pay", alreadyOn: "one", outcome: 1 } }],
  });
  expect(paid).toBe(1);
});

/** Defines a once node in a persistent subgraph of a graph that is not persistent. */
function nested() {
  const bodies: string[] = [];
  const inner = defineGraph({ name: "inner", state: Log, interrupts: { ok: z.boolean() } })
    .nodes({
      pay: {
        effect: "once",
        run: () => {
          bodies.push("pay");
        },
      },
      ask: async (_state, { interrupt }) => ({ log: [`${await interrupt("ok")}`] }),
    })
    .edges({ [START]: "pay", pay: "ask", ask: END });
  const bind = { input: () => ({}), output: ({ log }: { log: readonly string[] }) => ({ log }) };
  const middle = defineGraph({ name: "middle", state: Log })
    .nodes({ kept: subgraph(inner, { ...bind, persistence: "per-thread" }) })
    .edges({ [START]: "kept", kept: END });
  const graph = defineGraph({ name: "outer", state: Log })
    .nodes({ first: () => ({}), call: subgraph(middle, bind), last: () => ({}) })
    .edges({ [START]: "first", first: "call", call: "last", last: END });
  return { graph, bodies };
}

test("an active subgraph call continues after a prune, also when an update has written to the thread since [E47]", async () => {
  let counted = 0;
  const inner = defineGraph({ name: "inner", state: Log, interrupts: { ok: z.boolean() } })
    .nodes({
      count: () => ({ log: [`${++counted}`] }),
      ask: async (_state, { interrupt }) => ({ log: [`${await interrupt("ok")}`] }),
    })
    .edges({ [START]: "count", count: "ask", ask: END });
  const graph = defineGraph({ name: "outer", state: Log })
    .nodes({
      first: () => ({}),
      call: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }) }),
      beside: () => ({ log: ["beside"] }),
    })
    .edges({ [START]: "first", first: ["call", "beside"], call: END, beside: END });
  const at = { store: memoryStore(), thread: "t" } as const;
  expect((await run(graph, { ...at, input: {} }).result).status).toBe("waiting");
  await updateState(graph, { ...at, as: "beside", values: { log: ["by hand"] } });
  await pruneThread(at.store, { keepLast: 1 });
  const done = await resume(graph, { ...at, answers: { "call.ok": true } }).result;
  expect(done).toMatchObject({ status: "done", state: { log: ["by hand", "1", "true"] } });
});

test("persistent state inside a subgraph call is pruned with the call, so that a pruned thread is exported complete [E46, E47]", async () => {
  const { graph, bodies } = nested();
  const at = { store: memoryStore(), thread: "t" } as const;
  await run(graph, { ...at, input: {} }).result;
  await resume(graph, { ...at, answers: { "call.kept.ok": true } }).result;
  let before = 0;
  for await (const { next, checkpointId } of getHistory(graph, at)) if (next[0] === "call") before = checkpointId;
  await fork(graph, { ...at, at: before, name: "again" });
  await pruneThread(at.store, { keepLast: 1 });
  expect(await resume(graph, { ...at, branch: "again" }).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "call.kept.in_doubt" }],
  });
  expect(bodies).toEqual(["pay"]);
  const other = memoryStore();
  await run(graph, { ...at, store: other, input: {} }).result;
  await resume(graph, { ...at, store: other, answers: { "call.kept.ok": true } }).result;
  await pruneThread(other, { keepLast: 1 });
  expect((await other.exportThread("t")).namespaces.map(({ name }) => name)).toEqual(["main"]);
  expect(await importThread(memoryStore(), await exportThread(other, "t"))).toBe("t");
});
