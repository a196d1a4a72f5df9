/**
 * Conformance tests of the outbox: messages are written with their event, and each is claimed by one living owner.
 */
import type { Store } from "@statewright/core";
import type { OutboxWrite, OverduePage } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import { commitWrite, createClaimRequest, createInterrupt, createRun, forkThread, startThread } from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const consumer = "notify";

function createMessage(more: Partial<OutboxWrite> = {}): OutboxWrite {
  return { id: "m1", topic: "run.failed", payload: '{"text":"ä𝄞\\u0000"}', at: 300, ...more };
}

async function subscribe(store: Store, topics: readonly string[] = ["run.failed"]): Promise<void> {
  await store.outbox.subscribe({ consumer, topics });
}

/** Starts a thread that commits a single message for each id. */
async function writeMessages(store: Store, ids: readonly string[], thread = "t"): Promise<void> {
  const held = await startThread(store, thread);
  await held.commit({ outbox: ids.map((id, nth) => createMessage({ id, at: 300 + nth })), release: true });
}

const listIds = async (store: Store): Promise<string> =>
  (await store.outbox.list()).map(({ id, state, attempts }) => `${id} ${state} ${attempts}`).join(", ");

const claimIds = async (store: Store, at: number, limit = 10): Promise<string> =>
  (await store.outbox.claim({ consumer, at, limit })).map(({ id }) => id).join(" ");

const writeTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "a commit writes one outbox row for each consumer of the topic, and none without a subscription [SE8]",
    async ({ store, peer }) => {
      await subscribe(await peer(), ["run.failed", "run.parked"]);
      await store.outbox.subscribe({ consumer: "webhooks", topics: ["run.failed"] });
      const held = await startThread(store, "t");
      const messages = [createMessage(), createMessage({ id: "m2", topic: "run.parked" })];
      await held.commit({ outbox: [...messages, createMessage({ id: "m3", topic: "run.done" })] });
      const rows = await store.outbox.list();
      assertEqual(
        rows.map((row) => [row.consumer, row.id]),
        [
          [consumer, "m2"],
          ["webhooks", "m1"],
          [consumer, "m1"],
        ].sort((one, other) => findPosition(rows, other) - findPosition(rows, one)),
        "the rows",
      );
      const { position: _, ...row } = rows.find((each) => each.id === "m1" && each.consumer === consumer) ?? {};
      assertEqual(
        row,
        { ...createMessage(), thread: "t", branch: "main", consumer, state: "pending", attempts: 0, dueAt: 0 },
        "the row of one consumer",
      );
    },
  ),

  defineSharedStoreTest(
    "a refused commit writes no outbox row, nor does a commit of a stale writer [SE8]",
    async ({ store, peer }) => {
      await subscribe(store);
      const stale = await startThread(store, "t");
      await assertRejected(stale.commit({ outbox: [createMessage({ id: "a b" })] }), "invalid_id", "an invalid id");
      await stale.commit({ release: true });
      await (await peer()).claim(createClaimRequest("t"));
      await assertRejected(stale.commit({ outbox: [createMessage()] }), "fenced", "a stale writer");
      assertEqual(await listIds(store), "", "the outbox");
    },
  ),

  defineStoreTest("an outbox message written again under its id has no effect [SE8]", async ({ store }) => {
    await subscribe(store);
    await writeMessages(store, ["m1", "m1"]);
    await store.outbox.add([{ ...createMessage({ payload: "other" }), thread: "t", branch: "main" }]);
    assertEqual(
      (await store.outbox.list()).map(({ id, payload }) => [id, payload]),
      [["m1", createMessage().payload]],
      "the outbox",
    );
  }),

  defineStoreTest(
    "a message about an interrupt is added while the interrupt is open, and messages of deleted threads are skipped [SE8]",
    async ({ store }) => {
      await subscribe(store);
      const held = await startThread(store, "t");
      await held.commit({ interrupts: [createInterrupt({ id: "i1" }), createInterrupt({ id: "i2", answer: "{}" })] });
      const add = (id: string, thread: string, interrupt: string): Promise<void> =>
        store.outbox.add([{ ...createMessage({ id, interrupt }), thread, branch: "main" }]);
      await add("m1", "t", "i1");
      await add("m2", "t", "i2");
      await add("m3", "none", "i1");
      assertEqual(await listIds(store), "m1 pending 0", "the outbox");
    },
  ),

  defineSharedStoreTest(
    "outbox rows survive a crash, and are deleted with their thread; a copy and a fork have none [SE8]",
    async ({ store, crash }) => {
      await subscribe(store);
      const held = await startThread(store, "t");
      await held.writeStep(1);
      await held.commit({ outbox: [createMessage()], release: true });
      await forkThread(store, { branch: "b", from: 1 });
      await store.importThread({ ...(await store.exportThread("t")), id: "copy" });
      const next = await crash();
      assertEqual(await listIds(next), "m1 pending 0", "the outbox after the crash");
      await next.delete("copy");
      assertEqual(await listIds(next), "m1 pending 0", "the outbox after the copy was deleted");
      await next.delete("t");
      assertEqual(await listIds(next), "", "the outbox after the thread was deleted");
    },
  ),

  defineSharedStoreTest(
    "a consumer without topics gets no more outbox rows, and its pending rows are deleted [SE8]",
    async ({ store, peer }) => {
      await subscribe(store);
      assertEqual(await store.outbox.subscriptions(), [{ consumer, topics: ["run.failed"] }], "the subscriptions");
      await writeMessages(store, ["m1", "m2"]);
      const [first] = await store.outbox.claim({ consumer, at: 300, limit: 1 });
      await store.outbox.finish(first?.position ?? 0, { kind: "delivered", at: 400 });
      await subscribe(await peer(), []);
      await (await startThread(store, "t")).commit({ outbox: [createMessage({ id: "m3" })], release: true });
      assertEqual(await listIds(store), "m1 delivered 1", "the outbox");
      assertEqual(await store.outbox.subscriptions(), [], "the subscriptions");
    },
  ),
];

const claimTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "two owners that claim due outbox rows get each row once, the longest due first [SE8]",
    async ({ store, peer }) => {
      const other = await peer();
      await subscribe(store);
      await writeMessages(store, ["m1", "m2", "m3", "m4"]);
      assertEqual(await claimIds(store, 300, 1), "m1", "the claim of one row");
      const claims = await Promise.all([claimIds(store, 300), claimIds(other, 300), claimIds(other, 300)]);
      assertEqual(
        claims.filter((ids) => ids !== ""),
        ["m2 m3 m4"],
        "the claims of the other rows",
      );
      const rows = await store.outbox.list();
      for (const [id, retryAt] of [
        ["m2", 900],
        ["m3", 800],
        ["m4", 901],
      ] as const) {
        const { position = 0 } = rows.find((row) => row.id === id) ?? {};
        const outcome = { kind: "failed", error: "503", retryAt } as const;
        const finished = [await store.outbox.finish(position, outcome), await other.outbox.finish(position, outcome)];
        assertEqual(finished.toSorted(), [false, true], "the outcomes of the owner and of another owner");
      }
      assertEqual(await claimIds(other, 900), "m3 m2", "the claim of the rows due again");
    },
  ),

  defineSharedStoreTest(
    "an outbox row claimed by an owner that died or was closed is claimed again [SE8]",
    async ({ store, crash }) => {
      await subscribe(store);
      await writeMessages(store, ["m1"]);
      assertEqual(await claimIds(store, 300), "m1", "the first claim");
      assertEqual(await claimIds(store, 300), "", "a second claim of the living owner");
      const next = await crash();
      assertEqual(await claimIds(next, 300), "m1", "the claim after the death of the owner");
      const [row] = await next.outbox.list();
      assertEqual(await next.outbox.finish(row?.position ?? 0, { kind: "released" }), true, "the release");
      assertEqual(await claimIds(next, 300), "m1", "the claim after the release");
    },
  ),

  defineSharedStoreTest(
    "an outbox row keeps its attempts, its last error and the time of its next attempt [SE8]",
    async ({ store, peer }) => {
      await subscribe(store);
      await writeMessages(store, ["m1"]);
      const [row] = await store.outbox.claim({ consumer, at: 300, limit: 1 });
      const position = row?.position ?? 0;
      const failed = { kind: "failed", error: "503", retryAt: 900 } as const;
      assertEqual(await (await peer()).outbox.finish(position, failed), false, "the outcome of another owner");
      assertEqual(await store.outbox.finish(position, failed), true, "the outcome of the owner");
      assertEqual(await store.outbox.finish(position, failed), false, "a second outcome");
      const read = async () => {
        const [{ state, attempts, dueAt, lastError, finishedAt } = {}] = await store.outbox.list();
        return { state, attempts, dueAt, lastError, finishedAt };
      };
      assertEqual(await read(), { state: "pending", attempts: 1, dueAt: 900, lastError: "503" }, "the failed row");
      assertEqual([await claimIds(store, 899), await claimIds(store, 900)], ["", "m1"], "the claims");
      await store.outbox.finish(position, { kind: "given_up", error: "504", at: 950 });
      const end = { state: "given_up", attempts: 2, dueAt: 950, lastError: "504", finishedAt: 950 };
      assertEqual(await read(), end, "the row that was given up");
      assertEqual(await claimIds(store, 9_000), "", "a claim of a finished row");
      assertEqual(await store.outbox.retry(position, 1_000), true, "the retry");
      assertEqual(
        await read(),
        { state: "pending", attempts: 0, dueAt: 1_000, lastError: "504" },
        "the row after the retry",
      );
      assertEqual(await store.outbox.retry(position, 1_000), false, "a retry of a pending row");
    },
  ),
];

