import { writeFileSync } from "node:fs";
import { virtualClock } from "@statewright/testing";
import {
  defineGraph,
  defineState,
  durableMachine,
  END,
  fork,
  getHistory,
  getState,
  isStatewrightError,
  memoryStore,
  resume,
  route,
  run,
  START,
} from "statewright";
import { toMachineJson } from "statewright/inspect";
import {
  assign,
  createActor,
  createMachine,
  fromCallback,
  fromPromise,
  type InspectionEvent,
  SimulatedClock,
  setup,
  toPromise,
} from "xstate";
import { getShortestPaths } from "xstate/graph";
import * as z from "zod";

const mail = { send: async (to: string, key: string) => `${to} under …${key.slice(-18)}` };
const week = 7 * 24 * 3_600_000;

// one machine for both libraries
const machine = setup({
  types: {
    input: {} as { readonly to: string },
    context: {} as { readonly to: string; readonly receipt: string },
    events: {} as { readonly type: "NOW" } | { readonly type: "SKIP"; readonly by: string },
  },
  actors: {
    send: fromPromise<string, string>(({ input, self }) => mail.send(input, self.sessionId)),
  },
  delays: { week },
}).createMachine({
  id: "reminder",
  context: ({ input }) => ({ to: input.to, receipt: "" }),
  initial: "waiting",
  states: {
    waiting: { on: { NOW: "sending", SKIP: "skipped" }, after: { week: "sending" } },
    sending: {
      invoke: {
        src: "send",
        input: ({ context }) => context.to,
        onDone: { target: "sent", actions: assign({ receipt: ({ event }) => event.output }) },
      },
    },
    sent: { type: "final" },
    skipped: { type: "final" },
  },
});

// run it with XState
const actor = createActor(machine, { input: { to: "ann" } });
actor.start();
actor.send({ type: "NOW" });
await toPromise(actor);
console.log(actor.getSnapshot().value);

// run it with Statewright
const reminder = durableMachine(machine, { version: 1, effects: { send: "idempotent" } });
const store = memoryStore();
const first = await run(reminder, { store, thread: "ann", input: { to: "ann" } }).result;
console.log(first.status, first.state.value);
const second = await resume(reminder, { store, thread: "ann", answers: { NOW: {} } }).result;
console.log(second.state.value, second.state.context.receipt);

// an event that no state accepts, with XState
const other = createActor(machine, { input: { to: "bob" } }).start();
other.send({ type: "SKIP", by: "bob" });
other.send({ type: "NOW" });

// an event that no state accepts, with Statewright
try {
  await resume(reminder, { store, thread: "ann", answers: { NOW: {} } }).result;
} catch (error) {
  if (isStatewrightError(error, "event_refused")) console.log(error.code, error.details);
}

// read the history
const { state } = await getState(reminder, { store, thread: "ann" });
console.log(state.value);
for await (const step of getHistory(reminder, { store, thread: "ann" }))
  console.log(step.checkpointId, step.node ?? step.source, "→", step.next.join());
const branch = await fork(reminder, { store, thread: "ann", at: 1, name: "skipped" });
const answers = { SKIP: { by: "ann" } };
console.log((await resume(reminder, { store, thread: "ann", branch, answers }).result).state.value);

// a delay of a week in another process, with XState
const clock = new SimulatedClock();
const left = createActor(machine, { clock, input: { to: "bob" } }).start();
const snapshot = left.getPersistedSnapshot();
left.stop();
const restored = createActor(machine, { clock, snapshot, input: { to: "bob" } }).start();
clock.increment(2 * week);
console.log(restored.getSnapshot().value);

// a delay of a week in another process, with Statewright
const world = virtualClock();
await run(reminder, { store, world, thread: "bob", input: { to: "bob" } }).result;
await world.advance(week);
const due = await store.timers({ dueBy: world.clock.now() });
for (const { thread } of due)
  console.log(thread, (await resume(reminder, { store, world, thread }).result).state.value);

// a promise that must happen once
let charges = 0;
let begun: () => void = () => undefined;
const charging = new Promise<void>((resolve) => {
  begun = resolve;
});
const bank = {
  charge: () => {
    charges += 1;
    if (charges === 3) begun();
    return new Promise<string>(() => undefined);
  },
};
const paying = setup({ actors: { charge: fromPromise(() => bank.charge()) } }).createMachine({
  id: "payment",
  initial: "charging",
  states: { charging: { invoke: { src: "charge", onDone: "paid" } }, paid: { type: "final" } },
});

// the promise after a crash, with XState
const dying = createActor(paying).start();
const underWay = dying.getPersistedSnapshot();
dying.stop();
createActor(paying, { snapshot: underWay }).start();
console.log("charged", charges);

// the promise after a crash, with Statewright
const payment = durableMachine(paying, { version: 1, effects: { charge: "once" } });
run(payment, { store, thread: "pay" });
await charging;
store.crash();
const peer = store.peer();
const asked = await resume(payment, { store: peer, thread: "pay" }).result;
if (asked.status === "waiting") console.log(asked.interrupts.map(({ key, node }) => `${key} ${node}`).join());
const decision = { in_doubt: { happened: true, output: "receipt 7" } };
console.log((await resume(payment, { store: peer, thread: "pay", answers: decision }).result).state.value);
console.log("charged", charges - 2);

// inspection
const seen = new Set<string>();
const inspect = (event: InspectionEvent) => void seen.add(event.type);
await run(reminder, { store: peer, thread: "eve", input: { to: "eve" }, inspect }).result;
console.log([...seen].join(" "));

// refused machines
try {
  durableMachine(
    setup({ actors: { tick: fromCallback(() => undefined) } }).createMachine({
      id: "clock",
      initial: "on",
      states: { on: { invoke: { src: "tick" } }, last: { type: "history" } },
    }),
    { version: 1 },
  );
} catch (error) {
  if (isStatewrightError(error, "invalid_graph")) console.log(error.message.replaceAll("; ", "\n"));
}

// a graph's machine
const count = defineGraph({ name: "count", state: defineState({ n: z.number().default(0) }) })
  .nodes({ add: ({ n }) => ({ n: n + 1 }), look: () => undefined })
  .edges({ [START]: "add", add: "look", look: route(["add", END], ({ n }) => (n < 2 ? "add" : END)) });

const events = [
  { type: "step.commit", to: ["add"] },
  { type: "step.commit", to: ["look"] },
  { type: "step.commit", to: [] },
  { type: "xstate.done.actor.add" },
  { type: "xstate.done.actor.look" },
];
const paths = getShortestPaths(count.machine, { events });
console.log(paths.map(({ state: reached }) => JSON.stringify(reached.value)).join(" "));

writeFileSync("count.json", JSON.stringify(toMachineJson(count)));
console.log(Object.keys(createMachine(toMachineJson(count)).states).join());
