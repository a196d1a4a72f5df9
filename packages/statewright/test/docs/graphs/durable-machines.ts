import { durableMachine, getHistory, resume, run, sqliteStore } from "statewright";
import { assign, fromPromise, setup } from "xstate";

interface Order {
  readonly id: string;
  readonly cents: number;
}

const bank = { charge: async (order: Order, _options: { readonly key: string }) => `receipt of ${order.id}` };
const courier = { ship: async (_order: Order, options: { readonly key: string }) => `parcel ${options.key}` };

const machine = setup({
  types: {
    input: {} as Order,
    context: {} as { readonly order: Order; readonly receipt: string; readonly parcel: string },
    events: {} as { readonly type: "CONFIRM"; readonly by: string },
  },
  actors: {
    charge: fromPromise<string, Order>(({ input, self }) => bank.charge(input, { key: self.sessionId })),
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
store.close();

export { order };