const listTests: readonly StoreTest[] = [
  defineStoreTest("the outbox lists rows newest first, by filter and page by page [SE8]", async ({ store }) => {
    await subscribe(store);
    await writeMessages(store, ["m1", "m2"]);
    await writeMessages(store, ["n1"], "u");
    const list = async (filter: Parameters<Store["outbox"]["list"]>[0]): Promise<string> =>
      (await store.outbox.list(filter)).map(({ id }) => id).join(" ");
    assertEqual(await list({}), "n1 m2 m1", "all rows");
    assertEqual(await list({ thread: "t" }), "m2 m1", "the rows of a thread");
    assertEqual([await list({ state: "given_up" }), await list({ topic: "x" })], ["", ""], "rows that do not exist");
    const [first] = await store.outbox.list({ limit: 1 });
    assertEqual(await list({ before: first, limit: 1 }), "m2", "the second page");
    const invalid = { state: "sent" } as unknown;
    await assertRejected(store.outbox.list(invalid as { state: "pending" }), "invalid_option", "an unknown state");
  }),

  defineStoreTest(
    "finished outbox rows are deleted after their retention, except those about an open interrupt [SE8]",
    async ({ store }) => {
      await subscribe(store);
      const held = await startThread(store, "t");
      const messages = [createMessage(), createMessage({ id: "m2", interrupt: "i" }), createMessage({ id: "m3" })];
      await held.commit({ interrupts: [createInterrupt({})], outbox: messages });
      for (const { position } of await store.outbox.claim({ consumer, at: 300, limit: 2 }))
        await store.outbox.finish(position, { kind: "delivered", at: 400 });
      const sweep = (finishedBefore: number) => store.outbox.sweep({ consumer, finishedBefore, limit: 10 });
      assertEqual([await sweep(400), await sweep(401)], [0, 1], "the numbers of deleted rows");
      assertEqual(await listIds(store), "m3 pending 0, m2 delivered 1", "the outbox");
      await held.commit({ interrupts: [createInterrupt({ answer: "{}", answeredAt: 500 })] });
      assertEqual(await sweep(401), 1, "the number of deleted rows after the answer");
    },
  ),

  defineStoreTest(
    "overdue interrupts are listed in order up to the first that was raised later, page by page [SE8]",
    async ({ store }) => {
      for (const [thread, raisedAt] of [
        ["a", 100],
        ["b", 110],
        ["c", 300],
        ["d", 120],
      ] as const) {
        const held = await startThread(store, thread);
        const run = { ...createRun("r1"), thread, status: "waiting" } as const;
        await held.commit({ run, interrupts: [createInterrupt({ id: `i${thread}`, raisedAt })], release: true });
      }
      const page = { consumer, topic: "run.waiting", limit: 10 };
      const list = async (more: Partial<OverduePage> & { readonly raisedBy: number }): Promise<string> =>
        (await store.outbox.overdue({ ...page, ...more })).map(({ thread, id }) => `${thread}:${id}`).join(" ");
      assertEqual(await list({ raisedBy: 99 }), "", "interrupts before all");
      assertEqual(await list({ raisedBy: 200 }), "a:ia b:ib", "overdue interrupts");
      assertEqual(await list({ raisedBy: 400 }), "a:ia b:ib c:ic d:id", "all interrupts");
      const [first] = await store.outbox.overdue({ ...page, raisedBy: 200, limit: 1 });
      assertEqual(await list({ raisedBy: 200, after: first }), "b:ib", "the second page");
      await subscribe(store, ["run.waiting"]);
      const message = createMessage({ topic: "run.waiting", interrupt: "ic" });
      await store.outbox.add([{ ...message, thread: "c", branch: "main" }]);
      assertEqual(await list({ raisedBy: 400 }), "a:ia b:ib d:id", "the interrupts without a message");
      await store.delete("a");
      assertEqual(await list({ raisedBy: 200 }), "b:ib", "the interrupts after the deletion of a thread");
      await answerInterrupt(store, "b", createInterrupt({ id: "ib", raisedAt: 110, answer: "{}", answeredAt: 500 }));
      assertEqual(await list({ raisedBy: 400 }), "d:id", "the interrupts after an answer");
    },
  ),
];

async function answerInterrupt(
  store: Store,
  thread: string,
  interrupt: ReturnType<typeof createInterrupt>,
): Promise<void> {
  const { epoch, nextSeq: seq } = await store.claim(createClaimRequest(thread));
  await commitWrite(store, { thread, branch: "main", epoch, seq, interrupts: [interrupt], release: true });
}

function findPosition(
  rows: readonly { readonly consumer: string; readonly id: string; readonly position: number }[],
  [of, id]: readonly string[],
): number {
  return rows.find((row) => row.consumer === of && row.id === id)?.position ?? 0;
}

/** Tests of the outbox of a store. */
export const outboxTests: readonly StoreTest[] = [...writeTests, ...claimTests, ...listTests];
