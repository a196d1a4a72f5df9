/** Conformance tests of requests and hints: any process asks for the end of a run, and hears of new inputs. */
import type { RunStatus, Store } from "@statewright/core";
import type { HintKind, InputCounts, RunRequestWrite } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import { createCheckpoint, createInboxMessage, createRun, startThread } from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const createRequest = (more: Partial<RunRequestWrite> = {}): RunRequestWrite => ({
  ...{ thread: "t", id: "q1", kind: "cancel", at: 400 },
  ...more,
});

const listIds = async (store: Store): Promise<string> => (await store.requests("t")).map(({ id }) => id).join(" ");

const listRequested = async (store: Store): Promise<readonly string[]> =>
  (await store.claimable({ kind: "requested", limit: 10 })).map(({ thread, id }) => `${thread} ${id}`);

const createQueuedRun = (id: string) =>
  ({ ...createRun(id), status: "queued", input: "1", queuedAt: 300, startedAt: 300 }) as const;

export const requestTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "any process can add a request to a run at work, and every process reads it unchanged [PK11]",
    async ({ store, peer }) => {
      await startThread(store, "t");
      const given = { reason: "ä𝄞\u0000", by: "ann", until: 900, at: 401 };
      const added = await (await peer()).request(createRequest({ kind: "pause", ...given }));
      const request = { id: "q1", branch: "main", run: "r1", kind: "pause", ...given };
      assertEqual({ ...added.request }, request, "the returned request");
      assertEqual([added.isNew, added.run.id, added.run.status], [true, "r1", "running"], "the run");
      assertEqual(await store.requests("t"), [request], "the requests read by the owner");
      assertEqual(await (await peer()).requests("t"), [request], "the requests read by another process");
    },
  ),

  defineStoreTest(
    "the first request of a run counts: a later one changes nothing, except a cancel after a pause [PK11]",
    async ({ store }) => {
      await startThread(store, "t");
      const pause = await store.request(createRequest({ id: "p1", kind: "pause" }));
      const again = await store.request(createRequest({ id: "p2", kind: "pause", reason: "later" }));
      assertEqual([again.isNew, again.request], [false, pause.request], "the second pause");
      const cancel = await store.request(createRequest({ id: "c1" }));
      assertEqual(cancel.isNew, true, "the cancel after the pause is new");
      for (const kind of ["cancel", "pause"] as const) {
        const late = await store.request(createRequest({ id: `late-${kind}`, kind }));
        assertEqual([late.isNew, late.request], [false, cancel.request], `a ${kind} after the cancel`);
      }
      assertEqual(await listIds(store), "p1 c1", "the requests");
    },
  ),

  defineStoreTest("a cancel of a queued run removes the run from the queue at once [PK11]", async ({ store }) => {
    await startThread(store, "t");
    for (const id of ["w1", "w2"]) await store.enqueue({ thread: "t", run: createQueuedRun(id) });
    await store.request(createRequest({ id: "p1", run: "w1", kind: "pause" }));
    const outcome = await store.request(createRequest({ run: "w1", reason: "no", at: 500 }));
    const { status, reason, endedAt, input } = outcome.run;
    assertEqual([status, reason, endedAt, input], ["cancelled", "no", 500, undefined], "the run");
    assertEqual([outcome.isNew, outcome.request], [true, undefined], "the outcome");
    assertEqual(await store.requests("t"), [], "the requests");
    assertEqual(await store.countInputs(["t"]), [{ queued: 1, messages: 0, requests: 0 }], "the inputs");
  }),

  defineStoreTest(
    "a request without a run is about the unfinished run of the branch, then about its first queued run [PK11]",
    async ({ store }) => {
      const held = await startThread(store, "t");
      await store.enqueue({ thread: "t", run: createQueuedRun("w1") });
      assertEqual((await store.request(createRequest({ id: "p1", kind: "pause" }))).run.id, "r1", "the run at work");
      await held.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
      assertEqual((await store.request(createRequest({ id: "p2", kind: "pause" }))).run.id, "w1", "the queued run");
      await store.request(createRequest({ id: "c1" }));
      const late = await store.request(createRequest({ id: "c2" }));
      assertEqual([late.run.id, late.run.status, late.isNew], ["r1", "done", false], "a branch without work");
      assertEqual(await listIds(store), "", "the requests");
    },
  ),

  defineStoreTest(
    "a request is refused for a missing thread, branch or run, and for a name outside the grammar [PK11]",
    async ({ store }) => {
      await assertRejected(store.request(createRequest()), "unknown_thread", "a missing thread");
      await startThread(store, "t");
      await assertRejected(store.request(createRequest({ branch: "b" })), "unknown_branch", "a missing branch");
      await assertRejected(store.request(createRequest({ run: "r9" })), "unknown_run", "a missing run");
      await assertRejected(store.request(createRequest({ id: "a b" })), "invalid_id", "an invalid id");
      assertEqual(await store.requests("t"), [], "the requests");
    },
  ),

  defineStoreTest(
    "the commit that ends a run removes its requests, and another commit those that it names [PK11]",
    async ({ store }) => {
      const held = await startThread(store, "t");
      await store.request(createRequest({ id: "p1", kind: "pause" }));
      await held.commit({ handledRequests: ["p1"], run: { ...createRun("r1"), status: "paused" } });
      assertEqual(await listIds(store), "", "after the pause");
      await store.request(createRequest({ id: "c1" }));
      await held.commit({ run: { ...createRun("r1"), status: "waiting" } });
      assertEqual(await listIds(store), "c1", "while the run waits");
      await held.commit({ run: { ...createRun("r1"), status: "cancelled" }, release: true });
      assertEqual(await listIds(store), "", "after the end");
      assertEqual(await store.countInputs(["t"]), [{ queued: 0, messages: 0, requests: 0 }], "the inputs");
    },
  ),

  defineStoreTest(
    "a request with a key that is known returns its outcome without a write, also after it was handled [PK11]",
    async ({ store }) => {
      const held = await startThread(store, "t");
      const first = await store.request(createRequest({ key: "k" }));
      await held.commit({ run: { ...createRun("r1"), status: "cancelled" }, release: true });
      const next = await startThread(store, "t", { run: false });
      await next.commit({ run: createRun("r2") });
      const again = await store.request(createRequest({ id: "q2", key: "k" }));
      assertEqual([again.isNew, again.run.id, again.run.status], [false, "r1", "cancelled"], "the repeated request");
      assertEqual(again.request, { ...first.request, handled: true }, "the kept request");
      assertEqual(await store.requests("t"), [], "the requests that are not handled");
    },
  ),

  defineSharedStoreTest(
    "a run at rest with a request is claimable, and a queued run or a run at work is not [PK11]",
    async ({ store, crash }) => {
      const statuses: readonly RunStatus[] = ["waiting", "paused", "failed", "parked"];
      for (const status of statuses) {
        const held = await startThread(store, status);
        await held.commit({ run: { ...createRun("r1"), thread: status, status }, release: true });
        await store.request(createRequest({ thread: status }));
      }
      await startThread(store, "dies");
      await store.request(createRequest({ thread: "dies" }));
      const next = await crash();
      await startThread(next, "works");
      await next.request(createRequest({ thread: "works" }));
      await next.enqueue({ thread: "works", run: createQueuedRun("w1") });
      await next.request(createRequest({ thread: "works", run: "w1", id: "q2", kind: "pause" }));
      const found = await next.claimable({ kind: "requested", limit: 10 });
      assertEqual(
        found.map(({ thread, status }) => `${thread} ${status}`).toSorted(),
        ["dies crashed", "failed failed", "parked parked", "paused paused", "waiting waiting"],
        "the claimable runs",
      );
      const [first] = await next.claimable({ kind: "requested", limit: 1 });
      const rest = await next.claimable({ kind: "requested", limit: 10, after: first });
      assertEqual(rest.length, 4, "the runs after the first page");
    },
  ),

  defineSharedStoreTest(
    "every claim and every commit returns the numbers of queued runs, messages and requests [PK5]",
    async ({ store, peer }) => {
      const other = await peer();
      const held = await startThread(store, "t");
      let counts: InputCounts | undefined;
      const write = (more = {}) =>
        new Promise<void>((resolve, reject) => {
          const { epoch } = held.claim;
          store.commit({ thread: "t", branch: "main", epoch, seq: 9, ...more }, (failure, given) => {
            counts = given;
            if (failure === undefined) resolve();
            else reject(failure);
          });
        });
      await write();
      assertEqual(counts, { queued: 0, messages: 0, requests: 0 }, "without inputs");
      await other.enqueue({ thread: "t", run: createQueuedRun("w1") });
      for (const id of ["l1", "l2"]) await other.post({ thread: "t", ...createInboxMessage({ id }) });
      await other.request(createRequest({ id: "p1", kind: "pause" }));
      await write();
      assertEqual(counts, { queued: 1, messages: 2, requests: 1 }, "with inputs");
      assertEqual(
        await other.countInputs(["x", "t"]),
        [
          { queued: 0, messages: 0, requests: 0 },
          { queued: 1, messages: 2, requests: 1 },
        ],
        "the inputs counted by another process",
      );
      await write({ run: createRun("r1"), deliveredMessages: ["l1"] });
      assertEqual(counts, { queued: 1, messages: 1, requests: 1 }, "after a delivery");
      await write({ run: { ...createRun("r1"), status: "cancelled" }, rolledBackRun: "r1", release: true });
      assertEqual(counts, { queued: 1, messages: 2, requests: 0 }, "after a rollback");
      const { claim } = await startThread(other, "t", { run: false });
      assertEqual([claim.queued, claim.messages, claim.requests], [1, 2, 0], "the claim");
    },
  ),

  defineStoreTest("a refused commit changes no number of waiting inputs [PK5]", async ({ store }) => {
    const held = await startThread(store, "t");
    await store.post({ thread: "t", ...createInboxMessage({ id: "l1" }) });
    const run = createRun("r1");
    await assertRejected(
      held.commit({ run, deliveredMessages: ["l1"], checkpoint: createCheckpoint(9, 8, {}) }),
      "store_failed",
      "a commit with a gap",
    );
    let counts: InputCounts | undefined;
    await new Promise<void>((resolve) => {
      store.commit({ thread: "t", branch: "main", epoch: held.claim.epoch, seq: 9 }, (_, given) => {
        counts = given;
        resolve();
      });
    });
    assertEqual(counts, { queued: 0, messages: 1, requests: 0 }, "the inputs");
  }),

  defineStoreTest(
    "a listener hears of inputs and changes of threads after they are durable, until it stops [PK12]",
    async ({ store }) => {
      const heard: string[] = [];
      const heardInputs: string[] = [];
      const stop = store.watch?.((thread, kind) => void heard.push(`${thread} ${kind}`));
      const stopInputs = store.watch?.((thread: string, kind: HintKind) => void heardInputs.push(`${thread} ${kind}`), {
        kinds: ["input"],
      });
      // A store without hints is polled.
      if (stop === undefined || stopInputs === undefined) return;
      const takeHeard = (): readonly string[] => [...new Set(heard.splice(0))];
      await startThread(store, "t");
      assertEqual(takeHeard(), ["t change"], "a first run");
      await store.post({ thread: "t", ...createInboxMessage({ id: "l1" }) });
      assertEqual(takeHeard(), ["t input"], "a message");
      await store.enqueue({ thread: "t", run: createQueuedRun("w1") });
      assertEqual(takeHeard(), ["t input"], "a queued run");
      await store.request(createRequest());
      assertEqual(takeHeard(), ["t input"], "a request");
      assertEqual(heardInputs.splice(0), ["t input", "t input", "t input"], "the hints about inputs alone");
      stop();
      stopInputs();
      await store.post({ thread: "t", ...createInboxMessage({ id: "l2" }) });
      assertEqual([heard, heardInputs], [[], []], "the hints after the end");
    },
  ),

  defineStoreTest("a thread is deleted with its requests, and the counts are zero [PK11]", async ({ store }) => {
    const held = await startThread(store, "t");
    await store.request(createRequest({ key: "k" }));
    await held.commit({ run: { ...createRun("r1"), status: "waiting" }, release: true });
    assertEqual(await listRequested(store), ["t r1"], "the claimable runs");
    await store.delete("t");
    assertEqual(await store.requests("t"), [], "the requests");
    assertEqual(await listRequested(store), [], "the claimable runs of the deleted thread");
    await startThread(store, "t");
    assertEqual(await store.countInputs(["t"]), [{ queued: 0, messages: 0, requests: 0 }], "the inputs");
  }),

  defineStoreTest("a thread is exported and imported with its requests [PK11]", async ({ store }) => {
    const held = await startThread(store, "t");
    await store.request(createRequest({ id: "p1", kind: "pause", by: "ann", key: "k" }));
    await held.commit({ run: { ...createRun("r1"), status: "waiting" }, release: true });
    await store.request(createRequest({ id: "c1", reason: "no" }));
    const requests = await store.requests("t");
    const exported = await store.exportThread("t");
    await store.delete("t");
    await store.importThread(exported);
    assertEqual(await store.requests("t"), requests, "the requests");
    assertEqual(await store.countInputs(["t"]), [{ queued: 0, messages: 0, requests: 2 }], "the inputs");
    assertEqual(await listRequested(store), ["t r1"], "the claimable runs");
    assertEqual((await store.request(createRequest({ id: "p2", key: "k" }))).request?.id, "p1", "the known key");
  }),
];
