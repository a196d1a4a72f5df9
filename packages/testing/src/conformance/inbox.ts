/** What every store must do with the inbox of a branch: letters that anyone posts, and that leave it with the checkpoint that takes them in. */
import type { Store } from "@statewright/core";
import { refused, same } from "./assert.ts";
import { checkpoint, fork, interrupt, letter, release, request, run, start, tell } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";

const waiting = async (store: Store, thread = "t", branch = "main"): Promise<string> =>
  (await store.inbox(thread, branch)).map(({ id }) => id).join(" ");

export const inboxTests: readonly StoreTest[] = [
  sharedTest(
    "anyone posts a letter, whoever holds the thread; it comes back as it was given, to every owner",
    async ({ store, peer }) => {
      await start(store, "t");
      const given = letter({ messages: '[{"text":"ä𝄞\\u0000"}]', kind: "followUp", at: 301 });
      const posted = await peer().post({ thread: "t", ...given });
      same(posted, { ...given, branch: "main" }, "what it gives");
      same(await store.inbox("t", "main"), [posted], "the inbox, for the owner");
      same(await peer().inbox("t", "main"), [posted], "the inbox, for another");
    },
  ),

  sharedTest(
    "an inbox keeps the order of the calls, over all owners and whatever the clock says",
    async ({ store, peer }) => {
      await start(store, "t");
      const other = peer();
      for (const [index, id] of ["l3", "l1", "l4", "l2"].entries())
        await (index % 2 === 0 ? store : other).post({ thread: "t", ...letter({ id, at: 900 - index }) });
      same(await waiting(store), "l3 l1 l4 l2", "the letters");
    },
  ),

  storeTest("a letter that is posted again while it waits is one letter, as it was first", async ({ store }) => {
    await start(store, "t");
    const first = await store.post({ thread: "t", ...letter({}) });
    same(await store.post({ thread: "t", ...letter({ messages: "[]", at: 999 }) }), first, "what it gives");
    same(await store.inbox("t", "main"), [first], "the inbox");
  }),

  storeTest("letters leave the inbox with the checkpoint that takes them, and no others do", async ({ store }) => {
    const held = await start(store, "t");
    for (const id of ["l1", "l2", "l3"]) await store.post({ thread: "t", ...letter({ id }) });
    await held.commit({ checkpoint: checkpoint(1, undefined), taken: ["l1", "l3", "none"] });
    same(await waiting(store), "l2", "the inbox");
    await store.post({ thread: "t", ...letter({ id: "l1" }) });
    same(await waiting(store), "l2 l1", "a letter of the same id that comes later");
  }),

  sharedTest(
    "a write that is refused takes nothing, also one of a writer that is not the owner any more",
    async ({ store, peer }) => {
      const stale = await start(store, "t");
      await store.post({ thread: "t", ...letter({}) });
      await refused(stale.commit({ checkpoint: checkpoint(1, 9), taken: ["l1"] }), "store_failed", "no place");
      same(await waiting(store), "l1", "after a checkpoint that does not follow");
      await stale.commit({ release: true });
      await peer().claim(request("t"));
      await refused(stale.commit({ checkpoint: checkpoint(1, undefined), taken: ["l1"] }), "fenced", "a stale writer");
      same(await waiting(store), "l1", "after a stale writer");
    },
  ),

  sharedTest(
    "what waits outlives the death of the owner; what a durable checkpoint took does not come back",
    async ({ store, crash }) => {
      const held = await start(store, "t");
      for (const id of ["l1", "l2"]) await store.post({ thread: "t", ...letter({ id }) });
      await held.commit({ checkpoint: checkpoint(1, undefined), taken: ["l1"] });
      const next = crash();
      same(await waiting(next), "l2", "after the crash");
      await next.claim(request("t"));
      same(await waiting(next), "l2", "for the new owner");
    },
  ),

  storeTest("each branch has an inbox of its own, a fork begins with an empty one", async ({ store }) => {
    const held = await start(store, "t");
    await held.step(1);
    await held.commit({ release: true });
    await store.post({ thread: "t", ...letter({}) });
    await fork(store, "t", "b", 1, [], [interrupt({ branch: "b" })]);
    same([await waiting(store), await waiting(store, "t", "b")], ["l1", ""], "the inboxes");
    await store.post({ thread: "t", branch: "b", ...letter({ id: "l2" }) });
    same([await waiting(store), await waiting(store, "t", "b")], ["l1", "l2"], "the inboxes, after another letter");
    const claim = await store.claim(request("t", { branch: "b" }));
    const { epoch, nextSeq: seq, nextCheckpoint: id, head } = claim;
    const next = checkpoint(id, head?.id, { branch: "b", seq });
    await tell(store, { thread: "t", branch: "b", epoch, seq, checkpoint: next, taken: ["l1", "l2"], release: true });
    same(
      [await waiting(store), await waiting(store, "t", "b")],
      ["l1", ""],
      "the inboxes, after the fork took its own",
    );
  }),

  sharedTest(
    "what a run took in waits again, each at its old place, in the write that takes the run back",
    async ({ store, crash }) => {
      const held = await start(store, "t");
      for (const id of ["l1", "l2", "l3", "l4"]) await store.post({ thread: "t", ...letter({ id }) });
      const given = await store.inbox("t", "main");
      await held.commit({ checkpoint: checkpoint(1, undefined), taken: ["l3", "l1"] });
      await held.commit({ checkpoint: checkpoint(2, 1), taken: ["l4"] });
      await held.commit({ run: { ...run("r1"), status: "failed", endedAt: 500 }, release: true });
      const next = crash();
      same(await waiting(next), "l2", "the inbox of the failed run");
      const { epoch, nextSeq: seq, head } = await next.claim(request("t"));
      const end = {
        run: { ...run("r1"), status: "cancelled", endedAt: 600 } as const,
        checkpoint: checkpoint(3, 2, { seq }),
      };
      same(head?.id, 2, "where it stands");
      const fenced = tell(next, { thread: "t", branch: "main", epoch: epoch + 1, seq, ...end, givenBack: "r1" });
      await refused(fenced, "fenced", "a write that is refused");
      same(await waiting(next), "l2", "after a write that was refused");
      await tell(next, { thread: "t", branch: "main", epoch, seq, ...end, givenBack: "r1", release: true });
      same(await next.inbox("t", "main"), given, "the inbox after it");
    },
  ),

  storeTest("what a run took in is gone when it has ended, and with another run", async ({ store }) => {
    const held = await start(store, "t");
    for (const id of ["l1", "l2"]) await store.post({ thread: "t", ...letter({ id }) });
    await held.commit({ checkpoint: checkpoint(1, undefined), taken: ["l1"] });
    await held.commit({ run: { ...run("r1"), status: "done", endedAt: 500 } });
    await held.commit({ run: run("r2") });
    await held.commit({ checkpoint: checkpoint(2, 1, { run: "r2" }), givenBack: "r1" });
    same(await waiting(store), "l2", "the inbox");
    await held.commit({ checkpoint: checkpoint(3, 2, { run: "r2" }), taken: ["l2"] });
    await store.post({ thread: "t", ...letter({ id: "l2", at: 900 }) });
    await held.commit({ checkpoint: checkpoint(4, 3, { run: "r2" }), givenBack: "r2" });
    same(
      (await store.inbox("t", "main")).map(({ id, at }) => [id, at]),
      [["l2", 900]],
      "a letter that was sent again meanwhile is one",
    );
  }),

  storeTest("a copy of a thread holds what its run took in, and may yet give back", async ({ store }) => {
    const held = await start(store, "t");
    await store.post({ thread: "t", ...letter({ id: "l1" }) });
    await held.commit({ checkpoint: checkpoint(1, undefined), taken: ["l1"] });
    await held.commit({ run: { ...run("r1"), status: "failed", endedAt: 500 }, release: true });
    const image = await store.image("t");
    await store.insert({ ...image, id: "copy" });
    same(await waiting(store, "copy"), "", "the inbox of the copy");
    const { epoch, nextSeq: seq } = await store.claim(request("copy"));
    const back = { checkpoint: checkpoint(2, 1, { seq }), givenBack: "r1", release: true };
    await tell(store, { thread: "copy", branch: "main", epoch, seq, ...back });
    same(await waiting(store, "copy"), "l1", "the inbox of the copy, once its run was taken back");
  }),

  storeTest("what cannot be posted is refused, and nothing of it stays", async ({ store }) => {
    await refused(store.post({ thread: "none", ...letter({}) }), "unknown_thread", "no thread");
    const claim = await store.claim(request("t"));
    await refused(store.post({ thread: "t", branch: "none", ...letter({}) }), "unknown_branch", "no branch");
    await tell(store, {
      thread: "t",
      branch: "main/1:0",
      epoch: claim.epoch,
      seq: 1,
      checkpoint: checkpoint(1, undefined, { branch: "main/1:0" }),
    });
    await refused(store.post({ thread: "t", branch: "main/1:0", ...letter({}) }), "unknown_branch", "a child line");
    await refused(store.post({ thread: "t", ...letter({ id: "a b" }) }), "invalid_id", "an id outside the grammar");
    same([await waiting(store), await waiting(store, "none")], ["", ""], "the inboxes");
    await release(store, "t", { ...claim, nextSeq: 2 });
  }),
];
