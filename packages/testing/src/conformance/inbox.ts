/**
 * Conformance tests of the inbox of a branch: any process posts messages, and a checkpoint removes the messages that
 * it delivers.
 */
import type { Store } from "@statewright/core";
import { assertEqual, assertRejected } from "./assert.ts";
import {
  commitWrite,
  createCheckpoint,
  createClaimRequest,
  createInboxMessage,
  createInterrupt,
  createRun,
  forkThread,
  releaseThread,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const listIds = async (store: Store, thread = "t", branch = "main"): Promise<string> =>
  (await store.inbox(thread, branch)).map(({ id }) => id).join(" ");

export const inboxTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "any process can post an inbox message to a claimed thread, and every owner reads it unchanged",
    async ({ store, peer }) => {
      await startThread(store, "t");
      const given = createInboxMessage({ messages: '[{"text":"ä𝄞\\u0000"}]', kind: "followUp", at: 301 });
      const posted = await (await peer()).post({ thread: "t", ...given });
      assertEqual(posted, { ...given, branch: "main" }, "the returned message");
      assertEqual(await store.inbox("t", "main"), [posted], "the inbox read by the owner");
      assertEqual(await (await peer()).inbox("t", "main"), [posted], "the inbox read by another process");
    },
  ),

  defineSharedStoreTest(
    "an inbox keeps the order of the posts of all processes, independent of their clocks",
    async ({ store, peer }) => {
      await startThread(store, "t");
      const other = await peer();
      for (const [index, id] of ["l3", "l1", "l4", "l2"].entries())
        await (index % 2 === 0 ? store : other).post({ thread: "t", ...createInboxMessage({ id, at: 900 - index }) });
      assertEqual(await listIds(store), "l3 l1 l4 l2", "the inbox messages");
    },
  ),

  defineStoreTest(
    "posting a message id again keeps the first message until the run that received it has ended [PK3]",
    async ({ store }) => {
      const held = await startThread(store, "t");
      const repeat = () => store.post({ thread: "t", ...createInboxMessage({ messages: "[]", at: 999 }) });
      const first = await store.post({ thread: "t", ...createInboxMessage({}) });
      assertEqual(await repeat(), first, "the message returned while it waits");
      assertEqual(await store.inbox("t", "main"), [first], "the inbox");
      assertEqual(await store.inboxMessage("t", "main", first.id), first, "the waiting message by its id");
      await held.commit({ checkpoint: createCheckpoint(1, undefined), deliveredMessages: [first.id] });
      const received = { ...first, deliveredTo: "r1" };
      assertEqual(await repeat(), received, "the message returned after its delivery");
      assertEqual(await store.inboxMessage("t", "main", first.id), received, "the received message by its id");
      assertEqual(await store.inbox("t", "main"), [], "the inbox after the delivery");
      await held.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
      assertEqual(await store.inboxMessage("t", "main", first.id), undefined, "the message after its run has ended");
      assertEqual((await repeat()).messages, "[]", "the message posted after the run has ended");
      assertEqual(await store.inboxMessage("none", "main", first.id), undefined, "a message of an unknown thread");
    },
  ),

  defineStoreTest("a checkpoint removes only its delivered messages from the inbox", async ({ store }) => {
    const held = await startThread(store, "t");
    for (const id of ["l1", "l2", "l3"]) await store.post({ thread: "t", ...createInboxMessage({ id }) });
    await held.commit({ checkpoint: createCheckpoint(1, undefined), deliveredMessages: ["l1", "l3", "none"] });
    assertEqual(await listIds(store), "l2", "the inbox");
  }),

  defineStoreTest(
    "a commit of a run row without a checkpoint removes the messages that the run received [FX2]",
    async ({ store }) => {
      const held = await startThread(store, "t");
      for (const id of ["l1", "l2"])
        await store.post({ thread: "t", ...createInboxMessage({ id, kind: "event", messages: "{}" }) });
      await held.commit({ run: createRun("r1"), deliveredMessages: ["l1"] });
      assertEqual(await listIds(store), "l2", "the inbox");
    },
  ),

  defineSharedStoreTest(
    "a refused commit removes no inbox message, nor does a commit of a stale writer",
    async ({ store, peer }) => {
      const stale = await startThread(store, "t");
      await store.post({ thread: "t", ...createInboxMessage({}) });
      await assertRejected(
        stale.commit({ checkpoint: createCheckpoint(1, 9), deliveredMessages: ["l1"] }),
        "store_failed",
        "no place",
      );
      assertEqual(await listIds(store), "l1", "the inbox after a checkpoint with a wrong parent");
      await stale.commit({ release: true });
      await (await peer()).claim(createClaimRequest("t"));
      await assertRejected(
        stale.commit({ checkpoint: createCheckpoint(1, undefined), deliveredMessages: ["l1"] }),
        "fenced",
        "a stale writer",
      );
      assertEqual(await listIds(store), "l1", "the inbox after a commit of a stale writer");
    },
  ),

  defineSharedStoreTest(
    "undelivered inbox messages survive a crash of the owner, and delivered messages do not come back",
    async ({ store, crash }) => {
      const held = await startThread(store, "t");
      for (const id of ["l1", "l2"]) await store.post({ thread: "t", ...createInboxMessage({ id }) });
      await held.commit({ checkpoint: createCheckpoint(1, undefined), deliveredMessages: ["l1"] });
      const next = await crash();
      assertEqual(await listIds(next), "l2", "the inbox after the crash");
      await next.claim(createClaimRequest("t"));
      assertEqual(await listIds(next), "l2", "the inbox read by the new owner");
    },
  ),

  defineStoreTest("each branch has its own inbox, and a fork starts with an empty inbox", async ({ store }) => {
    const held = await startThread(store, "t");
    await held.writeStep(1);
    await held.commit({ release: true });
    await store.post({ thread: "t", ...createInboxMessage({}) });
    await forkThread(store, { branch: "b", from: 1, interrupts: [createInterrupt({ branch: "b" })] });
    assertEqual([await listIds(store), await listIds(store, "t", "b")], ["l1", ""], "the inboxes");
    await store.post({ thread: "t", branch: "b", ...createInboxMessage({ id: "l2" }) });
    assertEqual(
      [await listIds(store), await listIds(store, "t", "b")],
      ["l1", "l2"],
      "the inboxes after a message to the fork",
    );
    const claim = await store.claim(createClaimRequest("t", { branch: "b" }));
    const { epoch, nextSeq: seq, nextCheckpoint: id, head } = claim;
    const next = createCheckpoint(id, head?.id, { branch: "b", seq });
    await commitWrite(store, {
      thread: "t",
      branch: "b",
      epoch,
      seq,
      checkpoint: next,
      deliveredMessages: ["l1", "l2"],
      release: true,
    });
    assertEqual(
      [await listIds(store), await listIds(store, "t", "b")],
      ["l1", ""],
      "the inboxes after the fork consumed its message",
    );
  }),

  defineSharedStoreTest(
    "a commit that reverts a run returns the run's delivered messages to their old places in the inbox",
    async ({ store, crash }) => {
      const held = await startThread(store, "t");
      for (const id of ["l1", "l2", "l3", "l4"]) await store.post({ thread: "t", ...createInboxMessage({ id }) });
      const given = await store.inbox("t", "main");
      await held.commit({ checkpoint: createCheckpoint(1, undefined), deliveredMessages: ["l3", "l1"] });
      await held.commit({ checkpoint: createCheckpoint(2, 1), deliveredMessages: ["l4"] });
      await held.commit({ run: { ...createRun("r1"), status: "failed", endedAt: 500 }, release: true });
      const next = await crash();
      assertEqual(await listIds(next), "l2", "the inbox of the failed run");
      const { epoch, nextSeq: seq, head } = await next.claim(createClaimRequest("t"));
      const end = {
        run: { ...createRun("r1"), status: "cancelled", endedAt: 600 } as const,
        checkpoint: createCheckpoint(3, 2, { seq }),
      };
      assertEqual(head?.id, 2, "the head checkpoint");
      const staleCommit = commitWrite(next, {
        thread: "t",
        branch: "main",
        epoch: epoch + 1,
        seq,
        ...end,
        rolledBackRun: "r1",
      });
      await assertRejected(staleCommit, "fenced", "a commit with a wrong epoch");
      assertEqual(await listIds(next), "l2", "the inbox after the refused commit");
      await commitWrite(next, { thread: "t", branch: "main", epoch, seq, ...end, rolledBackRun: "r1", release: true });
      assertEqual(await next.inbox("t", "main"), given, "the inbox after the revert");
    },
  ),

  defineStoreTest(
    "delivered messages are not returned after the run is done or when another run is reverted",
    async ({ store }) => {
      const held = await startThread(store, "t");
      for (const id of ["l1", "l2"]) await store.post({ thread: "t", ...createInboxMessage({ id }) });
      await held.commit({ checkpoint: createCheckpoint(1, undefined), deliveredMessages: ["l1"] });
      await held.commit({ run: { ...createRun("r1"), status: "done", endedAt: 500 } });
      await held.commit({ run: createRun("r2") });
      await held.commit({ checkpoint: createCheckpoint(2, 1, { run: "r2" }), rolledBackRun: "r1" });
      assertEqual(await listIds(store), "l2", "the inbox");
      await held.commit({ checkpoint: createCheckpoint(3, 2, { run: "r2" }), deliveredMessages: ["l2"] });
      await store.post({ thread: "t", ...createInboxMessage({ id: "l2", at: 900 }) });
      await held.commit({ checkpoint: createCheckpoint(4, 3, { run: "r2" }), rolledBackRun: "r2" });
      assertEqual(
        (await store.inbox("t", "main")).map(({ id, at }) => [id, at]),
        [["l2", 300]],
        "the inbox with a message posted again before the revert",
      );
    },
  ),

  defineStoreTest(
    "a copied thread contains the delivered messages of its run and can return them to the inbox",
    async ({ store }) => {
      const held = await startThread(store, "t");
      await store.post({ thread: "t", ...createInboxMessage({ id: "l1" }) });
      await held.commit({ checkpoint: createCheckpoint(1, undefined), deliveredMessages: ["l1"] });
      await held.commit({ run: { ...createRun("r1"), status: "failed", endedAt: 500 }, release: true });
      const image = await store.exportThread("t");
      await store.importThread({ ...image, id: "copy" });
      assertEqual(await listIds(store, "copy"), "", "the inbox of the copy");
      const { epoch, nextSeq: seq } = await store.claim(createClaimRequest("copy"));
      const revert = { checkpoint: createCheckpoint(2, 1, { seq }), rolledBackRun: "r1", release: true };
      await commitWrite(store, { thread: "copy", branch: "main", epoch, seq, ...revert });
      assertEqual(await listIds(store, "copy"), "l1", "the inbox of the copy after its run was reverted");
    },
  ),

  defineStoreTest(
    "a message to an unknown thread, unknown branch or child namespace, or with an invalid id, is refused and not stored",
    async ({ store }) => {
      await assertRejected(store.post({ thread: "none", ...createInboxMessage({}) }), "unknown_thread", "no thread");
      const claim = await store.claim(createClaimRequest("t"));
      await assertRejected(
        store.post({ thread: "t", branch: "none", ...createInboxMessage({}) }),
        "unknown_branch",
        "no branch",
      );
      await commitWrite(store, {
        thread: "t",
        branch: "main/1:0",
        epoch: claim.epoch,
        seq: 1,
        checkpoint: createCheckpoint(1, undefined, { branch: "main/1:0" }),
      });
      await assertRejected(
        store.post({ thread: "t", branch: "main/1:0", ...createInboxMessage({}) }),
        "unknown_branch",
        "a child namespace",
      );
      await assertRejected(
        store.post({ thread: "t", ...createInboxMessage({ id: "a b" }) }),
        "invalid_id",
        "an id outside the grammar",
      );
      assertEqual([await listIds(store), await listIds(store, "none")], ["", ""], "the inboxes");
      await releaseThread(store, "t", { ...claim, nextSeq: 2 });
    },
  ),
];
