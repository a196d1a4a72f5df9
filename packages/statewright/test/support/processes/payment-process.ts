/**
 * One process of a payment: raises an interrupt and exits; a later process with newer code gets the answer as its
 * argument.
 */
import process from "node:process";
import { commandTargets, defineGraph, defineState, END, goto, resume, run, START, sqliteStore } from "statewright";
import * as z from "zod";

const [answer] = process.argv.slice(2);
const log: string[] = [];
const Pay = defineState({ amount: z.number(), note: z.string().optional() });

const payment = defineGraph({
  name: "payment",
  version: 1,
  state: Pay,
  interrupts: { approve: z.object({ ok: z.boolean(), note: z.string().optional() }) },
})
  .nodes({
    approve: async (state, { interrupt }) => {
      log.push("asked");
      const { ok, note } = await interrupt("approve", { payload: { amount: state.amount } });
      return ok ? goto("pay") : goto("decline", { note });
    },
    pay: ({ amount }) => {
      log.push(answer === undefined ? `paid ${amount}` : `paid ${amount}, by newer code`);
    },
    decline: ({ note }) => {
      log.push(`declined: ${note}`);
    },
  })
  .edges({ [START]: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });

const store = sqliteStore("payments.db");
const result =
  answer === undefined
    ? await run(payment, { store, thread: "t7", input: { amount: 100 } }).result
    : await resume(payment, { store, thread: "t7", answers: { approve: JSON.parse(answer) } }).result;
const asked = result.status === "waiting" ? result.interrupts.map(({ key, payload }) => ({ key, payload })) : [];
process.stdout.write(JSON.stringify({ pid: process.pid, status: result.status, state: result.state, asked, log }));
await store.close();
