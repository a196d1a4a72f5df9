import {
  channel,
  checkRuns,
  defineGraph,
  defineMigration,
  defineState,
  END,
  engine,
  listInterrupts,
  resume,
  run,
  START,
  sqliteStore,
} from "statewright";
import * as z from "zod";

const approval = z.object({ ok: z.boolean() });

// version 1
const paymentV1 = defineGraph({
  name: "payment",
  version: 1,
  state: defineState({ cents: z.number(), log: channel.list(z.string()) }),
  interrupts: { approve: approval },
})
  .nodes({
    approve: async (_state, { interrupt }) => ({ log: [`approved: ${(await interrupt("approve")).ok}`] }),
    pay: ({ cents }) => ({ log: [`paid ${cents} cents`] }),
  })
  .edges({ [START]: "approve", approve: "pay", pay: END });

// version 2: euros, and a renamed node
const payment = defineGraph({
  name: "payment",
  version: 2,
  state: defineState({ euros: z.number(), log: channel.list(z.string()) }),
  interrupts: { approve: approval },
})
  .nodes({
    confirm: async (_state, { interrupt }) => ({ log: [`confirmed: ${(await interrupt("approve")).ok}`] }),
    pay: ({ euros }) => ({ log: [`paid ${euros} euros`] }),
  })
  .edges({ [START]: "confirm", confirm: "pay", pay: END });

const store = sqliteStore("payments.db");
await run(paymentV1, { store, thread: "t1", input: { cents: 900 } }).result;
await run(paymentV1, { store, thread: "t2", input: { cents: 500 } }).result;

// check before the deploy
for (const { run: open, verdict, reason } of await checkRuns(store, [payment]))
  console.log(open.thread, verdict, reason);

// a migration from version 1 to version 2
const toV2 = defineMigration({
  from: paymentV1,
  to: payment,
  nodes: { approve: "confirm" },
  state: (old) => ({ euros: old.cents / 100 }),
});
for (const { verdict } of await checkRuns(store, [payment], { migrations: [toV2] })) console.log(verdict);

const migrated = await resume(payment, {
  store,
  thread: "t1",
  answers: { approve: { ok: true } },
  migrations: [toV2],
}).result;
console.log(migrated.status, migrated.state.log);

// or both versions in parallel
const host = engine({ store, graphs: [payment, paymentV1] });
await host.start();
for (const { thread, node } of await listInterrupts(store)) console.log(thread, "waits in", node);
const done = await host.resume(payment, { thread: "t2", answers: { approve: { ok: true } } }).result;
console.log(done.status, done.state.log);
await host.stop();
await store.close();
