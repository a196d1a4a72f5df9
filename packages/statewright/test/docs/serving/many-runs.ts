import { type ActProgress, bulk, defineGraph, defineState, END, run, START, sqliteStore } from "statewright";
import { countRuns } from "statewright/inspect";
import * as z from "zod";

const store = sqliteStore("orders.db");
const bank = { isDown: true };
const orders = defineGraph({
  name: "orders",
  version: 1,
  state: defineState({ amount: z.number() }),
  interrupts: { approve: z.boolean() },
})
  .nodes({
    approve: async ({ amount }, { interrupt }) => {
      if (amount > 100) await interrupt("approve");
    },
    pay: () => {
      if (bank.isDown) throw new Error("the bank does not answer");
    },
  })
  .edges({ [START]: "approve", approve: "pay", pay: END });

for (const [nth, tenant] of ["acme", "acme", "acme", "globex"].entries())
  await run(orders, { store, thread: `order-${nth}`, tenant, input: { amount: 10 } }).result.catch(() => undefined);
await run(orders, { store, thread: "large", tenant: "acme", input: { amount: 500 } }).result;
await run(orders, { store, thread: "paused", input: { amount: 1 }, breakpoints: { before: ["pay"] } }).result;

// Count first, then act.
const counted = await bulk.retryRuns({ store, graphs: [orders], filter: { tenant: "acme" }, dryRun: true });
console.log(counted.matched, "failed runs");

bank.isDown = false;
const retried = await bulk.retryRuns({
  store,
  graphs: [orders],
  filter: { tenant: "acme" },
  concurrency: 4,
  onProgress: ({ done, matched }) => console.log(`${done} of ${matched}`),
});
for (const { thread, error } of retried.errors) console.log(thread, error);

const resumed = await bulk.resumeRuns({ store, graphs: [orders], filter: { graph: "orders" } });
console.log(resumed.done, "resumed");

const cancelled = await bulk.cancelRuns(store, { filter: { tenant: "acme" }, reason: "the tenant left", by: "ann" });
console.log(cancelled.done, "cancelled");

// Stop after the first thread, and continue later.
const controller = new AbortController();
let last: ActProgress | undefined;
await bulk.deleteThreads(store, {
  filter: { tenant: "acme" },
  concurrency: 1,
  signal: controller.signal,
  onProgress: (progress) => {
    last = progress;
    controller.abort();
  },
});
const rest = await bulk.deleteThreads(store, {
  filter: { tenant: "acme" },
  ...(last?.cursor === undefined ? {} : { cursor: last.cursor }),
});
console.log(last?.done, rest.done, rest.isComplete);

const { total, byStatus } = await countRuns(store);
console.log(total, byStatus.done, byStatus.failed);
await store.close();
