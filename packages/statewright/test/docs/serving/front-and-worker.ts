import process from "node:process";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  getState,
  START,
  sqliteStore,
  streamEvents,
  submit,
  submitAnswers,
} from "statewright";
import * as z from "zod";

const Order = defineState({ order: z.string(), log: channel.list(z.string()) });
const orders = defineGraph({ name: "orders", version: 1, state: Order, interrupts: { approve: z.boolean() } })
  .nodes({
    pack: ({ order }) => ({ log: [`${order} packed by ${role}`] }),
    approve: async (_state, { interrupt }) => ({ log: [(await interrupt("approve")) ? "approved" : "refused"] }),
    ship: () => ({ log: [`shipped by ${role}`] }),
  })
  .edges({ [START]: "pack", pack: "approve", approve: "ship", ship: END });

const [role = "worker", thread = "order-1"] = process.argv.slice(2);
const store = sqliteStore("orders.db");

/** Puts an order into the queue for the worker and returns its status. */
async function order(): Promise<string> {
  const submitted = await submit(orders, { store, thread, input: { order: thread }, key: "order" });
  return submitted.status;
}

/** Saves an answer for the worker and returns the status. */
async function approve(): Promise<string> {
  const { status } = await submitAnswers(orders, { store, thread, answers: { approve: true }, by: "Kim" });
  return status;
}

/** Prints the saved events of the order until its run is done, and the log of the order. */
async function follow(): Promise<void> {
  const reading = new AbortController();
  for await (const event of streamEvents({ store, thread, follow: reading.signal, views: ["checkpoints"] })) {
    console.log(event.seq, event.type);
    if (event.type === "run.completed") break;
  }
  console.log((await getState(orders, { store, thread })).state.log.join(", "));
}

/** Serves all orders until one of them waits or ends. */
async function work(): Promise<void> {
  const host = engine({
    store,
    graphs: [orders],
    log: console.error,
    onRun: (run) =>
      run.on((event) => {
        if (event.type === "run.waiting" || event.type === "run.completed") void host.stop();
      }),
  });
  await host.start();
}

if (role === "submit") console.log(await order());
else if (role === "approve") console.log(await approve());
else if (role === "follow") await follow();
else await work();
