import { durableMachine, getHistory, resume, run, sqliteStore } from "statewright";
import { assign, fromPromise, setup } from "xstate";

interface Order {
  readonly id: string;
  readonly cents: number;
}

const bank = {
  // slow for order 10, until the state of the promise is left
  charge: async (order: Order, { signal }: { readonly key: string; readonly signal: AbortSignal }) => {
    if (order.id === "10") await new Promise((_, reject) => signal.addEventListener("abort", reject));
    return `receipt of ${order.id}`;
  },
};
const courier = { ship: async (_order: Order, options: { readonly key: string }) => `parcel ${options.key}` };

const machine = setup({
  types: {
    input: {} as Order,
    context: {} as { readonly order: Order; readonly receipt: string; readonly parcel: string },
    events: {} as { readonly type: "CONFIRM"; readonly by: string } | { readonly type: "CANCEL" },
  },
  actors: {
    charge: fromPromise<string, Order>(({ input, self, signal }) =>
      bank.charge(input, { key: self.sessionId, signal }),
    ),
    ship: fromPromise<string, Order>(({ input, self }) => courier.ship(input, { key: self.sessionId })),
  },
}).createMachine({
  id: "order",
  context: ({ input }) => ({ order: input, receipt: "", parcel: "" }),
  initial: "asking",
  states: {
    asking: { on: { CONFIRM: "charging" }, after: { 259200000: "expired" } },
    charging: {
      invoke: {
        src: "charge",
        input: ({ context }) => context.order,
        onDone: { target: "shipping", actions: assign({ receipt: ({ event }) => event.output }) },
      },
      on: { CANCEL: "cancelled" },
    },
    shipping: {
      invoke: {
        src: "ship",
        input: ({ context }) => context.order,
        onDone: { target: "shipped", actions: assign({ parcel: ({ event }) => event.output }) },
      },
    },
    shipped: { type: "final" },
    expired: { type: "final" },
    cancelled: { type: "final" },
  },
});

const order = durableMachine(machine, { version: 1, effects: { charge: "once", ship: "idempotent" } });

const store = sqliteStore("orders.db");
const first = await run(order, { store, thread: "order-9", input: { id: "9", cents: 900 } }).result;
if (first.status === "waiting") console.log(first.state.value, first.interrupts.map((open) => open.key).join());

const second = await resume(order, { store, thread: "order-9", answers: { CONFIRM: { by: "ann" } } }).result;
console.log(second.status, second.state.value, second.state.context.parcel);

for await (const step of getHistory(order, { store, thread: "order-9" })) {
  console.log(step.step, step.node ?? step.source, "→", step.next.join());
}

// an event while a promise is running
await run(order, { store, thread: "order-10", input: { id: "10", cents: 900 } }).result;
const working = resume(order, { store, thread: "order-10", answers: { CONFIRM: { by: "ann" } } });
for await (const event of working.events()) if (event.type === "task.started") break;

const sent = await resume(order, { store, thread: "order-10", answers: { CANCEL: {} }, by: "ann" }).result;
if (sent.status === "delivered") console.log(sent.delivered.map(({ key }) => key).join());
console.log((await working.result).state.value);
await store.close();

export { order };
