import {
  channel,
  checkGraph,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  getState,
  goto,
  resume,
  run,
  START,
  sqliteStore,
  streamEvents,
  updateState,
} from "statewright";
import { listRuns, listThreads } from "statewright/inspect";
import * as z from "zod";

const Purchase = defineState({ amount: z.number(), log: channel.list(z.string()), paid: z.boolean().default(false) });

const purchase = defineGraph({
  name: "purchase",
  version: 1,
  state: Purchase,
  interrupts: { approve: z.object({ ok: z.boolean(), note: z.string().optional() }) },
})
  .nodes({
    quote: ({ amount }) => ({ log: [`asked for ${amount}`] }),
    approve: async ({ amount }, { interrupt }) => {
      const { ok, note = "no note" } = await interrupt("approve", { payload: { amount } });
      return ok ? goto("pay", { log: ["approved"] }) : goto("decline", { log: [note] });
    },
    pay: () => ({ paid: true }),
    decline: () => ({ paid: false }),
  })
  .edges({ [START]: "quote", quote: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });

const store = sqliteStore("purchases.db");
const thread = "t7";
await run(purchase, { store, thread, input: { amount: 100 } }).result;
await resume(purchase, { store, thread, answers: { approve: { ok: false, note: "too much" } } }).result;

// the state now, and at an earlier checkpoint
const now = await getState(purchase, { store, thread });
const then = await getState(purchase, { store, thread, at: 2 });
console.log(now.status, now.next.join(), now.state.log);
console.log(then.step, then.next.join(), then.state.log);

// history
let at = 0;
for await (const step of getHistory(purchase, { store, thread })) {
  console.log(step.checkpointId, step.node ?? step.source, Object.keys(step.changes).join(), `${step.bytes} bytes`);
  if (step.next.includes("approve")) at = step.checkpointId;
}

// a page of the history
const page: number[] = [];
for await (const { checkpointId } of getHistory(purchase, { store, thread, before: 4, pageSize: 2 })) {
  if (page.push(checkpointId) === 2) break;
}
console.log(page);

// fork
const branch = await fork(purchase, { store, thread, at, name: "cheaper", update: { amount: 80 } });
const asked = await resume(purchase, { store, thread, branch }).result;
if (asked.status === "waiting") console.log(asked.interrupts[0]?.payload);
const bought = await resume(purchase, { store, thread, branch, answers: { approve: { ok: true } } }).result;
console.log(bought.status, bought.state.paid, (await getState(purchase, { store, thread })).state.paid);

// a write without a run
await updateState(purchase, { store, thread, branch, as: "pay", values: { log: ["refunded"], paid: false } });
const refunded = await getState(purchase, { store, thread, branch });
console.log(refunded.state.paid, refunded.state.log.join(", "));

// events from a number
for await (const event of streamEvents({ store, thread, after: 11 })) console.log(event.seq, event.type);

// lists
for (const row of await listThreads(store, { graph: "purchase", limit: 20 })) console.log(row.id, row.graph);
for (const row of await listRuns(store, { thread, status: "done" })) console.log(row.branch, row.status);

// check the graph
console.log(checkGraph(purchase).violations);
await store.close();
