/** Conformance tests of threads as rows of their own: creation, change, tenants, runs by id, counts. */

import { listInterrupts, type Store } from "@statewright/core";
import {
  copyThread,
  countThreads,
  createThread,
  exportThread,
  getRun,
  importThread,
  listRuns,
  listThreads,
  updateThread,
} from "@statewright/core/inspect";
import type { RunRow, ThreadFilter } from "@statewright/core/store";
import { assertEqual, assertRejected, assertTrue } from "./assert.ts";
import {
  createClaimRequest,
  createInterrupt,
  createRun,
  forkThread,
  releaseThread,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const details = { title: "Trip to Oslo", metadata: { project: "atlas", nth: 3 }, tenant: "acme", owner: "ada" };

/** Writes a run in a status on a thread that it creates, and releases the thread. */
async function writeRun(store: Store, row: Partial<RunRow> & Pick<RunRow, "id" | "thread">): Promise<void> {
  const { thread, tenant, owner, graph, startedAt: at = 100 } = row;
  const claim = { at, tenant, owner, ...(graph === undefined ? {} : { graph }), run: false };
  const held = await startThread(store, thread, claim);
  await held.commit({ run: { ...createRun(row.id), ...row }, release: true });
}

async function listIds(store: Store, filter: ThreadFilter): Promise<string> {
  return (await store.threads(filter)).map(({ id }) => id).join(" ");
}

const creationTests: readonly StoreTest[] = [
  defineStoreTest(
    "a thread can be created before its first run, and is listed, read and deleted [SE4]",
    async ({ store }) => {
      const row = await store.createThread({ thread: "t", at: 100, ...details });
      const expected = { id: "t", createdAt: 100, updatedAt: 100, headBranch: "main", ...details };
      assertEqual(row, expected, "the row of the new thread");
      assertEqual(await store.thread("t"), expected, "the row read again");
      assertEqual(await store.threads(), [expected], "the list");
      assertEqual(await store.branches("t"), [{ name: "main" }], "the branches");
      assertEqual([await store.head("t"), await store.runs({ thread: "t" })], [null, []], "head and runs");
      await store.delete("t");
      assertEqual(await store.thread("t"), undefined, "the thread after its deletion");
      assertEqual(await listIds(store, { metadata: { project: "atlas" } }), "", "the list after the deletion");
    },
  ),

  defineStoreTest("a second creation of a thread is refused, or keeps the thread as it is [SE4]", async ({ store }) => {
    await store.createThread({ thread: "t", at: 100, ...details });
    await assertRejected(store.createThread({ thread: "t", at: 200 }), "thread_exists", "the second creation");
    const kept = await store.createThread({ thread: "t", at: 200, title: "Other", ifExists: "keep" });
    assertEqual([kept.title, kept.updatedAt], [details.title, 100], "the kept thread");
    const other = store.createThread({ thread: "t", at: 200, tenant: "other", ifExists: "keep" });
    await assertRejected(other, "invalid_option", "the creation for another tenant");
    await startThread(store, "run");
    await assertRejected(
      store.createThread({ thread: "run", at: 1 }),
      "thread_exists",
      "the creation of a claimed thread",
    );
  }),

  defineStoreTest(
    "the first claim of a created thread takes its graph and keeps its idempotency keys [SE4]",
    async ({ store }) => {
      await store.createThread({ thread: "t", at: 100, keySalt: "salt", ...details });
      const claim = await store.claim(createClaimRequest("t", { at: 200, mustExist: true, keySalt: "other" }));
      assertEqual([claim.keySalt, claim.tenant, claim.head, claim.nextSeq], ["salt", "acme", null, 1], "the claim");
      await releaseThread(store, "t", claim);
      const { graph, version, title, createdAt } = (await store.thread("t")) ?? {};
      assertEqual([graph, version, title, createdAt], ["g", 1, details.title, 100], "the claimed thread");
      const held = await startThread(store, "t", { at: 300 });
      await held.writeStep(1);
      await held.commit({ run: { ...createRun("r1"), status: "done", tenant: "acme" }, release: true });
      assertEqual((await store.thread("t"))?.status, "done", "the status after the first run");
    },
  ),

  defineStoreTest(
    "a run can be queued on a created thread, and the thread has no status until it starts [SE4]",
    async ({ store }) => {
      await store.createThread({ thread: "t", at: 100, tenant: "acme" });
      const run = { ...createRun("r1"), status: "queued", input: '"in"', queuedAt: 110 } as const;
      assertEqual((await store.enqueue({ thread: "t", run })).tenant, "acme", "the tenant of the queued run");
      assertEqual((await store.thread("t"))?.status, undefined, "the status of the thread");
      const counts = await store.countThreads({ tenant: "acme" });
      assertEqual([counts.total, counts.withoutRun], [1, 1], "the counted threads");
      assertEqual(
        (await store.claimable({ kind: "queued", limit: 5 })).map(({ id }) => id),
        ["r1"],
        "the claimable runs",
      );
    },
  ),

  defineStoreTest("a fork of a created thread without a checkpoint is refused [SE4]", async ({ store }) => {
    await store.createThread({ thread: "t", at: 100 });
    await assertRejected(forkThread(store, { branch: "b", from: 1 }), "unknown_checkpoint", "the fork");
  }),

  defineStoreTest("an invalid thread is refused and nothing is created [SE4, R3]", async ({ store }) => {
    const invalid: readonly object[] = [
      { title: "" },
      { title: "x".repeat(1_001) },
      { tenant: "" },
      { owner: 7 },
      { metadata: [] },
      { metadata: { f: () => 1 } },
      { ifExists: "replace" },
      { label: "x" },
    ];
    for (const more of invalid)
      await assertRejected(
        store.createThread({ thread: "t", at: 1, ...more }),
        "invalid_option",
        `a thread with ${JSON.stringify(more)}`,
      );
    await assertRejected(store.createThread({ thread: "a b", at: 1 }), "invalid_id", "a thread with an invalid id");
    assertEqual(await store.threads(), [], "the threads");
  }),
];

const changeTests: readonly StoreTest[] = [
  defineStoreTest(
    "a change of a thread sets its title, merges its metadata and moves its last change [SE4]",
    async ({ store }) => {
      await store.createThread({ thread: "t", at: 100, ...details });
      const row = await store.updateThread("t", { at: 150, title: "Bergen", metadata: { nth: null, city: "Bergen" } });
      const { title, metadata, tenant, owner, updatedAt } = row;
      assertEqual(
        { title, metadata, tenant, owner, updatedAt },
        { ...details, title: "Bergen", metadata: { project: "atlas", city: "Bergen" }, updatedAt: 150 },
        "the changed thread",
      );
      assertEqual(await listIds(store, { metadata: { nth: 3 } }), "", "the threads with the removed key");
      assertEqual(await listIds(store, { metadata: { city: "Bergen" } }), "t", "the threads with the new key");
      await store.updateThread("t", { at: 120, title: null, metadata: { project: null, city: null } });
      const cleared = await store.thread("t");
      assertEqual([cleared?.title, cleared?.metadata, cleared?.updatedAt], [null, null, 150], "the cleared thread");
      await assertRejected(store.updateThread("none", { at: 1, title: "x" }), "unknown_thread", "an unknown thread");
      await assertRejected(store.updateThread("t", { at: 1 }), "invalid_option", "a change without a change");
    },
  ),

  defineSharedStoreTest(
    "a thread can be changed while another process runs it, and the run continues [SE4]",
    async ({ store, peer }) => {
      const held = await startThread(store, "t");
      await held.writeStep(1);
      await (await peer()).updateThread("t", { at: 5_000, title: "Named by another process" });
      await held.writeStep(2);
      await held.commit({ run: { ...createRun("r1"), status: "done", endedAt: 200 }, release: true });
      const { title, updatedAt, status } = (await store.thread("t")) ?? {};
      assertEqual([title, updatedAt, status], ["Named by another process", 5_000, "done"], "the thread after the run");
    },
  ),

  defineStoreTest("a run without details creates a thread that can get a title later [SE4]", async ({ store }) => {
    await writeRun(store, { id: "r1", thread: "t", status: "done" });
    assertEqual((await store.thread("t"))?.title, undefined, "the title before");
    assertEqual((await store.updateThread("t", { at: 300, title: "Later" })).title, "Later", "the title after");
  }),
];

const tenantTests: readonly StoreTest[] = [
  defineStoreTest(
    "tenant and owner of a run are those of the thread that it creates, and filters find both [SE4]",
    async ({ store }) => {
      for (const [nth, tenant] of ["acme", "acme", "other", undefined].entries()) {
        const parties = tenant === undefined ? {} : { tenant, owner: nth === 1 ? "bob" : "ada" };
        const status = nth === 0 ? "waiting" : "done";
        await writeRun(store, { id: `r${nth}`, thread: `t${nth}`, startedAt: 100 + nth, status, ...parties });
      }
      assertEqual(await listIds(store, { tenant: "acme" }), "t1 t0", "the threads of a tenant");
      assertEqual(await listIds(store, { owner: "ada" }), "t2 t0", "the threads of an owner");
      assertEqual(await listIds(store, { tenant: "acme", owner: "ada" }), "t0", "the threads of both");
      assertEqual(await listIds(store, { tenant: "acme", status: "done" }), "t1", "the threads of a tenant by status");
      const list = async (filter: object) => (await store.runs(filter)).map(({ id }) => id).join(" ");
      assertEqual(await list({ tenant: "acme" }), "r1 r0", "the runs of a tenant");
      assertEqual(await list({ owner: "ada" }), "r2 r0", "the runs of an owner");
      assertEqual(await list({ tenant: "other", owner: "ada" }), "r2", "the runs of both");
      assertEqual(await list({ tenant: "acme", status: ["waiting", "failed"] }), "r0", "the open runs of a tenant");
      assertEqual(await list({ tenant: "none" }), "", "the runs of an unknown tenant");
    },
  ),

  defineStoreTest("a run of another tenant than its thread is refused, started or queued [SE4]", async ({ store }) => {
    await writeRun(store, { id: "r1", thread: "t", status: "done", tenant: "acme" });
    await writeRun(store, { id: "r2", thread: "free", status: "done" });
    for (const thread of ["t", "free"]) {
      const claim = store.claim(createClaimRequest(thread, { tenant: "other" }));
      await assertRejected(claim, "invalid_option", `the claim of ${thread}`);
      const run = { ...createRun("q"), status: "queued", input: "1", queuedAt: 1, tenant: "other" } as const;
      await assertRejected(store.enqueue({ thread, run }), "invalid_option", `the queued run of ${thread}`);
    }
    const claim = await store.claim(createClaimRequest("t", { tenant: "acme", owner: "bob" }));
    assertEqual([claim.tenant, (await store.thread("t"))?.owner], ["acme", undefined], "the claim of the same tenant");
    await releaseThread(store, "t", claim);
  }),

  defineStoreTest(
    "open interrupts can be filtered by the tenant and the owner of their run [SE4]",
    async ({ store }) => {
      for (const [nth, tenant] of ["acme", "acme", "other"].entries()) {
        const [thread, owner] = [`t${nth}`, nth === 0 ? "ada" : "bob"];
        const held = await startThread(store, thread, { tenant, run: false });
        const run = { ...createRun(`r${nth}`), thread, tenant, owner };
        await held.commit({ run });
        await held.writeStep(1);
        await held.commit({ run: { ...run, status: "waiting" }, interrupts: [createInterrupt({})], release: true });
      }
      const list = async (filter: object) => (await store.openInterrupts(filter)).map(({ thread }) => thread).join(" ");
      assertEqual(await list({ tenant: "acme" }), "t1 t0", "those of a tenant");
      assertEqual(await list({ owner: "bob" }), "t2 t1", "those of an owner");
      assertEqual(await list({ tenant: "acme", owner: "bob" }), "t1", "those of both");
      assertEqual(await list({ tenant: "acme", thread: "t2" }), "", "those of a thread of another tenant");
    },
  ),
];

const listTests: readonly StoreTest[] = [
  defineStoreTest(
    "metadata of a thread and metadata of its newest run are separate filters [SE4]",
    async ({ store }) => {
      await store.createThread({ thread: "t0", at: 100, metadata: { color: "red", size: 1 } });
      await store.createThread({ thread: "t1", at: 101, metadata: { color: "red", size: 2 } });
      await writeRun(store, { id: "r2", thread: "t2", startedAt: 102, status: "done", metadata: { color: "red" } });
      assertEqual(await listIds(store, { metadata: { color: "red" } }), "t1 t0", "the metadata of threads");
      assertEqual(await listIds(store, { runMetadata: { color: "red" } }), "t2", "the metadata of runs");
      assertEqual(await listIds(store, { metadata: { color: "red", size: 2 } }), "t1", "two entries");
      assertEqual(await listIds(store, { metadata: { size: "2" } }), "", "a value of another type");
      assertEqual(await listIds(store, { metadata: { color: "red" }, limit: 1 }), "t1", "the first page");
    },
  ),

  defineStoreTest(
    "threads can be searched by the beginning of their id, a metadata value or their graph [ND12]",
    async ({ store }) => {
      await store.createThread({ thread: "order-1", at: 100, metadata: { city: "Oslo", seats: 42, paid: true } });
      await store.createThread({ thread: "order-2", at: 101, metadata: { note: "order" } });
      await writeRun(store, { id: "r", thread: "x", startedAt: 102, status: "done", graph: "orders" });
      assertEqual(await listIds(store, { search: "order-" }), "order-2 order-1", "the beginning of ids");
      assertEqual(await listIds(store, { search: "Oslo" }), "order-1", "a text value");
      assertEqual(await listIds(store, { search: "42" }), "order-1", "a number value");
      assertEqual(await listIds(store, { search: "true" }), "order-1", "a boolean value");
      assertEqual(await listIds(store, { search: "orders" }), "x", "the name of a graph");
      assertEqual(await listIds(store, { search: "order" }), "order-2 order-1", "an id and a value");
      assertEqual(await listIds(store, { search: "rder" }), "", "a part of an id");
      assertEqual(await listIds(store, { search: "%" }), "", "a wildcard of SQL");
      assertEqual(await listIds(store, { search: "" }), "x order-2 order-1", "an empty text");
      assertEqual((await store.countThreads({ search: "order-" })).total, 2, "the counted threads");
    },
  ),

  defineStoreTest(
    "a run is found by its id over all threads, also in a copy of its thread, or over those of a tenant and an owner [SE3]",
    async ({ store }) => {
      await writeRun(store, { id: "r1", thread: "t", status: "done", tenant: "acme" });
      await writeRun(store, { id: "r2", thread: "u", status: "waiting" });
      assertEqual(
        [(await getRun(store, "r2"))?.thread, (await getRun(store, "r1"))?.tenant],
        ["u", "acme"],
        "the runs",
      );
      assertEqual(await getRun(store, "r9"), undefined, "an unknown run");
      await copyThread(store, "t", "copy");
      assertEqual((await getRun(store, "r1"))?.thread, "t", "the run of a copied thread");
      await writeRun(store, { id: "r1", thread: "v", status: "done", tenant: "globex", owner: "bob" });
      assertEqual((await store.run("r1", { tenant: "globex" }))?.thread, "v", "the run of a tenant");
      assertEqual((await store.run("r1", { tenant: "globex", owner: "bob" }))?.thread, "v", "the run of an owner");
      assertEqual(await store.run("r1", { owner: "ann" }), undefined, "the run of an owner without it");
      await store.delete("v");
      await store.delete("t");
      assertEqual((await getRun(store, "r1"))?.thread, "copy", "the run after the deletion of the original");
      await assertRejected(getRun(store, "a b"), "invalid_id", "an invalid id");
    },
  ),

  defineSharedStoreTest(
    "a run that is found by its id has the status crashed after the death of its process [SE3]",
    async ({ store, crash }) => {
      await startThread(store, "t");
      assertEqual((await store.run("r1"))?.status, "running", "the status before");
      const next = await crash();
      assertEqual((await next.run("r1"))?.status, "crashed", "the status after");
    },
  ),

  defineStoreTest(
    "each row of a list has a text cursor, which begins the next page as the row does [SE10]",
    async ({ store }) => {
      for (let nth = 0; nth < 5; nth++)
        await writeRun(store, { id: `r${nth}`, thread: `t${nth}`, startedAt: 100 + nth, status: "done" });
      const threads = await listThreads(store, { limit: 2 });
      const runs = await listRuns(store, { limit: 2 });
      for (const before of [threads[1], threads[1]?.cursor]) {
        const next = await listThreads(store, { limit: 2, before });
        assertEqual(
          next.map(({ id }) => id),
          ["t2", "t1"],
          "the next threads",
        );
      }
      for (const before of [runs[1], runs[1]?.cursor]) {
        const next = await listRuns(store, { limit: 2, before });
        assertEqual(
          next.map(({ id }) => id),
          ["r2", "r1"],
          "the next runs",
        );
      }
      for (const cursor of ["", "t2", "eyJ9", `${threads[0]?.cursor}x`, runs[0]?.cursor])
        await assertRejected(listThreads(store, { before: cursor ?? "" }), "invalid_option", `the cursor ${cursor}`);
      await assertRejected(
        listInterrupts(store, { before: threads[0]?.cursor }),
        "invalid_option",
        "a cursor of threads in a list of interrupts",
      );
      await assertRejected(
        listRuns(store, { before: threads[0]?.cursor ?? "" }),
        "invalid_option",
        "a cursor of threads",
      );
    },
  ),

  defineStoreTest(
    "the page after a deleted row of a list of runs or threads continues at its place [SE10]",
    async ({ store }) => {
      for (let nth = 0; nth < 6; nth++)
        await writeRun(store, { id: `r${nth}`, thread: `t${nth}`, startedAt: 100 + nth, status: "done" });
      const runs = await listRuns(store, { limit: 3 });
      const threads = await listThreads(store, { limit: 3 });
      for (const thread of ["t3", "t5"]) await store.delete(thread);
      for (const before of [runs[2], runs[2]?.cursor])
        assertEqual(
          (await listRuns(store, { before })).map(({ id }) => id),
          ["r2", "r1", "r0"],
          "the runs after the deleted run",
        );
      for (const before of [runs[0], runs[0]?.cursor])
        assertEqual(
          (await listRuns(store, { status: "done", before, limit: 2 })).map(({ id }) => id),
          ["r4", "r2"],
          "the runs after the deleted newest run",
        );
      for (const before of [threads[2], threads[2]?.cursor])
        assertEqual(
          (await listThreads(store, { before })).map(({ id }) => id),
          ["t2", "t1", "t0"],
          "the threads after the deleted thread",
        );
    },
  ),
];

const countTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "threads and runs are counted by status, of the whole store and by filter [SE10]",
    async ({ store, crash }) => {
      const statuses = ["done", "waiting", "failed", "paused", "cancelled", "done"] as const;
      for (const [nth, status] of statuses.entries()) {
        const parties = nth % 2 === 0 ? { tenant: "acme", owner: "ada" } : {};
        const row = { status, startedAt: 100 + nth, metadata: { parity: nth % 2 }, ...parties };
        await writeRun(store, { id: `old${nth}`, thread: `t${nth}`, ...row, status: "done" });
        await writeRun(store, { id: `r${nth}`, thread: `t${nth}`, ...row });
      }
      await store.createThread({ thread: "new", at: 100, tenant: "acme" });
      await startThread(store, "alive", { tenant: "acme", run: false }).then(({ commit }) =>
        commit({ run: { ...createRun("ra"), thread: "alive", tenant: "acme" } }),
      );
      const threads = await store.countThreads();
      assertEqual(
        [threads.total, threads.withoutRun, threads.byStatus.done, threads.byStatus.waiting, threads.byStatus.running],
        [8, 1, 2, 1, 1],
        "the threads",
      );
      assertEqual(
        Object.values(threads.byStatus).reduce((sum, each) => sum + each),
        7,
        "the sum of the statuses",
      );
      const runs = await store.countRuns();
      assertEqual(
        [runs.total, runs.byStatus.done, runs.byStatus.running, runs.byStatus.queued],
        [13, 8, 1, 0],
        "the runs",
      );
      const ofTenant = await store.countThreads({ tenant: "acme" });
      assertEqual(
        [
          ofTenant.total,
          ofTenant.withoutRun,
          ofTenant.byStatus.done,
          ofTenant.byStatus.failed,
          ofTenant.byStatus.cancelled,
        ],
        [5, 1, 1, 1, 1],
        "the threads of a tenant",
      );
      assertEqual((await store.countRuns({ tenant: "acme" })).byStatus.done, 4, "the runs of a tenant");
      assertEqual((await store.countRuns({ owner: "ada" })).total, 6, "the runs of an owner");
      assertEqual((await store.countRuns({ thread: "t1" })).byStatus.waiting, 1, "the runs of a thread");
      assertEqual((await store.countRuns({ metadata: { parity: 1 } })).total, 6, "the runs by metadata");
      assertEqual((await store.countThreads({ runMetadata: { parity: 1 } })).total, 3, "the threads by run metadata");
      assertEqual((await store.countThreads({ owner: "ada", graph: "g" })).byStatus.done, 1, "the threads of an owner");
      await assertRejected(store.countThreads({ limit: 1 } as never), "invalid_option", "a count with a limit");
      await assertRejected(store.countRuns({ status: "done" } as never), "invalid_option", "a count with a status");
      const next = await crash();
      const { byStatus } = await next.countThreads();
      assertEqual([byStatus.running, byStatus.crashed], [0, 1], "the threads after a crash");
      assertEqual((await next.countRuns({ tenant: "acme" })).byStatus.crashed, 1, "the runs of a tenant after a crash");
    },
  ),

  defineStoreTest(
    "the counted status of a thread follows its newest run through every change [SE10]",
    async ({ store }) => {
      const read = async () => {
        const { total, byStatus, withoutRun } = await store.countThreads();
        const counted = Object.entries(byStatus).filter(([, count]) => count > 0);
        return `${total}: ${counted.map(([status]) => status).join()}${withoutRun > 0 ? "new" : ""}`;
      };
      await store.createThread({ thread: "t", at: 1 });
      assertEqual(await read(), "1: new", "a created thread");
      const held = await startThread(store, "t");
      assertEqual(await read(), "1: running", "a started run");
      await held.writeStep(1);
      for (const status of ["waiting", "running", "paused", "failed", "done"] as const) {
        await held.commit({ run: { ...createRun("r1"), status } });
        assertEqual(await read(), `1: ${status}`, `a run with the status ${status}`);
      }
      await held.commit({ run: createRun("r2") });
      await held.commit({ run: { ...createRun("r1"), status: "failed" } });
      assertEqual(await read(), "1: running", "an older run that changes its status");
      await held.commit({ run: { ...createRun("r2"), status: "cancelled" }, release: true });
      const queued = { ...createRun("r3"), status: "queued", input: "1", queuedAt: 1 } as const;
      await store.enqueue({ thread: "t", run: queued });
      assertEqual(await read(), "1: cancelled", "a queued run");
      await store.dequeue("t", "r3", { at: 2, reason: "test" });
      assertEqual(await read(), "1: cancelled", "a run that left the queue");
      await store.importThread({ ...(await store.exportThread("t")), id: "copy" });
      assertEqual(await read(), "2: cancelled", "an imported thread");
      await store.delete("t");
      assertEqual(await read(), "1: cancelled", "a deleted thread");
    },
  ),
];

