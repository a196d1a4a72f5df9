import {
  channel,
  defineGraph,
  defineState,
  END,
  getState,
  memoryStore,
  type OnBusy,
  recover,
  resume,
  run,
  START,
} from "statewright";
import { countThreads, createThread, listRuns, listThreads, updateThread } from "statewright/inspect";
import * as z from "zod";

const Chat = defineState({ said: z.string(), log: channel.list(z.string()) });
const chat = defineGraph({ name: "chat", version: 1, state: Chat, interrupts: { sure: z.boolean() } })
  .nodes({
    hear: ({ said }) => ({ log: [`heard ${said}`] }),
    ask: async ({ said }, { interrupt }) => ({ log: [(await interrupt("sure")) ? `did ${said}` : `left ${said}`] }),
  })
  .edges({ [START]: "hear", hear: "ask", ask: END });
const store = memoryStore();
const say = (thread: string, said: string, onBusy?: OnBusy) =>
  run(chat, { store, thread, input: { said }, ...(onBusy && { onBusy }) }).result;

// enqueue behind a waiting run
await say("one", "send it");
const behind = await say("one", "send another", "enqueue");
console.log(behind.status, behind.state.log.join(", "));
for (const { status, input } of await listRuns(store, { thread: "one" })) console.log(status, input ?? "");
const answered = await resume(chat, { store, thread: "one", answers: { sure: true } }).result;
console.log(answered.status, answered.state.log.join(", "));

// cancel a waiting run
await say("two", "send it");
const instead = await say("two", "stop", "cancel");
console.log(instead.status, instead.state.log.join(", "));

// roll a waiting run back
await say("three", "send it");
const again = await say("three", "start over", "rollback");
console.log(again.status, again.state.log.join(", "));

// a key starts one run
const once = { store, thread: "u", input: { said: "once" }, key: "webhook-17", metadata: { customer: "c1" } };
const one = await run(chat, once).result;
const same = await run(chat, once).result;
console.log(one.run === same.run, same.status);

// lists
const waiting = await listRuns(store, {
  status: ["waiting", "failed"],
  graph: "chat",
  metadata: { customer: "c1" },
  limit: 20,
});
console.log(waiting.map(({ thread }) => thread).join());

// threads of users and tenants
const { id } = await createThread(store, {
  title: "Order 7",
  tenant: "acme",
  owner: "ada",
  metadata: { project: "atlas" },
});
await updateThread(store, id, { title: "Order 7, paid", metadata: { archived: true } });
const page = await listThreads(store, { tenant: "acme", metadata: { archived: true }, limit: 20 });
const { total, byStatus } = await countThreads(store, { tenant: "acme" });
console.log(page.map(({ title }) => title).join(), total, byStatus.waiting);

// recover the runs of dead processes
const handles = await recover({ store, graphs: [chat] });
console.log(handles.length, (await getState(chat, { store, thread: "u" })).status);
