/**
 * Conformance tests of durable events: checkpoints of all namespaces and the events between checkpoints, ordered by
 * sequence number.
 */

import type { Store } from "@statewright/core";
import type { CheckpointRow, EventRow } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import { commitWrite, createCheckpoint, createClaimRequest, startThread } from "./store-rows.ts";
import { defineStoreTest, type StoreTest } from "./store-test.ts";

const createEvent = (seq: number, branch = "main"): EventRow => ({
  seq,
  branch,
  at: 1_000 + seq,
  text: `{"type":"n${seq}"}`,
});

export const eventTests: readonly StoreTest[] = [
  defineStoreTest(
    "events are read in sequence order, from any sequence number and in pages [E58]",
    async ({ store }) => {
      await writeRounds(store, 12);
      const all = await readSequence(store, 0, 1_000);
      assertEqual(
        all,
        all.map((_, index) => index + 1),
        "all events",
      );
      for (let after = 0; after <= all.length; after++)
        for (const limit of [1, 3, 1_000])
          assertEqual(await readSequence(store, after, limit), all.slice(after), `the events after ${after}`);
      assertEqual(await store.events("unknown", { after: 0, limit: 9 }), [], "the events of an unknown thread");
    },
  ),

  defineStoreTest("an event is read back as it was written, with its namespace", async ({ store }) => {
    const rows = await writeRounds(store, 6);
    const events = await store.events("t", { after: 0, limit: 100 });
    assertEqual(
      events.flatMap((event) => ("durableEvent" in event ? [event.durableEvent] : [])),
      [createEvent(2), createEvent(5), createEvent(8), createEvent(11), createEvent(14), createEvent(17)],
      "the durable events",
    );
    assertEqual(
      events.flatMap((event) => ("checkpoint" in event ? [event.checkpoint] : [])),
      rows.map((row) => ({ ...row, deltas: [] })),
      "the checkpoints",
    );
  }),

  defineStoreTest("a refused commit stores no event, and an unknown filter key is refused", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(0);
    const gap = { checkpoint: createCheckpoint(9, 7), events: [createEvent(90)] };
    await assertRejected(thread.commit(gap), "store_failed", "a checkpoint with a wrong parent");
    assertEqual((await store.events("t", { after: 0, limit: 9 })).length, 1, "the events");
    const unknown = { after: 0, limit: 9, since: 3 };
    await assertRejected(store.events("t", unknown), "invalid_option", "an unknown filter key");
    await assertRejected(store.events("t", { after: 0, limit: 0 }), "invalid_option", "no limit");
  }),
];

/** Writes `count` rounds: a checkpoint with a single event on the branch, then a checkpoint in a child namespace. */
async function writeRounds(store: Store, count: number): Promise<readonly CheckpointRow[]> {
  const claim = await store.claim(createClaimRequest("t"));
  const rows: CheckpointRow[] = [];
  const heads = new Map<string, number>();
  let seq = 0;
  const writeStep = async (branch: string, eventCount: number): Promise<void> => {
    const write = createCheckpoint(rows.length + 1, heads.get(branch), { branch, seq: seq + 1, step: rows.length });
    const events = Array.from({ length: eventCount }, (_, index) => createEvent(seq + 2 + index, branch));
    seq += 1 + eventCount;
    await commitWrite(store, { thread: "t", branch, epoch: claim.epoch, seq, checkpoint: write, events });
    heads.set(branch, write.row.id);
    rows.push(write.row);
  };
  for (let round = 0; round < count; round++) {
    await writeStep("main", 1);
    await writeStep(`main/${round % 3}:0`, 0);
  }
  return rows;
}

/** Returns the sequence numbers of all events after `after`, read in pages of `limit`. */
async function readSequence(store: Store, after: number, limit: number): Promise<readonly number[]> {
  const numbers: number[] = [];
  for (let from: number | undefined; ; ) {
    const page = await store.events("t", { after: numbers.at(-1) ?? after, from, limit });
    for (const event of page) {
      numbers.push("durableEvent" in event ? event.durableEvent.seq : event.checkpoint.seq);
      if ("checkpoint" in event) from = event.checkpoint.id;
    }
    if (page.length < limit) return numbers;
  }
}