const functionTests: readonly StoreTest[] = [
  defineStoreTest("a created thread keeps its details in an export, an import and a copy [SE4]", async ({ store }) => {
    const { id } = await createThread(store, details);
    assertTrue(id.startsWith("thread_"), "the id of a thread without an id is not random");
    await updateThread(store, id, { metadata: { nth: 4 } });
    const changed = { ...details, metadata: { ...details.metadata, nth: 4 } };
    await copyThread(store, id, "copy");
    await importThread(store, await exportThread(store, id), { as: "imported" });
    for (const thread of ["copy", "imported"]) {
      const { title, metadata, tenant, owner, graph } = (await store.thread(thread)) ?? {};
      assertEqual({ title, metadata, tenant, owner, graph }, changed, `the thread ${thread}`);
    }
    assertEqual((await listThreads(store, { metadata: { nth: 4 } })).length, 3, "the threads by metadata");
    assertEqual((await countThreads(store, { tenant: "acme" })).withoutRun, 3, "the threads of the tenant");
    const { keySalt } = await store.exportThread(id);
    assertTrue(
      keySalt.length > 0 && keySalt === (await store.exportThread("copy")).keySalt,
      "the keys differ in a copy",
    );
  }),
];

/** Tests of threads as rows of their own. */
export const threadTests: readonly StoreTest[] = [
  ...creationTests,
  ...changeTests,
  ...tenantTests,
  ...listTests,
  ...countTests,
  ...functionTests,
];
