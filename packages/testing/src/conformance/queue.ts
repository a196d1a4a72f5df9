/** What every store must do with runs as rows: the queue of a thread, idempotency keys, what a dead owner leaves, and lists. */
import type { QueueWrite, RunRow, Store } from "@statewright/core";
import { refused, same } from "./assert.ts";
import { checkpoint, release, request, run, start } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";

function queued(id: string, more: Partial<RunRow> = {}): QueueWrite["run"] {
  const { thread: _, branch: __, ...row } = run(id);
  return { ...row, status: "queued", startedAt: 300, queuedAt: 300, input: `{"of":"${id}"}`, ...more };
}

const ids = async (rows: Promise<readonly RunRow[]>): Promise<string> => (await rows).map(({ id }) => id).join(" ");

const statuses = async (store: Store): Promise<readonly string[]> =>
  (await store.runs()).map(({ id, status }) => `${id} ${status}`);

export const queueTests: readonly StoreTest[] = [
  sharedTest(
    "E27 anyone puts a run into the queue, whoever holds the thread; it comes back as it was given",
    async ({ store, peer }) => {
      const held = await start(store, "t");
      const other = peer();
      const metadata = { who: "ann", "a'\"b": 1, deep: { list: [null, true] } };
      const row = queued("q1", { key: "k", metadata, reason: "r", recovered: { count: 2, at: 7 } });
      const given = await other.enqueue({ thread: "t", run: row, stops: "interrupt" });
      same(given, { ...row, thread: "t", branch: "main", stops: { run: "r1", how: "interrupt" } }, "what it gives");
      same(await store.runs({ status: "queued" }), [given], "the run");
      same((await store.thread("t"))?.status, "running", "the status of the thread");
      await held.commit({ release: true });
      same((await other.claim(request("t"))).run?.id, "r1", "the newest run of the branch");
    },
  ),

  sharedTest("E27 every write tells how many runs are queued, and so does the claim", async ({ store, peer }) => {
    const held = await start(store, "t");
    let told: number | undefined;
    const write = (more = {}) =>
      new Promise<void>((resolve, reject) => {
        const { epoch } = held.claim;
        store.commit({ thread: "t", branch: "main", epoch, seq: 9, ...more }, (failure, count) => {
          told = count;
          if (failure === undefined) resolve();
          else reject(failure);
        });
      });
    await write();
    same(told, 0, "without a queue");
    for (const id of ["q1", "q2"]) await peer().enqueue({ thread: "t", run: queued(id) });
    await write({ run: { ...run("r1"), status: "done" } });
    same(told, 2, "with two");
    await write({ run: { ...run("q1"), queuedAt: 300 }, checkpoint: checkpoint(1, undefined, { run: "q1" }) });
    same(told, 1, "when one of them begins");
    await store.dequeue("t", "q2", { at: 400, reason: "no" });
    await write({ release: true });
    same(told, 0, "when the other was taken out");
    await store.enqueue({ thread: "t", run: queued("q3") });
    same((await peer().claim(request("t"))).queued, 1, "the claim");
  }),

  storeTest("E27 a queued run begins in one write, and is the newest of its branch from then on", async ({ store }) => {
    const held = await start(store, "t");
    await store.enqueue({ thread: "t", run: queued("q1", { metadata: { a: 1 } }) });
    await held.commit({ run: { ...run("r1"), status: "done", endedAt: 350 } });
    const begun = { ...run("q1"), startedAt: 400, queuedAt: 300, metadata: { a: 1 } };
    await held.commit({ run: begun, checkpoint: checkpoint(1, undefined, { run: "q1", at: 400 }) });
    same((await store.runs())[0], begun, "its row");
    same((await store.thread("t"))?.status, "running", "the thread");
    await held.commit({ run: { ...begun, status: "waiting" }, release: true });
    same((await store.claim(request("t"))).run?.id, "q1", "the newest run");
  }),

  sharedTest(
    "E27 the queue keeps the order of the calls, over all owners and whatever the clock says",
    async ({ store, peer }) => {
      await start(store, "t");
      const other = peer();
      for (const [index, id] of ["q1", "q2", "q3", "q4"].entries())
        await (index % 2 === 0 ? store : other).enqueue({ thread: "t", run: queued(id, { startedAt: 900 - index }) });
      same(await ids(store.runs({ status: "queued" })), "q4 q3 q2 q1", "the newest first");
    },
  ),

  sharedTest(
    "E27 a run that is taken out of the queue is cancelled, once, and cannot begin",
    async ({ store, peer }) => {
      const held = await start(store, "t");
      await store.enqueue({ thread: "t", run: queued("q1") });
      const taken = await Promise.all(
        [store, peer()].map((each) => each.dequeue("t", "q1", { at: 400, reason: "no" })),
      );
      same(taken.filter(Boolean).length, 1, "how many took it out");
      same(
        (await store.runs())[0],
        {
          ...queued("q1"),
          thread: "t",
          branch: "main",
          status: "cancelled",
          endedAt: 400,
          reason: "no",
          input: undefined,
        },
        "its row",
      );
      same(await store.dequeue("t", "r1", { at: 400, reason: "no" }), false, "a run at work");
      same(await store.dequeue("t", "none", { at: 400, reason: "no" }), false, "a run that is not there");
      same(await store.dequeue("none", "q1", { at: 400, reason: "no" }), false, "a thread that is not there");
      const late = { run: { ...run("q1"), queuedAt: 300 }, checkpoint: checkpoint(1, undefined) };
      await refused(held.commit(late), "run_exists", "a late beginning");
      same(await store.head("t"), undefined, "the head");
    },
  ),

  storeTest("E27 what cannot be queued is refused, and nothing of it stays", async ({ store }) => {
    await refused(store.enqueue({ thread: "none", run: queued("q") }), "unknown_thread", "no thread");
    await start(store, "t");
    await refused(store.enqueue({ thread: "t", branch: "none", run: queued("q") }), "unknown_branch", "no branch");
    await refused(store.enqueue({ thread: "t", run: queued("a b") }), "invalid_id", "an id outside the grammar");
    await refused(store.enqueue({ thread: "t", run: queued("r1") }), "run_exists", "an id that is taken");
    same(await statuses(store), ["r1 running"], "the runs");
  }),

  sharedTest("E27 a key is unique in its thread, in the queue and outside of it", async ({ store, peer }) => {
    const held = await start(store, "t", { run: false });
    const first = { ...run("r1"), key: "k" };
    await held.commit({ run: first });
    same(
      (await peer().enqueue({ thread: "t", run: queued("q1", { key: "k" }) })).id,
      "r1",
      "a run that began under it",
    );
    const others = await Promise.all(
      [store, peer()].map((each, index) =>
        each.enqueue({ thread: "t", run: queued(`q${index + 2}`, { key: "other" }) }),
      ),
    );
    same(new Set(others.map(({ id }) => id)).size, 1, "two that come at once");
    await held.commit({ run: { ...first, status: "done" } });
    await refused(
      held.commit({ run: { ...run("r2"), key: "other" }, checkpoint: checkpoint(1, undefined) }),
      "run_exists",
      "a run under a key of the queue",
    );
    same(await store.head("t"), undefined, "nothing of the refused write");
    same(await ids(store.runs({ thread: "t", key: "k" })), "r1", "the run of a key");
    const another = await start(store, "u", { run: false });
    await another.commit({ run: { ...run("r9"), thread: "u", key: "k" } });
    same(await ids(store.runs({ key: "k" })), "r9 r1", "the same key in another thread");
  }),

  sharedTest(
    "E35 a run whose owner is dead, or let go without a word, reads as crashed, in every list, without a write",
    async ({ store, peer, crash }) => {
      const other = peer();
      for (const thread of ["dead", "waits"]) {
        const held = await start(store, thread, { run: false });
        await held.commit({ run: { ...run(`r-${thread}`), thread } });
        if (thread === "waits")
          await held.commit({ run: { ...run("r-waits"), thread, status: "waiting" }, release: true });
      }
      same(await ids(other.runs({ status: "running" })), "r-dead", "while its owner lives");
      same(await ids(other.runs({ status: "crashed" })), "", "nothing has crashed");
      const next = crash();
      const living = await start(next, "lives", { run: false });
      await living.commit({ run: { ...run("r-lives"), thread: "lives" } });
      same(await statuses(next), ["r-lives running", "r-waits waiting", "r-dead crashed"], "all runs");
      same(await ids(next.runs({ status: "crashed" })), "r-dead", "those that crashed");
      same(await ids(next.runs({ status: ["running", "crashed"] })), "r-lives r-dead", "both");
      same(await ids(next.runs({ thread: "dead", status: "running" })), "", "of the thread");
      same((await next.thread("dead"))?.status, "crashed", "the thread");
      same(
        (await next.threads({ status: "crashed" })).map(({ id }) => id),
        ["dead"],
        "the threads",
      );
      const claim = await next.claim(request("dead"));
      same([claim.recovered, claim.run?.status], [true, "running"], "the claim, which sees the row itself");
      await release(next, "dead", claim);
      same((await next.thread("dead"))?.status, "crashed", "after a claim that wrote nothing");
    },
  ),

  storeTest("E66 runs are listed by several filters at once, page by page", async ({ store }) => {
    for (const [index, status] of (["done", "waiting", "failed", "done", "waiting"] as const).entries()) {
      const graph = index % 2 === 0 ? "even" : "odd";
      const thread = await start(store, `t${index}`, { graph, run: false });
      const metadata = { nth: index, odd: index % 2 === 1, "a.\"b'": "x", none: null };
      await thread.commit({
        run: {
          ...run(`r${index}`),
          thread: `t${index}`,
          graph,
          status,
          startedAt: 100 * index,
          ...(index === 4 ? {} : { metadata }),
        },
        release: true,
      });
    }
    const list = (filter: Parameters<Store["runs"]>[0]) => ids(store.runs(filter));
    same(await list({ status: ["waiting", "failed"] }), "r4 r2 r1", "several statuses");
    same(await list({ status: [] }), "", "none of them");
    same(await list({ graph: "odd" }), "r3 r1", "a graph");
    same(await list({ graph: "even", status: "waiting" }), "r4", "a graph and a status");
    same(await list({ since: 100, until: 300 }), "r2 r1", "from a time on, and before another");
    same(await list({ graph: "odd", since: 300 }), "r3", "a graph and a time");
    same(await list({ metadata: { odd: true } }), "r3 r1", "a boolean");
    same(await list({ metadata: { nth: 2, none: null } }), "r2", "a number and null");
    same(await list({ metadata: { "a.\"b'": "x" }, limit: 2 }), "r3 r2", "a text under a strange name");
    same(await list({ metadata: { nth: "2" } }), "", "a text is no number");
    same(await list({ metadata: { odd: 1 } }), "", "a boolean is no number");
    same(await list({ metadata: { missing: null } }), "", "absent is not null");
    same(await list({ metadata: {} }), "r4 r3 r2 r1 r0", "no condition");
    const first = await store.runs({ limit: 2 });
    same(await ids(Promise.resolve(first)), "r4 r3", "a page");
    const second = await store.runs({ limit: 2, before: first[1] });
    same(await ids(Promise.resolve(second)), "r2 r1", "the next page");
    same(await ids(store.runs({ limit: 2, before: second[1] })), "r0", "the last page");
    same(await list({ status: "waiting", before: { thread: "t4", id: "r4" } }), "r1", "a page of a status");
    same(await list({ graph: "even", before: { thread: "t2", id: "r2" } }), "r0", "a page of a graph");
  }),

  storeTest(
    "E66 threads are listed by several filters at once, page by page; their newest run counts",
    async ({ store }) => {
      for (const [index, status] of (["done", "waiting", "failed", "done"] as const).entries()) {
        const graph = index % 2 === 0 ? "even" : "odd";
        const id = `t${index}`;
        const thread = await start(store, id, { graph, at: 100 * index, run: false });
        const row = { ...run(`r${index}`), thread: id, graph, startedAt: 100 * index };
        await thread.commit({ run: { ...row, id: "before", status: "done", metadata: { nth: 99 } } });
        await thread.commit({ run: { ...row, status, metadata: { nth: index } }, release: true });
      }
      const late = await start(store, "t9", { at: 300, run: false });
      await late.commit({ release: true });
      const list = async (filter: Parameters<Store["threads"]>[0]) =>
        (await store.threads(filter)).map(({ id }) => id).join(" ");
      same(await list({}), "t9 t3 t2 t1 t0", "all");
      same(await list({ status: ["waiting", "failed"] }), "t2 t1", "several statuses");
      same(await list({ status: "done", graph: "odd" }), "t3", "a status and a graph");
      same(await list({ since: 100, until: 300 }), "t2 t1", "from a time on, and before another");
      same(await list({ metadata: { nth: 1 } }), "t1", "metadata of the newest run");
      same(await list({ metadata: { nth: 99 } }), "", "metadata of an older run");
      const first = await store.threads({ limit: 2 });
      same(
        first.map(({ id }) => id),
        ["t9", "t3"],
        "a page",
      );
      const second = await store.threads({ limit: 2, before: first[1] });
      same(
        second.map(({ id }) => id),
        ["t2", "t1"],
        "the next page",
      );
      same(
        await list({ before: { id: "t9", updatedAt: 300 } }),
        "t3 t2 t1 t0",
        "of those changed together the ones after it",
      );
    },
  ),

  storeTest("R3 a filter that there is not, and a status that there is not, are refused", async ({ store }) => {
    for (const wrong of [
      { owner: "me" },
      { status: "asleep" },
      { status: ["done", "asleep"] },
      { metadata: { a: {} } },
      { limit: 0 },
    ]) {
      await refused(store.runs(wrong as never), "invalid_option", `runs ${JSON.stringify(wrong)}`);
      await refused(store.threads(wrong as never), "invalid_option", `threads ${JSON.stringify(wrong)}`);
    }
    await refused(store.threads({ key: "k" } as never), "invalid_option", "a key of threads");
  }),
];
