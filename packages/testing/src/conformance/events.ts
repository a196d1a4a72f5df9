/** What every store must do with durable events: checkpoints of all lines and the facts between them, in the order of their numbers. */
import type { CheckpointRow, EventRow, Store } from "@statewright/core";
import { refused, same } from "./assert.ts";
import { checkpoint, request, start, tell } from "./store-rows.ts";
import { type StoreTest, storeTest } from "./store-test.ts";

const fact = (seq: number, branch = "main"): EventRow => ({ seq, branch, at: 1_000 + seq, text: `{"type":"n${seq}"}` });

export const eventTests: readonly StoreTest[] = [
  storeTest(
    "E58 events are read in the order of their numbers, from any number on, page by page",
    async ({ store }) => {
      await written(store, 12);
      const all = await read(store, 0, 1_000);
      same(
        all,
        all.map((_, index) => index + 1),
        "all of them",
      );
      for (let after = 0; after <= all.length; after++)
        for (const limit of [1, 3, 1_000])
          same(await read(store, after, limit), all.slice(after), `those after ${after}`);
      same(await store.events("nobody", { after: 0, limit: 9 }), [], "those of a thread that is not there");
    },
  ),

  storeTest("an event is as it was written, on its line", async ({ store }) => {
    const rows = await written(store, 6);
    const events = await store.events("t", { after: 0, limit: 100 });
    same(
      events.flatMap((event) => ("fact" in event ? [event.fact] : [])),
      [fact(2), fact(5), fact(8), fact(11), fact(14), fact(17)],
      "the facts",
    );
    same(
      events.flatMap((event) => ("checkpoint" in event ? [event.checkpoint] : [])),
      rows.map((row) => ({ ...row, deltas: [] })),
      "the checkpoints",
    );
  }),

  storeTest("a refused commit leaves no event, and a filter that is not known is refused", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(0);
    const gap = { checkpoint: checkpoint(9, 7), events: [fact(90)] };
    await refused(thread.commit(gap), "store_failed", "a checkpoint that does not follow");
    same((await store.events("t", { after: 0, limit: 9 })).length, 1, "the events");
    const unknown = { after: 0, limit: 9, since: 3 };
    await refused(store.events("t", unknown), "invalid_option", "an unknown key");
    await refused(store.events("t", { after: 0, limit: 0 }), "invalid_option", "no limit");
  }),
];

/** `count` rounds of a checkpoint on the branch with a fact after it, and one on a child line. */
async function written(store: Store, count: number): Promise<readonly CheckpointRow[]> {
  const claim = await store.claim(request("t"));
  const rows: CheckpointRow[] = [];
  const heads = new Map<string, number>();
  let seq = 0;
  const step = async (branch: string, facts: number): Promise<void> => {
    const write = checkpoint(rows.length + 1, heads.get(branch), { branch, seq: seq + 1, step: rows.length });
    const events = Array.from({ length: facts }, (_, index) => fact(seq + 2 + index, branch));
    seq += 1 + facts;
    await tell(store, { thread: "t", branch, epoch: claim.epoch, seq, checkpoint: write, events });
    heads.set(branch, write.row.id);
    rows.push(write.row);
  };
  for (let round = 0; round < count; round++) {
    await step("main", 1);
    await step(`main/${round % 3}:0`, 0);
  }
  return rows;
}

/** The numbers of all events after one, read in pages. */
async function read(store: Store, after: number, limit: number): Promise<readonly number[]> {
  const numbers: number[] = [];
  for (let from: number | undefined; ; ) {
    const page = await store.events("t", { after: numbers.at(-1) ?? after, from, limit });
    for (const event of page) {
      numbers.push("fact" in event ? event.fact.seq : event.checkpoint.seq);
      if ("checkpoint" in event) from = event.checkpoint.id;
    }
    if (page.length < limit) return numbers;
  }
}
