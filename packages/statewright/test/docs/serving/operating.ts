import {
  cancelRun,
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  getState,
  listInterrupts,
  resume,
  route,
  run,
  START,
  sqliteStore,
} from "statewright";
import { deleteThread, exportThread, importThread, listRuns, listThreads, pruneThread } from "statewright/inspect";
import * as z from "zod";

const day = 24 * 3_600_000;
const Order = defineState({ cents: z.number(), log: channel.list(z.string()) });

let carrierIsDown = true;
const orders = defineGraph({
  name: "orders",
  version: 1,
  state: Order,
  interrupts: { approve: z.object({ ok: z.boolean() }) },
})
  .nodes({
    price: ({ cents }) => ({ log: [`priced at ${cents}`] }),
    approve: async ({ cents }, { interrupt }) => {
      const { ok } = await interrupt("approve", { payload: { cents } });
      return { log: [ok ? "approved" : "refused"] };
    },
    ship: () => {
      if (carrierIsDown) throw new Error("the carrier is down");
      return { log: ["shipped"] };
    },
  })
  .edges({
    [START]: "price",
    price: route(["approve", "ship"], ({ cents }) => (cents > 5_000 ? "approve" : "ship")),
    approve: END,
    ship: END,
  });

const store = sqliteStore("orders.db");
for (const [thread, cents] of Object.entries({ ann: 9_000, bob: 8_000, cy: 7_000, dee: 900 }))
  try {
    await run(orders, { store, thread, input: { cents } }).result;
  } catch (error) {
    if (thread !== "dee") throw error;
  }

// failed runs of the last day
const since = Date.now() - day;
for (const { id } of await listThreads(store, { status: ["failed", "parked", "crashed"], since })) {
  const [last] = await listRuns(store, { thread: id, status: ["failed", "parked", "crashed"], limit: 1 });
  console.log(id, last?.status, last?.error?.code, last?.error?.place?.node, last?.error?.cause?.message);
}

carrierIsDown = false;
const shipped = await resume(orders, { store, thread: "dee" }).result;
console.log(shipped.status, shipped.state.log.join(", "));

// run again from before the bad step
let at = 0;
for await (const { parent = 0 } of getHistory(orders, { store, thread: "dee", nodes: ["price"] })) {
  at = parent;
  break;
}
const branch = await fork(orders, {
  store,
  thread: "dee",
  at,
  name: "corrected",
  update: { cents: 80 },
  moveHead: true,
});
const again = await resume(orders, { store, thread: "dee", branch }).result;
console.log(again.status, again.state.log.join(", "));

// answer many interrupts
const page = await listInterrupts(store, { key: "approve", limit: 2 });
for (const { thread, branch, id, payload } of page) {
  const answers = { [id]: { ok: z.object({ cents: z.number() }).parse(payload).cents < 7_500 } };
  const { status, state } = await resume(orders, { store, thread, branch, answers, by: "rules" }).result;
  console.log(thread, status, state.log.at(-1));
}

// cancel a waiting run
const { status } = await cancelRun(store, { thread: "ann", reason: "the customer has left" });
console.log(status, (await listInterrupts(store)).length);

// move a thread to another file
const archive = sqliteStore("archive.db");
await importThread(archive, await exportThread(store, "bob"));
await deleteThread(store, "bob");
console.log((await getState(orders, { store: archive, thread: "bob" })).state.log.join(", "));

// remove old checkpoints
await pruneThread(store, { keepLast: 20, olderThanMs: 30 * day });

await archive.close();
await store.close();
