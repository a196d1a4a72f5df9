/** What every store must do with whole threads: delete them, give them out and take them in, and remove what is old. */
import {
  applyDelta,
  copyThread,
  type Delta,
  deleteThread,
  exportThread,
  importThread,
  memoryStore,
  type PruneWrite,
  plainCodec,
  prune,
  type Store,
} from "@statewright/core";
import { refused, same } from "./assert.ts";
import { checkpoint, delta, effect, fork, release, request, run, start, stateOf, tell } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";
import { fill, filledLines, portrait } from "./thread-snapshot.ts";

export const movingTests: readonly StoreTest[] = [
  storeTest("E46 a deleted thread is nowhere any more, and no other has changed", async ({ store }) => {
    await fill(store, "t");
    await fill(store, "u");
    const other = await portrait(store, "u");
    await deleteThread(store, "t");
    const nothing = {
      row: {},
      branches: [],
      runs: [],
      lines: filledLines.map((line) => ({ line, history: [], effects: [], interrupts: [], inbox: [] })),
      states: {},
      questions: [],
      timers: [],
      events: [],
      artifacts: [],
    };
    same(await portrait(store, "t"), nothing, "the deleted thread");
    same(
      (await store.threads()).map(({ id }) => id),
      ["u"],
      "the threads",
    );
    same(
      (await store.runs()).filter(({ thread }) => thread === "t"),
      [],
      "the runs",
    );
    same(
      (await store.timers()).filter(({ thread }) => thread === "t"),
      [],
      "the timers",
    );
    same(await portrait(store, "u"), other, "the other thread");
    await refused(deleteThread(store, "t"), "unknown_thread", "a thread that is not there");
    const { nextSeq, nextCheckpoint, head } = await store.claim(request("t"));
    same([nextSeq, nextCheckpoint, head], [1, 1, undefined], "a new thread of the same name");
  }),

  sharedTest("E46 a thread that a living owner holds is not deleted; one whose owner died is", async (under) => {
    const { store, peer, crash } = under;
    const held = await start(store, "t");
    await held.step(1);
    await refused(deleteThread(store, "t"), "thread_busy", "a thread that this store holds");
    await refused(deleteThread(peer(), "t"), "thread_busy", "a thread that another store holds");
    const next = crash();
    await deleteThread(next, "t");
    same(await next.thread("t"), undefined, "the thread");
  }),

  storeTest("E46 what is exported and imported is the same thread, in any store", async ({ store }) => {
    await fill(store, "t");
    const before = await portrait(store, "t");
    const text = await exportThread(store, "t");
    await refused(importThread(store, text), "thread_exists", "a thread that is there");
    same(await importThread(store, text, { as: "copy" }), "copy", "the id");
    same(await portrait(store, "copy"), before, "the thread under another id");
    const elsewhere = memoryStore();
    same(await importThread(elsewhere, text), "t", "the id");
    same(await portrait(elsewhere, "t"), before, "the thread in another store");
    const back = await exportThread(elsewhere, "t");
    await deleteThread(store, "t");
    await importThread(store, back);
    same(await portrait(store, "t"), before, "the thread that came back");
    same(await exportThread(store, "t"), text, "its text");
  }),

  storeTest("E46 a thread that was taken in goes on where it stood", async ({ store }) => {
    await fill(store, "t");
    await copyThread(store, "t", "copy");
    const [one, other] = [await store.claim(request("t")), await store.claim(request("copy"))];
    same({ ...other, epoch: 0, run: { ...other.run, thread: "t" } }, { ...one, epoch: 0 }, "the claim of the copy");
    const id = other.nextCheckpoint;
    const step = checkpoint(id, other.head?.id, { step: 7, seq: other.nextSeq, run: "r2" }, [
      delta("list", "append", '["d"]'),
    ]);
    await tell(store, { thread: "copy", branch: "main", epoch: other.epoch, seq: other.nextSeq, checkpoint: step });
    same((await stateOf(store, "copy", id))["list"]?.at(-1), 'append ["d"]', "the state of the copy");
    same((await store.head("t"))?.id, one.head?.id, "the head of the original");
    await refused(copyThread(store, "t", "copy"), "thread_exists", "a copy onto a thread");
    await refused(copyThread(store, "nobody", "v"), "unknown_thread", "a copy of nothing");
    await refused(copyThread(store, "t", "a/b"), "invalid_id", "a copy to what is no id");
  }),

  storeTest("the state at every checkpoint that retention keeps is what it was", async ({ store }) => {
    const thread = await start(store, "t");
    for (let id = 1; id <= 30; id++) {
      await thread.step(id, [
        id === 11 ? delta("list", "replace", '["from here"]') : delta("list", "append", `["i${id}"]`),
        ...(id % 7 === 0 ? [delta("last", "replace", `"${id}"`)] : []),
        ...(id % 3 === 0 ? [delta("map", "patch", `[{"op":"add","path":["k${id}"],"value":${id}}]`)] : []),
      ]);
      await thread.commit({ effects: [effect({ step: id, key: "pay", effect: "once", outcome: `"${id}"` })] });
    }
    await thread.commit({ run: { ...run("r1"), status: "done" }, release: true });
    await fork(store, "t", "b", 9, []);
    const kept = [9, 26, 27, 28, 29, 30, 31];
    const before = await Promise.all(kept.map((id) => valuesAt(store, "t", id)));
    const rows = await Promise.all(kept.map((id) => store.checkpoint("t", id)));
    const history = (await store.history("t", { limit: 100 })).filter(({ id }) => kept.includes(id));
    same(await prune(store, { thread: "t", keepLast: 5 }), { threads: 1, checkpoints: 24 }, "what went");
    same(
      (await store.history("t", { limit: 100 })).map(({ id }) => id),
      [30, 29, 28, 27, 26, 9],
      "the history",
    );
    same(await store.history("t", { limit: 100 }), history, "the entries of the history");
    same(await Promise.all(kept.map((id) => valuesAt(store, "t", id))), before, "the states");
    same(await Promise.all(kept.map((id) => store.checkpoint("t", id))), rows, "the checkpoints");
    await refused(store.state("t", 8), "unknown_checkpoint", "the state of one that went");
    same(
      (await store.effects("t", "main")).map(({ step }) => step),
      Array.from({ length: 22 }, (_, at) => at + 9),
      "the journal",
    );
    same(await prune(store, { thread: "t", keepLast: 5 }), { threads: 1, checkpoints: 0 }, "what went the second time");
    const next = await start(store, "t");
    await next.step(31, [delta("list", "append", '["next"]')]);
    await next.commit({ release: true });
    same(await prune(store, { keepLast: 1 }), { threads: 1, checkpoints: 5 }, "what went the third time");
    same(
      (await store.history("t", { limit: 100 })).map(({ id }) => id),
      [32, 9],
      "the history",
    );
    same((await valuesAt(store, "t", 32))["list"]?.at(-1), "next", "the newest state");
    same(await valuesAt(store, "t", 31), before.at(-1), "the state of the fork");
  }),

  storeTest(
    "retention keeps what is young, and what a fork, a run and a kept inner graph stand on",
    async ({ store }) => {
      await fill(store, "t");
      const before = (await portrait(store, "t")) as { readonly states: Readonly<Record<string, object>> };
      await store.prune({ ...everything("t"), since: 107 });
      same(await idsOn(store, "main"), [9, 8, 7, 2], "the branch: young ones, and where the fork begins");
      same(await idsOn(store, "b"), [10, 2], "the fork");
      await store.prune({ ...everything("t"), keepLast: 1 });
      same(await idsOn(store, "main"), [9, 8, 7, 2], "the branch: the waiting run may still be taken back to 7");
      same(await idsOn(store, "main/2:0"), [3], "a call whose checkpoint is kept");
      same(await idsOn(store, "main/memory"), [6], "the newest of a graph that is kept across calls");
      const after = (await portrait(store, "t")) as { readonly states: Readonly<Record<string, object>> };
      for (const [id, state] of Object.entries(after.states)) same(state, before.states[id], `the state at ${id}`);
      same(
        (await store.interrupts("t", "main")).map(({ id }) => id),
        ["6:0"],
        "the questions",
      );
      same((await store.questions({ thread: "t" })).length, 1, "what is asked");
      const claim = await store.claim(request("t"));
      await tell(store, {
        thread: "t",
        branch: "main",
        epoch: claim.epoch,
        seq: claim.nextSeq,
        run: { ...run("r2"), status: "done" },
        release: true,
      });
      await store.prune({ ...everything("t"), keepLast: 1 });
      same(await idsOn(store, "main"), [9, 2], "the branch after its run has ended");
    },
  ),

  storeTest("what a run stood on goes after it has ended, before a cut and together with one", async ({ store }) => {
    const thread = await start(store, "t");
    const step = (id: number): Promise<void> => {
      const source = id === 1 ? "input" : "step";
      const deltas = [delta("list", "append", `["i${id}"]`), delta("last", "replace", `"${id}"`)];
      const row = checkpoint(id, id === 1 ? undefined : id - 1, { step: id, source }, deltas);
      return thread.commit({ checkpoint: row });
    };
    for (let id = 1; id <= 4; id++) await step(id);
    await prune(store, { thread: "t", keepLast: 1 });
    same(await idsOn(store, "main"), [4, 1], "while the run may be taken back");
    for (let id = 5; id <= 7; id++) await step(id);
    await thread.commit({ run: { ...run("r1"), status: "done" }, release: true });
    await copyThread(store, "t", "u");
    const before = await valuesAt(store, "t", 7);
    await prune(store, { thread: "t", keepLast: 4 });
    same(await idsOn(store, "main"), [7, 6, 5, 4], "what stands before the cut is gone");
    await prune(store, { thread: "u", keepLast: 1 });
    same(await valuesAt(store, "u", 7), before, "the state after both sides of the cut went");
    await importThread(store, await exportThread(store, "t"), { as: "v" });
    for (const each of ["t", "v"]) {
      same(await valuesAt(store, each, 7), before, `the state of ${each}`);
      await prune(store, { thread: each, keepLast: 1 });
      same(await valuesAt(store, each, 7), before, `the state of ${each} after all but the newest went`);
    }
  }),

  sharedTest("retention works beside a writer that goes on, a few checkpoints at a time", async ({ store, peer }) => {
    const held = await start(store, "t");
    const other = peer();
    for (let id = 1; id <= 40; id++) {
      await held.step(id, [delta("list", "append", `["i${id}"]`)]);
      await held.commit({ effects: [effect({ step: id, key: "pay", effect: "once", outcome: "1" })] });
      if (id % 4 === 0) await other.prune({ ...everything("t"), keepLast: 2, limit: 3 });
    }
    while ((await other.prune({ ...everything("t"), keepLast: 2, limit: 3 })) > 0);
    await held.step(41, [delta("list", "append", '["i41"]')]);
    same(await idsOn(store, "main"), [41, 40, 39], "the branch");
    const list = (await valuesAt(store, "t", 41))["list"];
    same(
      list,
      Array.from({ length: 41 }, (_, at) => `i${at + 1}`),
      "the list",
    );
    same((await store.effects("t", "main", 40)).length, 1, "the journal of the step at work");
  }),

  storeTest("retention with a limit takes the oldest first, whatever lines are called", async ({ store }) => {
    const held = await start(store, "t");
    for (const step of [1, 2]) await held.step(step);
    await held.commit({ checkpoint: checkpoint(3, undefined, { branch: "main/2:0", step: 1 }), branch: "main/2:0" });
    await held.commit({ checkpoint: checkpoint(4, 3, { branch: "main/2:0", step: 2 }), branch: "main/2:0" });
    await held.commit({ release: true });
    for (const branch of ["b", "z", "a"]) {
      await fork(store, "t", branch, 1, []);
      const other = await start(store, "t", { branch, run: false });
      for (const step of [1, 2]) await other.step(step);
      await other.commit({ release: true });
    }
    const left = async (): Promise<readonly number[]> =>
      (await Promise.all(["main", "main/2:0", "b", "z", "a"].map((line) => idsOn(store, line)))).flat();
    const went: number[] = [];
    for (let before = await left(); (await store.prune({ ...everything("t"), keepLast: 1, limit: 1 })) > 0; ) {
      const after = await left();
      went.push(...before.filter((id) => !after.includes(id)));
      before = after;
    }
    same(went, [3, 5, 6, 8, 9, 11, 12], "what went, one after the other");
  }),

  storeTest("a thread that was pruned is copied and exported with what is left of it", async ({ store }) => {
    await fill(store, "t");
    await prune(store, { thread: "t", keepLast: 1 });
    const before = await portrait(store, "t");
    const elsewhere = memoryStore();
    await importThread(elsewhere, await exportThread(store, "t"));
    same(await portrait(elsewhere, "t"), before, "the thread in another store");
    await importThread(store, await exportThread(elsewhere, "t"), { as: "copy" });
    same(await portrait(store, "copy"), before, "the thread that came back");
    await prune(store, { keepLast: 1 });
    same(await portrait(store, "copy"), before, "the copy, pruned");
    await release(store, "copy", await store.claim(request("copy")));
  }),

  storeTest(
    "retention of a thread that is not there, or without a word of what to keep, is refused",
    async ({ store }) => {
      await refused(prune(store, { thread: "t", keepLast: 1 }), "unknown_thread", "no thread");
      await refused(prune(store, {}), "invalid_option", "nothing to keep");
      await refused(prune(store, { keepLast: 0 }), "invalid_option", "none to keep");
      same(await prune(store, { olderThanMs: 5 }), { threads: 0, checkpoints: 0 }, "an empty store");
      await store.vacuum();
    },
  ),
];

function everything(thread: string): PruneWrite {
  return { thread, limit: 1_000, merge: (rows) => rows };
}

async function idsOn(store: Store, line: string): Promise<readonly number[]> {
  return (await store.history("t", { branch: line, limit: 1_000 })).map(({ id }) => id);
}

/** The values of channels whose initial value is absent. */
async function valuesAt(store: Store, thread: string, checkpoint: number): Promise<Record<string, unknown[]>> {
  const rows = await store.state(thread, checkpoint);
  return Object.fromEntries(
    rows.map(({ channel, deltas }) => [
      channel,
      deltas.map(deltaOf).reduce<unknown>(applyDelta, undefined) as unknown[],
    ]),
  );
}

function deltaOf({ kind, text }: { readonly kind: Delta["kind"]; readonly text: string }): Delta {
  const data = plainCodec.decode(text);
  switch (kind) {
    case "append":
      return { kind, items: data as readonly unknown[] };
    case "patch":
      return { kind, patches: data as Extract<Delta, { kind: "patch" }>["patches"] };
    case "replace":
      return { kind, value: data };
    case "clear":
      return { kind };
  }
}
