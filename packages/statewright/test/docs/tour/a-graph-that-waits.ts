import {
  commandTargets,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  goto,
  resume,
  run,
  START,
  sqliteStore,
} from "statewright";
import * as z from "zod";

// define
const Pay = defineState({ amount: z.number(), note: z.string().optional(), paid: z.boolean().default(false) });

const payment = defineGraph({
  name: "payment",
  version: 1,
  state: Pay,
  interrupts: { approve: z.object({ ok: z.boolean(), note: z.string().optional() }) },
})
  .nodes({
    approve: async (state, { interrupt }) => {
      const { ok, note } = await interrupt("approve", { payload: { amount: state.amount } });
      return ok ? goto("pay") : goto("decline", { note });
    },
    pay: () => ({ paid: true }),
    decline: () => ({ paid: false }),
  })
  .edges({ [START]: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });

// run
const store = sqliteStore("payments.db");
const first = await run(payment, { store, thread: "t7", input: { amount: 100 } }).result;
if (first.status === "waiting") console.log(first.status, first.interrupts[0]?.payload);

// resume
const second = await resume(payment, { store, thread: "t7", answers: { approve: { ok: true } } }).result;
console.log(second.status, second.state);

// read the history
let at = 0;
for await (const step of getHistory(payment, { store, thread: "t7" })) {
  console.log(step.step, step.node ?? step.source, "→", step.next.join(), JSON.stringify(step.changes));
  if (step.next.includes("approve")) at = step.checkpointId;
}

// fork
const branch = await fork(payment, { store, thread: "t7", at, name: "refused" });
await resume(payment, { store, thread: "t7", branch }).result;
const answers = { approve: { ok: false, note: "too much" } };
const other = await resume(payment, { store, thread: "t7", branch, answers }).result;
console.log(other.status, other.state);

export { payment };
