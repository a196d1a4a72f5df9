import { defineGraph, defineState, END, getState, list, listRuns, memoryStore, recover, resume, run, START } from "statewright";
import * as z from "zod";

const Chat = defineState({ said: z.string(), log: list(z.string()) });
const chat = defineGraph({ name: "chat", version: 1, state: Chat, interrupts: { sure: z.boolean() } })
  .nodes({
    hear: ({ said }) => ({ log: [`heard ${said}`] }),
    ask: async ({ said }, { interrupt }) => ({ log: [(await interrupt("sure")) ? `did ${said}` : `left ${said}`] }),
  })
  .edges({ [START]: "hear", hear: "ask", ask: END });
const store = memoryStore();
const say = (said: string, onBusy?: "enqueue" | "interrupt" | "rollback") =>
  run(chat, { store, thread: "t", input: { said }, ...(onBusy && { onBusy }) }).result;

const first = await say("send it");
console.log(first.status);

// put behind the run that waits
const behind = await say("send another", "enqueue");
console.log(behind.status);
await resume(chat, { store, thread: "t", answers: { sure: true } }).result;

// what is queued
for (const { status, input } of await listRuns(store, { thread: "t" })) console.log(status, input ?? "");

// in the place of the run that waits
const instead = await say("stop", "interrupt");
console.log(instead.status, instead.state.log.join(", "));

// as if that had never been said
const again = await say("start over", "rollback");
console.log(again.status, again.state.log.join(", "));

// the first run under a key is the only one
const once = { store, thread: "u", input: { said: "once" }, key: "webhook-17", metadata: { customer: "c1" } };
const one = await run(chat, once).result;
const same = await run(chat, once).result;
console.log(one.run === same.run, same.status);

// lists
const waiting = await listRuns(store, { status: ["waiting", "failed"], graph: "chat", metadata: { customer: "c1" }, limit: 20 });
console.log(waiting.map(({ thread }) => thread).join());

// go on with what other processes have left
const handles = await recover({ store, graphs: [chat] });
console.log(handles.length, (await getState(chat, { store, thread: "u" })).status);
