import {
  defineGraph,
  defineState,
  END,
  engine,
  listInterrupts,
  type Notification,
  type Notify,
  run,
  START,
  sqliteStore,
} from "statewright";
import { listNotifications, retryNotification, stopNotifications } from "statewright/inspect";
import * as z from "zod";

const store = sqliteStore("orders.db");
const orders = defineGraph({
  name: "orders",
  version: 1,
  state: defineState({ amount: z.number() }),
  interrupts: { approve: z.boolean() },
})
  .nodes({
    reserve: ({ amount }) => {
      if (amount < 0) throw new Error("no such amount");
    },
    approve: async ({ amount }, { interrupt }) => {
      if (amount > 100) await interrupt("approve", { payload: { amount } });
    },
  })
  .edges({ [START]: "reserve", reserve: "approve", approve: END });

// A receiver of another team: it fails the first time.
const receiver = { ids: new Set<string>(), requests: 0 };
async function postToChat(line: string, { id }: { id: string; signal: AbortSignal }): Promise<void> {
  receiver.requests += 1;
  if (receiver.requests === 1) throw new Error("503 Service Unavailable");
  if (receiver.ids.has(id)) return;
  receiver.ids.add(id);
  console.log(line);
}

function describe(notification: Notification): string {
  const { kind, thread } = notification;
  return "error" in notification
    ? `${kind} ${thread}: ${notification.error.code}`
    : `${kind} ${thread}: ${notification.interrupt.key}`;
}

const send: Notify = async (notification, { signal }) => {
  await postToChat(describe(notification), { id: notification.id, signal });
};
const host = engine({
  store,
  graphs: [orders],
  pollMs: 20,
  notify: { send, waitingLongerThanMs: 50, initialMs: 20 },
});
await host.start();

// Any process of the store: it needs no option.
await run(orders, { store, thread: "order-1", input: { amount: -1 } }).result.catch(() => undefined);
await run(orders, { store, thread: "order-2", input: { amount: 500 } }).result;

while ((await listNotifications(store, { state: "delivered" })).length < 2)
  await new Promise((resolve) => setTimeout(resolve, 20));
for (const { kind, attempts, lastError } of await listNotifications(store, { kind: "run.failed" }))
  console.log(kind, attempts, lastError);
for (const { thread, payload } of await listInterrupts(store)) console.log(thread, payload);

const [failed] = await listNotifications(store, { thread: "order-1" });
if (failed !== undefined) console.log(await retryNotification(store, failed));

await host.stop();
await stopNotifications(store);
await store.close();
