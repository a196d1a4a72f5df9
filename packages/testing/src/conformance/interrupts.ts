/** Conformance tests of interrupts: interrupt rows, and the list of open interrupts of all threads. */

import type { Store } from "@statewright/core";
import type { InterruptRow, OpenInterruptFilter } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import {
  createCheckpoint,
  createEffect,
  createInterrupt,
  createRun,
  forkThread,
  type StartedThread,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

export const interruptTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "an interrupt is read back with its times, its expiry and its answer",
    async ({ store, peer }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1);
      const rows = [
        createInterrupt({ id: "open", expiresAt: 2_000, onExpire: '{"ok":false}', about: "a1" }),
        createInterrupt({ id: "gone", expiresAt: 3_000, expiredAt: 3_500 }),
        createInterrupt({
          id: "taken",
          expiresAt: 4_000,
          onExpire: "1",
          expiredAt: 4_001,
          answer: "1",
          answeredAt: 4_001,
        }),
        createInterrupt({
          id: "given",
          answer: "2",
          answeredAt: 5_000,
          answeredBy: "ann ä'\"",
          answerKey: "k",
          answeredRun: "r1",
        }),
      ];
      await thread.commit({ interrupts: rows });
      assertEqual(await (await peer()).interrupts("t", "main"), rows, "the interrupts");
    },
  ),

  defineSharedStoreTest("open interrupts of all threads are one list, newest first", async ({ store, crash }) => {
    const [one, two] = [await startThread(store, "t"), await startThread(store, "u", { graph: "h" })];
    await commitWaiting(one, {
      interrupts: [
        createInterrupt({ id: "a", raisedAt: 900 }),
        createInterrupt({ id: "b", key: "sign", expiresAt: 5_000 }),
      ],
      release: true,
    });
    await commitWaiting(two, { interrupts: [createInterrupt({ id: "a" })], release: true });
    const next = await crash();
    const all = await next.openInterrupts();
    assertEqual(
      all.map(({ position: _, ...row }) => row),
      [
        { ...createInterrupt({ id: "a" }), thread: "u", run: "r1", graph: "g" },
        { ...createInterrupt({ id: "b", key: "sign", expiresAt: 5_000 }), thread: "t", run: "r1", graph: "g" },
        { ...createInterrupt({ id: "a", raisedAt: 900 }), thread: "t", run: "r1", graph: "g" },
      ],
      "the interrupts",
    );
    const listPlaces = (filter: OpenInterruptFilter) =>
      next.openInterrupts(filter).then((rows) => rows.map(({ position }) => position));
    const [last, middle, first] = all.map(({ position }) => position);
    assertEqual(await listPlaces({ thread: "t" }), [middle, first], "the interrupts of a thread");
    assertEqual(await listPlaces({ key: "sign" }), [middle], "the interrupts with a key");
    assertEqual(await listPlaces({ graph: "g" }), [last, middle, first], "the interrupts of a graph");
    assertEqual(await listPlaces({ graph: "none" }), [], "the interrupts of another graph");
    assertEqual(await listPlaces({ at: 4_999 }), [last, middle, first], "the interrupts before an expiry time");
    assertEqual(await listPlaces({ at: 5_000 }), [last, first], "the interrupts at an expiry time");
    assertEqual(await listPlaces({ limit: 2 }), [last, middle], "a page");
    assertEqual(await listPlaces({ limit: 2, before: all[1] }), [first], "the next page");
    assertEqual(await listPlaces({ thread: "t", before: all[1], limit: 5 }), [first], "the next page, of a thread");
    assertEqual(await listPlaces({ thread: "none" }), [], "the interrupts of an unknown thread");
  }),

  defineStoreTest(
    "open interrupts are filtered by all requested metadata of their waiting run [FX42]",
    async ({ store }) => {
      for (const [id, metadata] of [
        ["t", { tenant: "acme", urgent: true, seats: 3 }],
        ["u", { tenant: "acme", urgent: false }],
        ["v", undefined],
      ] as const) {
        const thread = await startThread(store, id, { run: false });
        const run = { ...createRun("r1"), thread: id, status: "waiting", ...(metadata && { metadata }) } as const;
        await thread.commit({ run, interrupts: [createInterrupt({ id: "q" })], release: true });
      }
      const listThreads = async (metadata: OpenInterruptFilter["metadata"]) =>
        (await store.openInterrupts(metadata === undefined ? {} : { metadata })).map(({ thread }) => thread);
      assertEqual(await listThreads(undefined), ["v", "u", "t"], "without a filter");
      assertEqual(await listThreads({}), ["v", "u", "t"], "with an empty filter");
      assertEqual(await listThreads({ tenant: "acme" }), ["u", "t"], "of a tenant");
      assertEqual(await listThreads({ tenant: "acme", urgent: true }), ["t"], "with both values");
      assertEqual(await listThreads({ seats: "3" }), [], "with a value of another type");
      assertEqual(
        (await store.openInterrupts({ thread: "t", metadata: { tenant: "acme" } })).length,
        1,
        "of a thread and a tenant",
      );
      assertEqual(
        (await store.openInterrupts({ thread: "v", metadata: { tenant: "acme" } })).length,
        0,
        "of a thread without metadata",
      );
      const nested = { metadata: { tenant: { id: 1 } as never } };
      await assertRejected(store.openInterrupts(nested), "invalid_option", "a value that cannot be compared");
    },
  ),

  defineStoreTest(
    "an open interrupt is listed whatever the status of its run, until it is answered, expires, or its superstep or run ends [FX5]",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      const [first, second] = [createInterrupt({ id: "first" }), createInterrupt({ id: "second" })];
      await commitWaiting(thread, { interrupts: [first, second], release: false });
      assertEqual(await listIds(store), ["second", "first"], "both");
      await thread.commit({ interrupts: [{ ...first, answer: "1", answeredAt: 400 }] });
      assertEqual(await listIds(store), ["second"], "the open interrupts after an answer");
      for (const status of ["running", "paused", "parked", "failed"] as const) {
        await thread.commit({ run: { ...createRun("r1"), status } });
        assertEqual(await listIds(store), ["second"], `the open interrupts of a run that is ${status}`);
      }
      await commitWaiting(thread, { interrupts: [createInterrupt({ id: "other" })], release: false });
      assertEqual(await listIds(store), ["other"], "the interrupts of a run that waits for others");
      await commitWaiting(thread, { interrupts: [second], release: false });
      assertEqual(await listIds(store), ["second"], "asked again");
      await thread.commit({ interrupts: [{ ...second, expiredAt: 500 }] });
      assertEqual(await listIds(store), [], "the open interrupts after an expiry");
      await commitWaiting(thread, { interrupts: [createInterrupt({ id: "third" })], release: false });
      await thread.commit({ run: { ...createRun("r1"), status: "cancelled", endedAt: 600 } });
      await thread.commit({ run: { ...createRun("r2"), status: "waiting" } });
      assertEqual(await listIds(store), [], "the interrupt of a cancelled run while the next run waits");
      await thread.commit({ interrupts: [createInterrupt({ id: "fourth" })] });
      assertEqual(await listIds(store), ["fourth"], "an interrupt written without a run");
      await thread.writeStep(1);
      assertEqual(await listIds(store), ["fourth"], "an interrupt of the step of the checkpoint");
      await thread.writeStep(2);
      assertEqual(await listIds(store), [], "the interrupts after the superstep");
    },
  ),

  defineStoreTest(
    "an interrupt of a running run is listed until its superstep or its run ends [FX2]",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.commit({ interrupts: [createInterrupt({ id: "first" })] });
      assertEqual(await listIds(store), ["first"], "the open interrupts of the running run");
      const checkpoint = createCheckpoint(2, undefined);
      const interrupts = [createInterrupt({ id: "second", step: 2 })];
      await thread.commit({ run: createRun("r1"), checkpoint, interrupts });
      assertEqual(await listIds(store), ["second"], "the open interrupts of the next step");
      await thread.commit({ run: { ...createRun("r1"), status: "done", endedAt: 500 } });
      assertEqual(await listIds(store), [], "the open interrupts of the finished run");
    },
  ),

  defineStoreTest(
    "an interrupt raised in the superstep of a failure is stored with the failed run and listed at once [FX5]",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      const interruptRow = createInterrupt({ id: "beside", about: "a1", tool: "pay" });
      await thread.commit({ run: { ...createRun("r1"), status: "failed", endedAt: 500 }, interrupts: [interruptRow] });
      assertEqual(await store.interrupts("t", "main"), [interruptRow], "the interrupts of the branch");
      assertEqual(await listIds(store), ["beside"], "the open interrupts of the failed run");
      await thread.commit({ run: { ...createRun("r1"), status: "running" } });
      await commitWaiting(thread, { interrupts: [interruptRow], release: false });
      assertEqual(await listIds(store), ["beside"], "the open interrupts of the waiting run");
    },
  ),

  defineStoreTest("each branch has its own interrupts", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(1);
    await commitWaiting(thread, { interrupts: [createInterrupt({ id: "q" })], release: true });
    const answered = { ...createInterrupt({ id: "q" }), answer: "1", answeredAt: 5 };
    await forkThread(store, { branch: "b", from: 1, interrupts: [answered] });
    assertEqual(await listIds(store), ["q"], "the open interrupts next to a fork with a copied answer");
    const branch = await startThread(store, "t", { branch: "b", run: false });
    const waiting = { ...createRun("r2"), branch: "b", status: "waiting" } as const;
    await branch.commit({ run: waiting, interrupts: [createInterrupt({ id: "q", branch: "b" })], release: true });
    assertEqual(
      (await store.openInterrupts({ thread: "t" })).map(({ branch: name, run: id }) => [name, id]),
      [
        ["b", "r2"],
        ["main", "r1"],
      ],
      "the interrupts of both branches",
    );
  }),

  defineStoreTest("a list of interrupts refuses an unknown filter and a limit of 0", async ({ store }) => {
    const unknown = { node: "approve" } as OpenInterruptFilter;
    await assertRejected(store.openInterrupts(unknown), "invalid_option", "an unknown filter");
    await assertRejected(store.openInterrupts({ limit: 0 }), "invalid_option", "a limit of 0");
  }),

  defineStoreTest(
    "a checkpoint keeps the journal rows of once tasks and once effects when it folds a superstep",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1);
      const [node, started] = [
        createTaskEffect({ key: "", effect: "once", outcome: '{"writes":[]}' }),
        createTaskEffect({ task: "1:1", key: "", effect: "once", state: "started" }),
      ];
      const pay = createTaskEffect({
        task: "1:2",
        key: "pay",
        kind: "tool",
        effect: "once",
        outcome: "1",
        args: "00ff",
      });
      await thread.commit({ effects: [node, started, pay, createTaskEffect({ task: "1:3", key: "", outcome: "2" })] });
      await thread.writeStep(2);
      assertEqual(await store.effects("t", "main", 1), [node, started, pay], "the folded superstep");
      const late = { ...node, step: 2, task: "2:0" };
      await thread.commit({ checkpoint: createCheckpoint(3, 2), effects: [late] });
      assertEqual(
        await store.effects("t", "main", 2),
        [late],
        "a journal row in the same commit as the checkpoint that folds it",
      );
    },
  ),

  defineStoreTest(
    "the attempts, processes and tokens of an effect survive the checkpoint that folds its superstep [ND8, ND13]",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1);
      const attemptLog = [
        { startedAt: 110, error: "process_died" },
        { startedAt: 190, endedAt: 195, error: "rate_limit", model: "small", usage: { inputTokens: 7 } },
        { startedAt: 200, endedAt: 240 },
      ];
      const usage = { inputTokens: 7, outputTokens: 0, reasoningTokens: 2, model: "other" };
      const repeated = { attempts: 3, processes: 2, attemptLog, startedAt: 190, endedAt: 240, usage };
      const plain = createEffect({ step: 1, key: "plain", usage: { outputTokens: 3 } });
      const folded = createEffect({ step: 1, key: "folded", ...repeated });
      const once = createEffect({ step: 1, task: "1:1", key: "once", effect: "once", outcome: "1", ...repeated });
      await thread.commit({ checkpoint: createCheckpoint(2, 1), effects: [plain, folded] });
      assertEqual(await store.effects("t", "main", 1), [plain, folded], "effects without rows of their own");
      const later = [plain, folded, once].map((row) => ({ ...row, step: 2 }));
      await thread.commit({ effects: later.map((row) => ({ ...row, state: "started" })) });
      await thread.commit({ effects: later });
      await thread.commit({ checkpoint: createCheckpoint(3, 2) });
      assertEqual(await store.effects("t", "main", 2), later, "effects with rows of their own");
    },
  ),
];

/** Commits the run of a thread as waiting, with interrupts. */
function commitWaiting(
  thread: StartedThread,
  { interrupts, release }: { readonly interrupts: readonly InterruptRow[]; readonly release: boolean },
): Promise<void> {
  const { thread: id, branch } = { ...thread.request, branch: thread.claim.branch };
  return thread.commit({ run: { ...createRun("r1"), thread: id, branch, status: "waiting" }, interrupts, release });
}

async function listIds(store: Store): Promise<readonly string[]> {
  return (await store.openInterrupts()).map(({ id }) => id);
}

function createTaskEffect(more: Partial<Parameters<typeof createEffect>[0]>): ReturnType<typeof createEffect> {
  return createEffect({ step: 1, kind: "task", ...more });
}
