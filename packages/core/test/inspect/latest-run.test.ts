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
} from "@statewright/core";
import { listRuns } from "@statewright/core/inspect";
import { expect, test } from "vitest";
import * as z from "zod";

const log = defineGraph({ name: "log", state: defineState({ said: channel.list(z.string()) }) })
  .nodes({
    note: ({ said }) => {
      if (said.at(-1) === "fail") throw new Error("as it was told");
    },
  })
  .edges({ [START]: "note", note: END });

/** Creates a store that counts the run rows that it reads. */
function counting(): { readonly store: Store; readonly asked: (number | undefined)[] } {
  const asked: (number | undefined)[] = [];
  const inner = memoryStore();
  const runs: Store["runs"] = (filter) => {
    asked.push(filter?.limit);
    return inner.runs(filter);
  };
  return {
    asked,
    store: new Proxy(inner, { get: (target, name) => (name === "runs" ? runs : Reflect.get(target, name)) }),
  };
}

test("getState reads one run row, however many runs the thread has had", async () => {
  const { store, asked } = counting();
  const states = [];
  for (let nth = 0; nth < 60; nth++) {
    await run(log, { store, thread: "t", input: { said: [String(nth)] } }).result;
    asked.length = 0;
    states.push([(await getState(log, { store, thread: "t" })).status, ...asked]);
  }
  expect(states).toEqual(states.map(() => ["done", 1]));
});

test("the status of a branch is found behind newer runs of another branch", async () => {
  const { store, asked } = counting();
  await run(log, { store, thread: "t", input: { said: ["first"] } }).result;
  await expect(run(log, { store, thread: "t", input: { said: ["fail"] } }).result).rejects.toThrow("as it was told");
  let at = 0;
  for await (const { checkpointId, step } of getHistory(log, { store, thread: "t" })) if (step === 1) at = checkpointId;
  const branch = await fork(log, { store, thread: "t", at, name: "other" });
  expect((await getState(log, { store, thread: "t", branch })).status).toBeUndefined();
  for (let nth = 0; nth < 70; nth++)
    await run(log, { store, thread: "t", branch, input: { said: [String(nth)] } }).result;
  asked.length = 0;
  expect((await getState(log, { store, thread: "t", branch: "main" })).status).toBe("failed");
  expect(asked).toEqual([1, 50, 50]);
  expect((await getState(log, { store, thread: "t", branch })).status).toBe("done");
});

test("a queued or cancelled queued input does not hide the status of the previous run", async () => {
  const asking = defineGraph({
    name: "asking",
    state: defineState({ said: channel.list(z.string()) }),
    interrupts: { q: z.string() },
  })
    .nodes({ ask: async (_state, { interrupt }) => ({ said: [await interrupt("q")] }) })
    .edges({ [START]: "ask", ask: END });
  const store = memoryStore();
  await run(asking, { store, thread: "t", input: {} }).result;
  const behind = run(asking, { store, thread: "t", input: {}, onBusy: "enqueue" });
  await behind.result;
  const readStatuses = async () => {
    const { status, interrupts } = await getState(asking, { store, thread: "t" });
    return [status, interrupts.length, (await store.thread("t"))?.status];
  };
  expect(await readStatuses()).toEqual(["waiting", 1, "waiting"]);
  behind.cancel();
  await expect.poll(async () => (await listRuns(store)).map(({ status }) => status)).toEqual(["cancelled", "waiting"]);
  expect(await readStatuses()).toEqual(["waiting", 1, "waiting"]);
  await resume(asking, { store, thread: "t", answers: { q: "yes" } }).result;
  expect(await readStatuses()).toEqual(["done", 0, "done"]);
});

test("changes in history entries are frozen for every kind of delta", async () => {
  const store = memoryStore();
  const both = defineGraph({
    name: "both",
    state: defineState({ said: channel.list(z.object({ n: z.number() })), last: z.object({ n: z.number() }) }),
  })
    .nodes({ note: () => ({ said: [{ n: 1 }], last: { n: 1 } }) })
    .edges({ [START]: "note", note: END });
  await run(both, { store, thread: "t", input: { last: { n: 0 } } }).result;
  for await (const { changes } of getHistory(both, { store, thread: "t" })) {
    const values = [changes.last, changes.said].flatMap((delta) => {
      if (delta?.kind === "append") return delta.items;
      return delta?.kind === "replace" ? [delta.value] : [];
    });
    expect(values.length).toBeGreaterThan(0);
    expect(values.every((value) => Object.isFrozen(value))).toBe(true);
  }
});

test("getState refuses a checkpoint that the given branch and its ancestors do not have", async () => {
  const store = memoryStore();
  await run(log, { store, thread: "t", input: { said: ["one"] } }).result;
  const { checkpointId: first } = await getState(log, { store, thread: "t" });
  const branch = await fork(log, { store, thread: "t", at: first, name: "other", moveHead: false });
  await run(log, { store, thread: "t", branch: "main", input: { said: ["two"] } }).result;
  const { checkpointId: second } = await getState(log, { store, thread: "t", branch: "main" });
  expect((await getState(log, { store, thread: "t", at: first, branch })).branch).toBe("main");
  await expect(getState(log, { store, thread: "t", at: second, branch })).rejects.toThrow(
    `the checkpoint ${second} of thread "t" is on the branch "main", not on "other"`,
  );
});
