import { virtualClock } from "@statewright/testing";
import { defineGraph, defineState, END, getState, listInterrupts, resume, run, START, sqliteStore } from "statewright";
import * as z from "zod";

// an interrupt with an expiry
const week = 7 * 24 * 3_600_000;

const offer = defineGraph({
  name: "offer",
  state: defineState({ price: z.number(), said: z.string().default("") }),
  interrupts: {
    accept: { answer: z.object({ ok: z.boolean() }), expiresMs: week, onExpire: { ok: false } },
  },
})
  .nodes({
    ask: async ({ price }, { interrupt }) => {
      const { ok } = await interrupt("accept", { payload: { price } });
      return { said: ok ? "accepted" : "refused" };
    },
  })
  .edges({ [START]: "ask", ask: END });

const store = sqliteStore("offers.db");
const world = virtualClock();

// list open interrupts
await run(offer, { store, world, thread: "ann", input: { price: 900 } }).result;
await run(offer, { store, world, thread: "bob", input: { price: 300 } }).result;
for (const interrupt of await listInterrupts(store, { world, key: "accept", limit: 20 }))
  console.log(interrupt.thread, interrupt.payload);

// answer, and record the author
await resume(offer, { store, world, thread: "ann", answers: { accept: { ok: true } }, by: "ann@example.org" }).result;
const { state, answered } = await getState(offer, { store, thread: "ann", at: 1 });
console.log(answered[0]?.answer, answered[0]?.answeredBy, state.price);

// a week later
await world.advance(week);
for (const { thread, branch, about } of await store.timers({ dueBy: world.clock.now() })) {
  const end = await resume(offer, { store, world, thread, branch }).result;
  console.log(thread, about, end.state.said);
}

export { offer };
