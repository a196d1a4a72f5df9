/** What every store must do with runs that a process goes on with by itself: each kind is a list of its own, page by page. */
import type { ClaimableKind, ErrorRecord, RunRow, Store } from "@statewright/core";
import { refused, same } from "./assert.ts";
import { release, request, run, start, tell } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";

const drained: ErrorRecord = { name: "E", code: "drained", message: "", details: { reason: "the engine stops" } };
const byPerson: ErrorRecord = { ...drained, details: { reason: "a person" } };
const unfit: ErrorRecord = { name: "E", code: "needs_migration", message: "" };
const poisoned: ErrorRecord = { name: "E", code: "parked", message: "" };

export const claimableTests: readonly StoreTest[] = [
  sharedTest(
    "what a process goes on with by itself is listed by its kind, and nothing else is",
    async ({ store, crash }) => {
      const statuses: readonly (readonly [string, Partial<RunRow>])[] = [
        ["done", { status: "done" }],
        ["waits", { status: "waiting" }],
        ["failed", { status: "failed", error: poisoned }],
        ["stopped", { status: "paused", error: drained }],
        ["rests", { status: "paused", error: byPerson }],
        ["old", { status: "parked", error: unfit }],
        ["poison", { status: "parked", error: poisoned }],
      ];
      for (const [thread, more] of statuses) {
        const held = await start(store, thread);
        await held.commit({ run: { ...run("r1"), thread, ...more }, release: true });
      }
      await start(store, "dies");
      const next = crash();
      await start(next, "works");
      const found = async (kind: ClaimableKind) =>
        (await next.claimable({ kind, limit: 10 })).map(({ thread }) => thread);
      same(await found("crashed"), ["dies"], "those whose process died");
      same(await found("drained"), ["stopped"], "those that an engine has stopped");
      same(await found("unfit"), ["old"], "those that did not fit");
      same(await found("queued"), [], "those in line");
      same((await next.claimable({ kind: "drained", limit: 1 }))[0]?.status, "paused", "the status of the row");
      same(
        (await next.runs({ status: "paused" })).map(({ thread }) => thread),
        ["rests", "stopped"],
        "all that is paused",
      );
      same(
        (await next.runs({ status: "parked" })).map(({ thread }) => thread),
        ["poison", "old"],
        "all that is parked",
      );
      same((await next.threads({ status: "paused" })).length, 2, "threads with a paused run");
    },
  ),

  storeTest("of a queue the first is listed, and of a thread that somebody holds none", async ({ store }) => {
    for (const thread of ["a", "b", "c"]) {
      const claim = await store.claim(request(thread));
      for (const id of ["q1", "q2"]) await enqueue(store, thread, id);
      if (thread !== "b") await release(store, thread, claim);
    }
    const queued = async () =>
      (await store.claimable({ kind: "queued", limit: 10 })).map(({ thread, id }) => [thread, id]);
    same(
      await queued(),
      [
        ["a", "q1"],
        ["c", "q1"],
      ],
      "the first of each",
    );
    await store.dequeue("a", "q1", { at: 500, reason: "no" });
    same(
      await queued(),
      [
        ["a", "q2"],
        ["c", "q1"],
      ],
      "after one was taken out",
    );
  }),

  sharedTest(
    "a queue on a thread whose holder died before it had a run is there to be taken up",
    async ({ store, crash }) => {
      await store.claim(request("t"));
      await enqueue(store, "t", "q1");
      same(await store.claimable({ kind: "queued", limit: 10 }), [], "while it is held");
      const next = crash();
      const found = await next.claimable({ kind: "queued", limit: 10 });
      same(
        found.map(({ id }) => id),
        ["q1"],
        "after the death",
      );
    },
  ),

  storeTest("pages of claimable runs follow each other and hold each run once", async ({ store }) => {
    for (let nth = 0; nth < 25; nth++) {
      const thread = `t${nth}`;
      const held = await start(store, thread);
      await held.commit({ run: { ...run("r1"), thread, status: "paused", error: drained } });
      await enqueue(store, thread, "q");
      await held.commit({ release: true });
    }
    for (const kind of ["queued", "drained"] as const) {
      const all: string[] = [];
      for (let after: RunRow | undefined; ; ) {
        const page: readonly RunRow[] = await store.claimable({ kind, limit: 10, after });
        all.push(...page.map(({ thread }) => thread));
        after = page.at(-1);
        if (page.length < 10) break;
      }
      same(
        all,
        Array.from({ length: 25 }, (_, nth) => `t${nth}`),
        `the threads with runs that are ${kind}`,
      );
    }
    await refused(store.claimable({ kind: "done" as ClaimableKind, limit: 1 }), "invalid_option", "another kind");
    await refused(store.claimable({ kind: "queued", limit: 0 }), "invalid_option", "a limit of 0");
  }),

  storeTest("runs and threads are found by several values of their metadata at once", async ({ store }) => {
    for (let nth = 0; nth < 60; nth++) {
      const thread = `t${nth}`;
      const metadata = { all: true, third: nth % 3, name: nth % 2 === 0 ? "even" : "odd", none: null };
      const claim = await store.claim(request(thread));
      const row = { ...run("r1"), thread, status: "done" as const, metadata, startedAt: nth };
      await tell(store, { thread, branch: "main", epoch: claim.epoch, seq: 1, run: row, release: true });
    }
    const wanted = { all: true, third: 1, name: "odd", none: null };
    const runs = await store.runs({ metadata: wanted });
    same(
      runs.map(({ thread }) => thread),
      ["t55", "t49", "t43", "t37", "t31", "t25", "t19", "t13", "t7", "t1"],
      "the runs",
    );
    same((await store.threads({ metadata: wanted })).length, 10, "the threads");
    const page = await store.runs({ metadata: wanted, limit: 2, before: runs[1] });
    same(
      page.map(({ thread }) => thread),
      ["t43", "t37"],
      "a page",
    );
    same((await store.runs({ metadata: wanted, since: 30, status: "done" })).length, 5, "with a time and a status");
    same((await store.runs({ metadata: { ...wanted, third: "1" } })).length, 0, "a value of another type");
    same((await store.runs({ metadata: { other: null } })).length, 0, "a key that no run has");
    same((await store.runs({ metadata: {}, limit: 100 })).length, 60, "no pair at all");
    await store.delete("t55");
    same((await store.runs({ metadata: wanted })).length, 9, "after a thread was deleted");
  }),
];

async function enqueue(store: Store, thread: string, id: string): Promise<void> {
  const { thread: _, branch: __, ...row } = run(id);
  await store.enqueue({ thread, run: { ...row, status: "queued", input: "1", queuedAt: 300 } });
}
